"""Wangni et al. 2018: inclusion probabilities that minimise the variance at an expected budget of k values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.encoders.base import Encoder, EncoderFacts, State
from sparsemean.encoders.size import Size, checked, count
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Key, words


def level(vector: Floats, k: int) -> float:
    """1/λ such that p_j = min(1, λ|x_j|) has Σp = k, which makes Σ x_j²/p_j least; 0 where at most k are non-zero.

    >>> level(np.array([4.0, 1.0, 1.0, 0.0]), 2)
    2.0
    """
    magnitude = np.abs(vector.astype(np.float64))
    if np.count_nonzero(magnitude) <= k:
        return 0.0
    ordered = np.sort(magnitude)[::-1]
    # With the s largest at p = 1, 1/λ = (sum of the others) / (k − s); s is right once the next is no larger than that.
    others = np.cumsum(ordered[::-1])[::-1][:k]
    certain = int(np.argmax((k - np.arange(k)) * ordered[:k] <= others))
    return float(others[certain] / (k - certain))


def systematic(chances: Doubles, start: float) -> Ints:
    """Indices whose interval of the running sum of ``chances`` holds one of start, start + 1, start + 2, …

    Each is included with its own probability exactly, and their number is Σp rounded down or up, so the size of the
    payload is bounded; an independent draw for each would have the same error and no such bound.

    >>> systematic(np.array([0.5, 0.5, 0.5, 0.5]), 0.25)
    array([0, 2])
    """
    passed = np.floor(np.cumsum(chances) - start)
    return np.flatnonzero(np.diff(passed, prepend=np.floor(-start)) > 0)


@dataclass(frozen=True)
class Wangni(Encoder):
    """Every entry kept with probability p_j and sent as x_j / p_j. Unbiased; ω = d/k − 1 at worst, mostly far less.

    Entries with p_j < 1 all become ±1/λ, so they travel as one magnitude and signs.

    Parameters
    ----------
    k : int or float
        How many coordinates a payload has on average: a count, or a share of the dimension strictly between 0 and 1.

    >>> Wangni(2).encode(np.array([3.0, 0.0, 4.0]), Key(0, 0, "a"), {}).dense(3)
    array([3., 0., 4.])
    """

    k: Size

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked(self.k))

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=False, uniform=False, unbiased=True)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return (Layout("levelled", count(self.k, dim, least=1)),)

    def omega(self, dim: int) -> float:
        return dim / count(self.k, dim, least=1) - 1.0

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        k = count(self.k, vector.size, least=1)
        common = level(vector, k)
        magnitude = np.abs(vector.astype(np.float64))  # in float32 the running sum would lose small chances
        certain = np.flatnonzero((magnitude >= common) & (magnitude > 0))[:k]
        possible = np.flatnonzero(magnitude < common)
        start = float(words(key, b"wangni", 1)[0] >> np.uint64(11)) * 2.0**-53
        drawn = possible[systematic(magnitude[possible] / common, start)][: k - certain.size]
        chosen = np.concatenate([certain, drawn])
        values = np.concatenate([vector[certain], np.copysign(np.float64(common), vector[drawn])])
        order = np.argsort(chosen)
        return Payload((Part(chosen[order], values[order]),))
