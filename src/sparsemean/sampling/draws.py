"""Draws: the laws by which nodes choose their coordinates, one class each.

A draw answers two questions. At the node, and again at the server: which coordinates are those of this key, and with
which probability was each of them sent? And in the formulas: how many nodes send a coordinate, given who came
(``theory.CountLaw``)?
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import NamedTuple

from sparsemean._types import Floats, Ints
from sparsemean.errors import InvalidInput
from sparsemean.kernels.sample import Sample, gathered
from sparsemean.kernels.tiled import Tiled
from sparsemean.sampling.keys import Key
from sparsemean.sampling.samples import balanced_sample_of, sample_of

LATER = "later"
"""In the metadata of a member's field that came after runs were written down: at its default it is left out of their
text and digests, which so stay what they were."""


class Drawn(NamedTuple):
    """Coordinates that a node sends, each drawn with probability exactly sent/of, given the past.

    Attributes
    ----------
    where : Sample, Tiled or array of int
        The coordinates: a sample, which stays undrawn until somebody asks for them, or a list, by tile or as it is.
    sent, of : int
        So many of so many, on average.
    """

    where: Sample | Tiled | Ints
    sent: int
    of: int

    @property
    def scale(self) -> float:
        """One over the probability."""
        return self.of / self.sent


class Draw(ABC):
    """How k of d coordinates are chosen. Members are frozen dataclasses."""

    @property
    def planned(self) -> bool:
        """Whether a node needs a slot, which the server's plan or the run's list of nodes gives it."""
        return False

    @property
    def uniform(self) -> bool:
        """Whether a node sends every coordinate with probability exactly k/d, at which all nodes are exchangeable."""
        return True

    @property
    def common_bits(self) -> int:
        """Values of so many bits and fewer share a scale and the dither, if nodes have a slot and the plan says so."""
        return 0

    @abstractmethod
    def drawn(self, key: Key, dim: int, k: int) -> tuple[Drawn, ...]:
        """The k coordinates of this key in the order of their values on the wire, by their probability.

        One ``Drawn`` where all have the same. Where there are several, they belong to one part of k values.
        """

    def gathered(self, key: Key, k: int, vector: Floats) -> tuple[tuple[Drawn, Floats], ...]:
        """The same with what a node sends: the values of its vector at these coordinates."""
        return tuple((each, _values(each.where, vector)) for each in self.drawn(key, vector.size, k))


def _values(where: Sample | Tiled | Ints, vector: Floats) -> Floats:
    if isinstance(where, Sample):
        return gathered(where, vector)
    return vector[where.coordinates if isinstance(where, Tiled) else where]


@dataclass(frozen=True)
class Independent(Draw):
    """Each node draws by itself, as in the paper: M_j, how many send coordinate j, is binomial."""

    def drawn(self, key: Key, dim: int, k: int) -> tuple[Drawn, ...]:
        return (Drawn(sample_of(key, dim, k), k, dim),)


@dataclass(frozen=True)
class Balanced(Draw):
    """Nodes share one random order of the coordinates per round, and every few of them are dealt out to all slots.

    Of n slots with p = k/d, ⌊np⌋ or ⌈np⌉ send each coordinate. With np a whole number and all present the plain mean
    has the error (1/n²)(1/p − 1)(R1 − R2/(n − 1)): that of independent draws where vectors are uncorrelated, 0 where
    they are equal. Where they point away from each other, R2 < 0, it is up to n/(n − 1) × that of independent draws
    (np ≤ 1: 1/(1 − p) ×).

    A node without a slot (``Plan()``) draws independently; the formulas then count it apart.

    Parameters
    ----------
    common_scale : bool, optional
        Whether few-bit values get one scale for all nodes, from the second round on, and share out the dither among
        the senders of a coordinate: the more alike the nodes are, the less is left of the noise of rounding in their
        mean (docs/sampling.md). By default values of one and two bits do, which gain most; True: int4 and int8 as well,
        at a byte or more a payload; False: none, each node rounds by itself.
    """

    common_scale: bool | None = field(default=None, metadata={LATER: True})

    def __post_init__(self) -> None:
        if self.common_scale not in (None, False, True):
            raise InvalidInput(f"common_scale is True, False or None, got {self.common_scale!r:.100}")

    @property
    def common_bits(self) -> int:
        return 2 if self.common_scale is None else 8 if self.common_scale else 0

    @property
    def planned(self) -> bool:
        return True

    def drawn(self, key: Key, dim: int, k: int) -> tuple[Drawn, ...]:
        plan = key.plan
        if plan is None or plan.slot is None:
            return (Drawn(sample_of(key, dim, k), k, dim),)
        return (Drawn(balanced_sample_of(key, dim, k, plan.slot, plan.slots), k, dim),)
