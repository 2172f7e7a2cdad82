"""Decoders: totals of a round → mean of what was not expected (of everything, where there is no memory)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.payload import Doubles
from sparsemean.theory import FixedWeighting, fill_gains, gains, weights
from sparsemean.totals import RoundTotals


class Decoder(ABC):
    """How the totals become a mean."""

    @property
    @abstractmethod
    def reweights(self) -> bool:
        """Whether it uses the counts M_j, which mean something only for samples of x itself."""

    @abstractmethod
    def innovation(self, totals: RoundTotals, share: float | None) -> Doubles:
        """Estimated weighted mean of x − expectation; 0 in a block that carries no weight."""

    @property
    @abstractmethod
    def T(self) -> FixedWeighting | None:
        """The T of its exact error (``theory.spatial_mse``); None for a decoder outside the Spatial family."""


def _plain(totals: RoundTotals) -> Doubles:
    inverse = np.divide(1.0, totals.weight, out=np.zeros_like(totals.weight), where=totals.weight > 0)
    return totals.sums * totals.blocks.spread(inverse)


@lru_cache(maxsize=256)
def _gains(T: FixedWeighting, nodes: int, share: float | None) -> Doubles:
    """The factor for each count; kept, because rounds repeat the same n."""
    return fill_gains(T, nodes) if share is None else gains(T, nodes, share)


@dataclass(frozen=True)
class Mean(Decoder):
    """The sum over the weight: plain Rand-k, and the only decoder for values that were scaled at the node."""

    @property
    def reweights(self) -> bool:
        return False

    def innovation(self, totals: RoundTotals, share: float | None) -> Doubles:
        return _plain(totals)

    @property
    def T(self) -> FixedWeighting:
        return "one"


@dataclass(frozen=True)
class Spatial(Decoder):
    """Rand-k-Spatial(T): coordinate j is scaled by β̄/T(M_j), M_j being how many nodes sent it (Section 3, eq. 4).

    ``weighting`` is "one", "max", "avg", the ratio R2/R1 itself, or a function of (array of m, n); ``table`` gives
    T(1), T(2), … instead. For encoders that choose coordinates themselves, such as TopK, β̄ is T(n): what everybody
    sent is averaged exactly, and the estimate is biased.

    >>> Spatial("avg").T, Spatial(table=[1, 2, 2.5]).T
    ('avg', (1.0, 2.0, 2.5))
    """

    weighting: FixedWeighting | None = None
    table: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if (self.weighting is None) == (self.table is None):
            raise InvalidInput('Spatial takes one weighting: "avg", "max", a ratio, a function, or table=')
        if self.table is not None:
            object.__setattr__(self, "table", tuple(float(t) for t in self.table))
        if not callable(self.weighting):
            weights(self.T, len(self.table) if self.table is not None else 2)

    @property
    def T(self) -> FixedWeighting:
        if self.weighting is not None:
            return self.weighting
        return self.table or ()

    @property
    def reweights(self) -> bool:
        return True

    def innovation(self, totals: RoundTotals, share: float | None) -> Doubles:
        factor = np.zeros(totals.blocks.dim)
        start = 0
        for size, nodes in zip(totals.blocks.sizes, totals.nodes.tolist(), strict=True):
            if nodes:
                table = _gains(self.T, nodes, share)
                factor[start : start + size] = table[totals.counts[start : start + size]]
            start += size
        return _plain(totals) * factor
