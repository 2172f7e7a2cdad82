"""Top-k: the k coordinates of largest magnitude."""

from __future__ import annotations

from dataclasses import dataclass

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State
from sparsemean.encoders.size import Size, checked, count
from sparsemean.kernels import largest
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Key


@dataclass(frozen=True)
class TopK(Encoder):
    """The k largest entries, as they are, the first of equal ones. Biased; the coordinates travel too.

    Parameters
    ----------
    k : int or float
        How many coordinates a payload has: a count, or a share of the dimension strictly between 0 and 1.

    >>> import numpy as np
    >>> TopK(1).encode(np.array([1.0, -5.0]), Key(0, 0, "a"), {}).dense(2)
    array([ 0., -5.])
    """

    k: Size

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked(self.k))

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=True, uniform=False, unbiased=False)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return (Layout("listed", count(self.k, dim)),)

    def omega(self, dim: int) -> None:
        return None

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        chosen = largest(vector, count(self.k, vector.size))
        return Payload((Part(chosen, vector[chosen]),))
