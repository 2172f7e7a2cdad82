"""Gradient difference (DIANA, Mishchenko et al. 2019): the node sends the change against a state both sides keep."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State, Stateful
from sparsemean.encoders.wrapping import require_stateless
from sparsemean.errors import InvalidInput
from sparsemean.payload import Layout, Payload
from sparsemean.sampling import Key
from sparsemean.theory.arguments import finite


@dataclass(frozen=True)
class Difference(Stateful):
    """Sends C(x − h), then h ← h + step · C(x − h) on both sides; the server's ``Offset`` memory adds mean(h).

    Parameters
    ----------
    encoder : Encoder
        C, which encodes the difference.
    step : float, optional
        How far h follows, in (0, 1]. The default is 1/(1 + ω), which for RandK is k/d and makes it equal to per-node
        Temporal; for a biased encoder it is 1, which is EF21. With "eden" values a run divides it by 1 + ω of these.

    >>> from sparsemean.encoders import RandK
    >>> Difference(RandK(0.1)).step_in(100)
    0.1
    """

    encoder: Encoder
    step: float | None = None

    def __post_init__(self) -> None:
        require_stateless(self.encoder, "Difference")
        if self.step is not None:
            object.__setattr__(self, "step", finite(self.step, "step"))
            if not 0.0 < self.step <= 1.0:
                raise InvalidInput(f"step lies in (0, 1], got {self.step}; leave it out for 1/(1 + ω)")

    @property
    def facts(self) -> EncoderFacts:
        inner = self.encoder.facts
        return replace(inner, raw=False, offset=True)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return self.encoder.layout(dim)

    def omega(self, dim: int) -> float | None:
        return self.encoder.omega(dim)

    def step_in(self, dim: int) -> float:
        """The step both sides take in this dimension."""
        omega = self.encoder.omega(dim)
        return self.step if self.step is not None else 1.0 / (1.0 + (omega or 0.0))

    def start(self, dim: int) -> State:
        return {"h": np.zeros(dim)}

    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        return self.encoder.encode(vector - state["h"], key, {})

    def advance(self, vector: Floats, payload: Payload | None, state: State) -> State:
        h = state["h"].copy()
        for part in payload.parts if payload else ():
            h[part.coordinates] += self.step_in(h.size) * part.scale * part.values.astype(np.float64)
        return {"h": h}
