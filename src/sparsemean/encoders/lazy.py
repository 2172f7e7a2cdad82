"""Lazily aggregated gradients (LAG, Chen et al. 2018): a node that hardly moved sends a header alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State, Stateful
from sparsemean.encoders.wrapping import require_stateless
from sparsemean.errors import IncompatibleScheme, InvalidInput
from sparsemean.payload import Layout, Payload
from sparsemean.sampling import Key
from sparsemean.theory.arguments import finite


@dataclass(frozen=True)
class Lazy(Stateful):
    """Sends only when ‖x − r‖² > moved · ‖x‖², r being what the server remembers of this node. Biased by what it skips.

    Parameters
    ----------
    encoder : Encoder
        Encodes the vectors that are sent.
    moved : float, default 0.1
        The squared distance, relative to ‖x‖², up to which a node sends a header alone.

    >>> from sparsemean.encoders import Identity
    >>> Lazy(Identity(), moved=0.5).facts.skips
    True
    """

    encoder: Encoder
    moved: float = 0.1

    def __post_init__(self) -> None:
        require_stateless(self.encoder, "Lazy")
        if not self.encoder.facts.raw:
            raise IncompatibleScheme(
                f"Lazy needs values the server can remember: wrap Identity, RandK or TopK, not {self.encoder!r}"
            )
        object.__setattr__(self, "moved", finite(self.moved, "moved"))
        if self.moved < 0.0:
            raise InvalidInput(f"moved is a share of ‖x‖², not below 0; got {self.moved}")

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=True, uniform=False, unbiased=False, skips=True, planned=self.encoder.facts.planned)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return self.encoder.layout(dim)

    def omega(self, dim: int) -> None:
        return None

    def start(self, dim: int) -> State:
        return {"remembered": np.zeros(dim), "sent": np.zeros(1)}

    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        distance = np.sum((vector - state["remembered"]) ** 2)
        if state["sent"][0] and distance <= self.moved * np.sum(vector.astype(np.float64) ** 2):
            return None
        return self.encoder.encode(vector, key, {})

    def advance(self, vector: Floats, payload: Payload | None, state: State) -> State:
        if payload is None:
            return state
        remembered = state["remembered"].copy()
        for part in payload.parts:
            remembered[part.coordinates] = part.values
        return {"remembered": remembered, "sent": np.ones(1)}
