"""Decoders: totals of a round → mean innovation (of the vectors themselves, where there is no memory)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sparsemean._types import Doubles
from sparsemean.decoding.totals import RoundTotals
from sparsemean.errors import InvalidInput
from sparsemean.kernels import add_scaled, reweigh
from sparsemean.theory import FixedWeighting, fill_gains, first_ratio, gains, mixed_gains, weights
from sparsemean.theory.arguments import finite
from sparsemean.theory.estimated import LEAST_RATIO

Shares: TypeAlias = tuple[float, ...]
"""p of each class of nodes; empty where coordinates are not sent with one probability."""


@dataclass(frozen=True, slots=True)
class Belief:
    """What is known of one block besides its totals.

    Attributes
    ----------
    before : float, optional
        ρ/(n − 1) as earlier rounds showed it; None where none has.
    now : float, optional
        The same as this round shows it, NaN where it does not tell; None before its end.
    signal : float, default 1.0
        The factor of least error for the mean innovation as this round shows it, for a decoder that ``shrinks``.
    """

    before: float | None = None
    now: float | None = None
    signal: float = 1.0


class Decoder(ABC):
    """How the totals become a mean. Members are frozen dataclasses; they define ``T`` and ``innovation``."""

    @property
    def reweights(self) -> bool:
        """Whether it uses the counts M_j, which mean something only for samples of x itself."""
        return False

    @property
    def weighs(self) -> bool:
        """Whether it needs the weight that came at each coordinate, ``RoundTotals.sent_weight``."""
        return False

    @property
    def adapts(self) -> bool:
        """Whether it takes the correlation from what arrives, for which nodes must sample uniformly."""
        return False

    @property
    def shrinks(self) -> Decoder | None:
        """The decoder whose mean innovation it multiplies by each block's ``Belief.signal``; None where it does not."""
        return None

    @property
    def unbiased(self) -> bool:
        """Whether it is fixed before the round, and so adds no bias to an unbiased encoder."""
        return True

    @abstractmethod
    def T(self, belief: Belief, n: int) -> FixedWeighting | None:
        """The T of its exact error (``theory.spatial_mse``) in a block; None where it is not known, or has none."""

    @abstractmethod
    def innovation(self, totals: RoundTotals, shares: Shares, beliefs: tuple[Belief, ...]) -> Doubles:
        """Estimated weighted mean of x − expectation, 0 in a block without weight: a new array, the totals stay."""


def _inverse(weight: Doubles) -> Doubles:
    return np.divide(1.0, weight, out=np.zeros_like(weight), where=weight > 0)


@lru_cache(maxsize=1024)
def _gains(
    T: FixedWeighting, nodes: tuple[int, ...], shares: Shares, slots: tuple[int | None, ...]
) -> tuple[Doubles, ...]:
    """The factor for each class and count; kept, because rounds repeat the same n."""
    if not shares:
        return (fill_gains(T, sum(nodes)),)
    if len(shares) == 1:
        return (gains(T, nodes[0], shares[0], slots=slots[0]),)
    return mixed_gains(T, nodes, shares, slots=slots)


