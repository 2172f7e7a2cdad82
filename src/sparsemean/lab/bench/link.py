"""The speed of a link below which compression pays, against sending whole float32 vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sparsemean.lab.bench.baselines import DENSE
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.machine import free_memory
from sparsemean.lab.bench.player import DECODE, ENCODE, Player, vectors_for
from sparsemean.lab.bench.timing import clock_of, in_turn


@dataclass(frozen=True)
class Break:
    """A round over a link, compressed and dense, and the speed of the link at which both take as long.

    Nodes encode and send at the same time; the server decodes once all payloads are there.

    Parameters
    ----------
    case
        Scheme and size.
    ours, dense
        Seconds of a round, compressed and with whole vectors.
    bytes_sent, bytes_dense
        Bytes that a node sends.
    even_bits
        Bits a second below which compression pays; 0 for never, infinite for always.
    """

    case: Case
    ours: float
    dense: float
    bytes_sent: int
    bytes_dense: int
    even_bits: float

    @property
    def label(self) -> str:
        """What was measured."""
        return str(self.case)


def over_a_link(case: Case, bits: float, repeats: int = 5) -> Break:
    """One round of the case over the link.

    >>> over_a_link(Case("rand-k", 10_000, 0.1, 4), 1e6, repeats=1).bytes_sent
    4064
    """
    vectors = vectors_for(case, free_memory())[: case.nodes]
    player = Player(case, vectors)
    sent, whole = max(map(len, player.encode())), 4 * case.dim
    times = in_turn([player.clock(), clock_of(DENSE, lambda: vectors.mean(axis=0))], repeats)
    work = times[ENCODE].median + times[DECODE].median
    dense = times[DENSE].median * case.nodes / len(vectors)  # where they do not fit, what a few take, as often
    even = _even(work, dense, sent, whole)
    return Break(case, work + 8.0 * sent / bits, dense + 8.0 * whole / bits, sent, whole, even)


def _even(work: float, dense: float, sent: int, whole: int) -> float:
    """Bits a second below which it pays: at any speed where nothing is lost, at none where nothing is gained.

    >>> _even(2.0, 1.0, 25, 100), _even(0.5, 1.0, 25, 100), _even(2.0, 1.0, 100, 100)
    (600.0, inf, 0.0)
    """
    if sent >= whole:
        return 0.0
    return 8.0 * (whole - sent) / (work - dense) if work > dense else math.inf
