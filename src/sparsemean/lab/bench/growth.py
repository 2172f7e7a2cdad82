"""Whether the time of a round grows with the length of the vectors where the number of values sent is fixed."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence

from sparsemean.lab.bench.baselines import SHORTER
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.machine import Others
from sparsemean.lab.bench.measurement import Measurement, too_large
from sparsemean.lab.bench.player import DECODE, Player, vectors_for
from sparsemean.lab.bench.timing import Timing, in_turn

FEW_VECTORS = 1 << 25  # bytes: what nodes send does not matter here, and memories need the room


def growth_rows(short: Sequence[Case], repeats: int = 7) -> Iterator[Measurement]:
    """The server's round of each case, and with vectors twice as long of which as many coordinates are sent."""
    for case in short:
        others, before = Others(), _round(case, repeats)
        longer = Case(case.scheme, 2 * case.dim, case.share / 2, case.nodes, case.values)
        if before is None or (after := _round(longer, repeats)) is None:
            continue
        yield Measurement(DECODE, longer, after, {SHORTER: before}, others=others.cores())


def _round(case: Case, repeats: int) -> Timing | None:
    """In the first round rows are made, so it is the warm-up; None where the memory does not suffice."""
    if too_large(case):
        return None
    player = Player(case, vectors_for(case, FEW_VECTORS))
    found = in_turn([player.clock()], repeats, longest=10.0)[DECODE]
    del player
    gc.collect()
    return found
