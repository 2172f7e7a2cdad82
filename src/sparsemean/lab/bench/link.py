"""The speed of a link below which compression pays, against sending whole float32 vectors; and the error it costs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sparsemean._types import Floats
from sparsemean.lab.bench.baselines import DENSE
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.machine import free_memory
from sparsemean.lab.bench.player import DECODE, ENCODE, Player, vectors_for
from sparsemean.lab.bench.timing import clock_of, in_turn

OWN = 0.3
"""The part of alike vectors that is a node's own, in units of what they share."""

ROUNDS = 3
"""How many are played to tell the error, so that memories have something to remember."""


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
    unlike, alike
        Error of the mean, relative to the mean squared length of the vectors: of Gaussian ones that have nothing in
        common, and of ones that are alike, between nodes and between rounds. None in files of earlier versions.
    unlike_zero, alike_zero
        That of answering 0, for the same vectors.
    """

    case: Case
    ours: float
    dense: float
    bytes_sent: int
    bytes_dense: int
    even_bits: float
    unlike: float | None = None
    alike: float | None = None
    unlike_zero: float | None = None
    alike_zero: float | None = None

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
    even = even_bits(work, dense, sent, whole)
    unlike = _error(case, vectors)
    vectors *= OWN
    vectors += vectors[0] / OWN  # of which the first is then a little longer than the others
    seconds = work + 8.0 * sent / bits, dense + 8.0 * whole / bits
    alike = _error(case, vectors)
    return Break(case, *seconds, sent, whole, even, unlike[0], alike[0], unlike[1], alike[1])


def _error(case: Case, vectors: Floats) -> tuple[float, float]:
    """The error of a round that has some before it, and that of answering 0."""
    player = Player(case, vectors)
    for _ in range(ROUNDS):
        player.deliver(player.decode(player.encode()))
    estimate = player.estimate
    chosen = np.bincount((np.arange(case.nodes) + estimate.round) % len(vectors), minlength=len(vectors))
    mean, energy = np.zeros(case.dim), 0.0
    for times, vector in zip(chosen, vectors, strict=True):
        mean += times / case.nodes * vector
        energy += times / case.nodes * float(np.dot(vector, vector))
    return float(np.sum((estimate.mean - mean) ** 2)) / energy, float(np.sum(mean**2)) / energy


def even_bits(work: float, dense: float, sent: int, whole: int) -> float:
    """Bits a second below which it pays: at any speed where nothing is lost, at none where nothing is gained.

    >>> even_bits(2.0, 1.0, 25, 100), even_bits(0.5, 1.0, 25, 100), even_bits(2.0, 1.0, 100, 100)
    (600.0, inf, 0.0)
    """
    if sent >= whole:
        return 0.0
    return 8.0 * (whole - sent) / (work - dense) if work > dense else math.inf
