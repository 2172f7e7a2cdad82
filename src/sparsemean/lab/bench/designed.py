"""What designed draws cost: rounds of balanced draws and of epochs beside the same with independent draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from sparsemean.encoders import RandK
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.machine import Others, free_memory
from sparsemean.lab.bench.measurement import Measurement
from sparsemean.lab.bench.player import WHATS, Player, vectors_for
from sparsemean.lab.bench.timing import in_turn
from sparsemean.run import Run
from sparsemean.sampling import Epochs

INDEPENDENT = "independent draws"


@dataclass(frozen=True)
class LaterRounds(Case):
    """Epochs that go on to their end, whatever the vectors: all rounds but one in twenty or so are later ones."""

    @cached_property
    def run(self) -> Run:
        """The run that is measured."""
        run = super().run
        scheme = replace(run.scheme, encoder=RandK(self.k, draw=Epochs(restart=False)))
        return Run(scheme, self.dim)


def designed_rows(cases: tuple[Case, ...], repeats: int = 7) -> Iterator[Measurement]:
    """Encode, server round and round trip of each case but the first, which is that with independent draws."""
    others, vectors = Others(), vectors_for(cases[0], free_memory())
    players = [Player(case, vectors) for case in cases]
    for player in players:  # rows are made, and loops compiled
        player.clock()()
    timings = in_turn([player.clock(str(i)) for i, player in enumerate(players)], repeats, longest=30.0)
    for i, case in enumerate(cases[1:], 1):
        for what in WHATS:
            yield Measurement(
                what, case, timings[f"{what}{i}"], {INDEPENDENT: timings[f"{what}0"]}, None, others.cores()
            )