def _plain_table(given: object) -> tuple[float, ...]:
    """T(1), T(2), … as plain numbers."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise InvalidInput(f"a table is a list of the numbers T(1), T(2), …, got {given!r:.100}")
    numbers = tuple(t.item() if isinstance(t, np.number) else t for t in given)
    if not all(isinstance(t, int | float) and not isinstance(t, bool) for t in numbers):
        raise InvalidInput(f"a table is a list of the numbers T(1), T(2), …, got {given!r:.100}")
    for m, t in enumerate(numbers, 1):
        finite(t, f"T({m})")
    return numbers


@dataclass(frozen=True)
class Mean(Decoder):
    """The sum over the weight: plain Rand-k, and the only decoder for values that were scaled at the node."""

    def T(self, belief: Belief, n: int) -> FixedWeighting:
        return "one"

    def innovation(self, totals: RoundTotals, shares: Shares, beliefs: tuple[Belief, ...]) -> Doubles:
        sums, mean = totals.sums, np.empty(totals.blocks.dim)
        for here, inverse in zip(totals.blocks.slices, _inverse(totals.weight).tolist(), strict=True):
            add_scaled(sums[here], inverse, mean[here], True)
        return mean


@dataclass(frozen=True)
class Spatial(Decoder):
    """Rand-k-Spatial(T): coordinate j is scaled by β̄/T(M_j), M_j being how many nodes sent it (Section 3, eq. 4).

    For encoders that choose coordinates themselves, such as TopK, β̄ is T(n): what everybody sent is averaged
    exactly, and the estimate is biased.

    Parameters
    ----------
    weighting : str, float, callable or sequence of float
        "one", "max", "avg", the ratio R2/R1 itself, a function of (array of m, n), or the numbers T(1), T(2), …
        "estimated" takes the ratio from what arrives in the round itself, which is best and biases the estimate a
        little; "learned" takes it from the round before, which keeps it unbiased, and begins with
        ``theory.first_ratio``.
    table : sequence of float
        T(1), T(2), …, one for each node that may come; instead of ``weighting``. A function cannot be written down
        by ``Run.to_json``, a table can.

    >>> Spatial("avg").unbiased, Spatial("estimated").unbiased, Spatial("learned").unbiased
    (True, False, True)
    """

    weighting: FixedWeighting | None = None
    table: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if (self.weighting is None) == (self.table is None):
            raise InvalidInput('Spatial takes one weighting: "avg", "max", "estimated", a ratio, a function, or table=')
        if self.table is not None:
            object.__setattr__(self, "table", tuple(map(float, _plain_table(self.table))))
        elif isinstance(self.weighting, tuple | list | np.ndarray):
            # Kept where it was given and as it was given, 1 or 1.0: journals are bound to the text of the run.
            object.__setattr__(self, "weighting", _plain_table(self.weighting))
        elif isinstance(self.weighting, np.number):
            object.__setattr__(self, "weighting", self.weighting.item())
        try:
            hash(self.weighting)
        except TypeError:
            raise InvalidInput(
                f"{self.weighting!r:.100} is no weighting: rounds look T up by its hash; use a function or table="
            ) from None
        if not callable(self.weighting) and not self.adapts:
            T = self.weighting if self.weighting is not None else self.table or ()
            weights(T, max(len(T), 1) if isinstance(T, tuple) else 2)

    @property
    def adapts(self) -> bool:
        return isinstance(self.weighting, str) and self.weighting in ("estimated", "learned")

    @property
    def reweights(self) -> bool:
        return True

    @property
    def unbiased(self) -> bool:
        return not (self.adapts and self.weighting == "estimated")

    def T(self, belief: Belief, n: int) -> FixedWeighting | None:
        if self.adapts:
            if self.weighting == "learned" and belief.before is None:
                return first_ratio(max(n, 1))
            found = belief.now if self.weighting == "estimated" else belief.before
            if found is None:
                return None
            return 0.0 if math.isnan(found) else max(found * (n - 1), LEAST_RATIO)
        return self.weighting if self.weighting is not None else self.table

    def innovation(self, totals: RoundTotals, shares: Shares, beliefs: tuple[Belief, ...]) -> Doubles:
        scaled, weights, rows = np.empty(totals.blocks.dim), totals.weight.tolist(), totals.present
        of_rows = tuple(shares[s] for s in rows) if shares else (), tuple(totals.class_slots[s] or None for s in rows)
        for here, nodes, weight, known in zip(
            totals.blocks.slices, totals.class_nodes[rows].T.tolist(), weights, beliefs, strict=True
        ):
            T = self.T(known, sum(nodes))
            if not any(nodes) or T is None:  # nothing is to be had of this block
                scaled[here] = 0.0
                continue
            for row, gain in zip(rows, _gains(T, tuple(nodes), *of_rows), strict=True):
                reweigh(gain / weight, totals.counts[here], totals.class_sums[row, here], scaled[here], row == rows[0])
        return scaled
