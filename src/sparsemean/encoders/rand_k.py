"""Rand-k: k coordinates drawn at random from the key, so that only the values travel."""

from __future__ import annotations

from dataclasses import dataclass

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State
from sparsemean.encoders.size import Size, checked, count
from sparsemean.kernels import gathered
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Key, sample_of


@dataclass(frozen=True)
class RandK(Encoder):
    """k coordinates, each included with probability exactly k/d; scaled by d/k it is unbiased (Section 2).

    Parameters
    ----------
    k : int or float
        How many coordinates a payload has: a count, or a share of the dimension strictly between 0 and 1.
    shared : bool, default False
        All nodes draw the same coordinates in a round, as an all-reduce needs; the error is then (d/k − 1)‖x̄‖², and
        Spatial has nothing to reweight.

    >>> RandK(0.1).omega(100)
    9.0
    """

    k: Size
    shared: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", checked(self.k))

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=True, uniform=not self.shared, unbiased=True)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        k = count(self.k, dim, least=1)
        return (Layout("shared" if self.shared else "seeded", k, scale=dim / k),)

    def omega(self, dim: int) -> float:
        return dim / count(self.k, dim, least=1) - 1.0

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        (layout,) = self.layout(vector.size)
        sample = sample_of(key.shared() if self.shared else key, vector.size, layout.count)
        return Payload((Part(sample, gathered(sample, vector), layout.scale),))
