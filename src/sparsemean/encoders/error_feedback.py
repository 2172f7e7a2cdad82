"""Error feedback (Stich et al. 2018; Karimireddy et al. 2019): what was not sent is added to the next vector."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State, Stateful
from sparsemean.encoders.wrapping import require_stateless
from sparsemean.errors import InvalidInput
from sparsemean.payload import Layout, Payload
from sparsemean.sampling import Key
from sparsemean.sampling.draws import LATER
from sparsemean.theory.arguments import finite


@dataclass(frozen=True)
class ErrorFeedback(Stateful):
    """Sends C(x + βe) / (1 + ω) and keeps e ← x + βe − what was sent.

    The division turns an unbiased encoder into a contraction (for RandK: the values as they are, without d/k); with
    the full scale the remembered error would grow without bound. Each mean is biased; their running sum is not far off.

    Parameters
    ----------
    encoder : Encoder
        C, which encodes the vector plus what was left over before.
    decay : float, default 1
        β, in (0, 1]: how much of what was left over still counts a round later. SparseLoCo has 0.95.

    >>> from sparsemean.encoders import RandK
    >>> ErrorFeedback(RandK(10)).layout(100)[0].scale
    1.0
    """

    encoder: Encoder
    decay: float = field(default=1.0, metadata={LATER: True})

    def __post_init__(self) -> None:
        require_stateless(self.encoder, "ErrorFeedback")
        object.__setattr__(self, "decay", finite(self.decay, "decay"))
        if not 0.0 < self.decay <= 1.0:
            raise InvalidInput(f"decay lies in (0, 1], got {self.decay}; 1 keeps all that is left over")

    def __repr__(self) -> str:
        decay = "" if self.decay == 1.0 else f", decay={self.decay!r}"
        return f"ErrorFeedback(encoder={self.encoder!r}{decay})"

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=False, uniform=False, unbiased=False, planned=self.encoder.facts.planned)

    def _scale(self, inner: float, dim: int) -> float:
        omega = self.encoder.omega(dim)
        return 1.0 if self.encoder.facts.raw or omega is None else inner / (1.0 + omega)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return tuple(replace(layout, scale=self._scale(layout.scale, dim)) for layout in self.encoder.layout(dim))

    def omega(self, dim: int) -> None:
        return None

    def start(self, dim: int) -> State:
        return {"error": np.zeros(dim)}

    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        inner = self.encoder.encode(self._owed(vector, state), key, {})
        if inner is None:
            return None
        return Payload(tuple(replace(part, scale=self._scale(part.scale, vector.size)) for part in inner.parts))

    def advance(self, vector: Floats, payload: Payload | None, state: State) -> State:
        sent = 0.0 if payload is None else payload.dense(vector.size)
        return {"error": self._owed(vector, state) - sent}

    def _owed(self, vector: Floats, state: State) -> Floats:
        return vector + (state["error"] if self.decay == 1.0 else self.decay * state["error"])
