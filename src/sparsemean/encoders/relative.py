"""Nodes that hear the broadcast: each sends how its vector differs from the last mean, which both sides know."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State, Stateful
from sparsemean.encoders.one_of import OneOf
from sparsemean.errors import IncompatibleScheme
from sparsemean.payload import Layout, Payload
from sparsemean.sampling import Key

REFERENCE = "reference"
"""Under this name ``encode`` finds the reference in its state."""


@dataclass(frozen=True)
class Relative(Encoder):
    """Sends values of x − r, where r is the mean of an earlier round as float32; the server adds r again.

    What is gained is precision: the noise of few-bit values goes by the size of x − r, not of x. Which r it was stands
    in the payload, so that a node that has not heard the last mean sends x itself. Nodes and server keep nothing for
    it but r. ``client.encode(vector, round, plan, reference=server.reference)``.

    Parameters
    ----------
    encoder : Encoder
        Encodes the difference: one that sends values of x at coordinates, such as RandK or Identity.

    >>> from sparsemean.encoders import RandK
    >>> Relative(RandK(0.1)).omega(100)
    9.0
    """

    encoder: Encoder

    def __post_init__(self) -> None:
        facts = self.encoder.facts
        if isinstance(self.encoder, Stateful | OneOf) or not facts.raw or facts.relative:
            raise IncompatibleScheme(
                f"Relative wraps one encoder that sends values of x, such as RandK or Identity, not {self.encoder!r}; "
                "for several sizes give OneOf a Relative for each"
            )

    @property
    def facts(self) -> EncoderFacts:
        return replace(self.encoder.facts, relative=True)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return self.encoder.layout(dim)

    def omega(self, dim: int) -> float | None:
        return self.encoder.omega(dim)

    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        reference = state.get(REFERENCE)
        return self.encoder.encode(vector if reference is None else vector - reference, key, {})
