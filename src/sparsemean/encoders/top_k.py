"""Top-k: the k coordinates of largest magnitude."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean.encoders.base import Encoder, Facts, State
from sparsemean.payload import Floats, Ints, Layout, Part, Payload
from sparsemean.sampling import Key
from sparsemean.size import Size, checked, count


def largest(vector: Floats, k: int) -> Ints:
    """The k coordinates of largest magnitude in ascending order; equal magnitudes: any of them, the same every time.

    >>> largest(np.array([1.0, -5.0, 3.0]), 2)
    array([1, 2])
    """
    if k == 0:
        return np.empty(0, np.int64)
    return np.sort(np.argpartition(np.abs(vector), vector.size - k)[vector.size - k :])


@dataclass(frozen=True)
class TopK(Encoder):
    """The k largest entries, as they are. Biased; the coordinates travel too.

    >>> TopK(1).encode(np.array([1.0, -5.0]), Key(0, 0, "a"), {}).dense(2)
    array([ 0., -5.])
    """

    k: Size

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked(self.k))

    @property
    def facts(self) -> Facts:
        return Facts(raw=True, uniform=False, unbiased=False)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return (Layout("listed", count(self.k, dim)),)

    def omega(self, dim: int) -> None:
        return None

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        chosen = largest(vector, count(self.k, vector.size))
        return Payload((Part(chosen, vector[chosen]),))
