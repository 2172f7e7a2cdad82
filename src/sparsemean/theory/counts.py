"""The law of the count M, the number of nodes that send a coordinate: of independent and of balanced draws."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from . import binomial, hypergeometric
from .arguments import node_count, unit_share, whole

WHOLE = 4 * float(np.finfo(np.float64).eps)
"""N·p this close to a whole number, relatively, is one: k/d and its product with N are each rounded once."""


@dataclass(frozen=True)
class CountLaw:
    """The law of M at any coordinate, given that n nodes came.

    *Independent draws*: M ~ Binomial(n, p). *Balanced draws* plan s = ⌊Np⌋ or ⌈Np⌉ senders among N slots, Np on
    average; every s-subset of the slots is equally likely, and who comes does not depend on the draw. So, with
    H(m; N, s, n) the hypergeometric law of the marked among n drawn from N, s of them marked,

        P(M = m) = Σ_s P(s) H(m; N, s, n),   b_m = Σ_s P(s) s/(Np) H(m − 1; N − 1, s − 1, n − 1).

    A law is a value: equal laws hash alike. Its arrays are made once, when first asked for, and cannot be written to.

    Parameters
    ----------
    n : int
        How many nodes came.
    share : float
        p = k/d, the probability that a node sends the coordinate.
    slots : int, optional
        N ≥ n, the slots of a balanced draw, those of absent nodes included; None if nodes draw independently.

    >>> CountLaw(2, 0.5).count.tolist(), CountLaw(2, 0.5, slots=2).count.tolist()
    ([0.25, 0.5, 0.25], [0.0, 1.0, 0.0])
    >>> CountLaw(2, 0.5, slots=4).given_sent.round(3).tolist()
    [0.0, 0.667, 0.333]
    """

    n: int
    share: float
    slots: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", node_count(self.n))
        object.__setattr__(self, "share", unit_share(self.share))
        if self.slots is not None:
            object.__setattr__(self, "slots", slot_count(self.slots, self.n))

    @cached_property
    def count(self) -> npt.NDArray[np.float64]:
        """P(M = m) for m = 0..n."""
        return self._given(0)

    @cached_property
    def given_sent(self) -> npt.NDArray[np.float64]:
        """b_m = P(M = m | a given node sent) for m = 0..n."""
        return self._given(1)

    @cached_property
    def given_pair(self) -> npt.NDArray[np.float64]:
        """P(M = m | two given nodes sent) for m = 0..n; zeros where no two ever do."""
        return self._given(2)

    @cached_property
    def pair_factor(self) -> float:
        """κ = P(two given nodes send)/p²: 1 for independent draws, 0 where Np ≤ 1; 1 for one node, which has no pairs.

        It does not depend on how many nodes came, if two did.

        >>> CountLaw(3, 0.5).pair_factor, CountLaw(3, 0.25, slots=4).pair_factor
        (1.0, 0.0)
        """
        if self.slots is None or self.n == 1:
            return 1.0
        pairs = sum(chance * s * (s - 1) for s, chance in self.planned)
        return pairs / (self.slots * (self.slots - 1)) / self.share**2 if pairs > 0.0 else 0.0

    @cached_property
    def pair_excess(self) -> float:
        """κ − 1 = −[(1 − p) − f(1 − f)/(Np)]/((N − 1)p), f the fraction of Np: κ is near 1 where N is large.

        >>> round(CountLaw(5, 0.4, slots=5).pair_excess, 12), CountLaw(5, 0.1, slots=5).pair_excess
        (-0.375, -1.0)
        """
        if self.slots is None or self.n == 1:
            return 0.0
        if self.planned[-1][0] < 2:
            return -1.0
        N, p, fraction = self.slots, self.share, self.planned[-1][1]
        return 0.0 - ((1.0 - p) - fraction * (1.0 - fraction) / (N * p)) / ((N - 1) * p)

    @cached_property
    def planned(self) -> tuple[tuple[int, float], ...]:
        """The planned numbers of senders of a balanced draw, with their probabilities: (s, P(s)), one or two.

        >>> CountLaw(2, 0.25, slots=2).planned, CountLaw(9, 0.3, slots=10).planned
        (((0, 0.5), (1, 0.5)), ((3, 1.0),))
        """
        if self.slots is None:
            raise InvalidInput("independent draws plan no number of senders; give slots, the N of a balanced draw")
        expected = self.slots * self.share
        nearest = round(expected)
        if abs(expected - nearest) <= WHOLE * expected:
            return ((nearest, 1.0),)
        lower = math.floor(expected)
        return (lower, lower + 1 - expected), (lower + 1, expected - lower)

    @property
    def everyone_may_send(self) -> bool:
        """Whether all n nodes may send the same coordinate.

        >>> CountLaw(3, 0.5).everyone_may_send, CountLaw(3, 0.5, slots=3).everyone_may_send
        (True, False)
        """
        return self.slots is None or self.planned[-1][0] >= self.n

    @np.errstate(under="ignore")
    def _given(self, sent: int) -> npt.NDArray[np.float64]:
        """P(M = m | so many given nodes sent) for m = 0..n: P(s) is weighted by the chance s(s − 1)… that they do."""
        law = np.zeros(self.n + 1)
        if self.slots is None and sent <= self.n:
            law[sent:] = binomial.pmf(self.n - sent, self.share)
        elif self.slots is not None and sent <= self.n:
            likely = [(s, chance * math.perm(s, sent)) for s, chance in self.planned if s >= sent]
            total = sum(weight for _, weight in likely)
            for s, weight in likely:
                law[sent:] += weight / total * hypergeometric.pmf(self.slots - sent, s - sent, self.n - sent)
        law.setflags(write=False)
        return law


def slot_count(slots: int, n: int) -> int:
    """The number of slots of a balanced draw, at least the n nodes that came.

    >>> slot_count(4, 3)
    4
    """
    number = whole(slots, "slots", 1)
    if number < n:
        raise InvalidInput(f"slots must be at least the {n} nodes that came, not {number}; each has its own")
    return number
