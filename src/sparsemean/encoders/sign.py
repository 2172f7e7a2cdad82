"""Scaled signs (EF-signSGD, Karimireddy et al. 2019): one bit of every entry, and one magnitude for all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Key


@dataclass(frozen=True)
class Sign(Encoder):
    """sign(x)·‖x‖₁/d, where an entry that is 0 has the sign of its zero. Biased: ‖C(x) − x‖² = ‖x‖² − ‖x‖₁²/d.

    It takes one bit a coordinate and one value, whatever the value kind. ``ErrorFeedback(Sign())`` is EF-signSGD.

    >>> Sign().encode(np.array([3.0, -1.0, 2.0]), Key(0, 0, "a"), {}).dense(3)
    array([ 2., -2.,  2.])
    """

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=False, uniform=False, unbiased=False)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return (Layout("signs", dim),)

    def omega(self, dim: int) -> None:
        return None

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        level = np.mean(np.abs(vector), dtype=np.float64)
        values = np.copysign(level, vector) if level > 0.0 else np.zeros(vector.size)
        return Payload((Part(np.arange(vector.size), values),))
