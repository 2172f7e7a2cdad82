"""Send everything: the baseline every scheme is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Key


@dataclass(frozen=True)
class Identity(Encoder):
    """All d values, uncompressed.

    >>> Identity().layout(3)[0].count
    3
    """

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=True, uniform=True, unbiased=True)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return (Layout("all", dim),)

    def omega(self, dim: int) -> float:
        return 0.0

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        return Payload((Part(np.arange(vector.size), vector),))
