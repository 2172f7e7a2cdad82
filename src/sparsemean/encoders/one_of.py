"""Nodes on different links: each sends by one of a few encoders that the scheme declares."""

from __future__ import annotations

from dataclasses import dataclass

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State, Stateful
from sparsemean.errors import IncompatibleScheme, InvalidInput
from sparsemean.payload import Layout, Payload
from sparsemean.sampling import Key

MOST = 16  # the server keeps a sum of its own for each


@dataclass(frozen=True)
class OneOf(Encoder):
    """Several encoders that differ in size alone; a node takes the first, or the one its ``Client(…, encoder=)`` names.

    The payload says which. With RandK every node has its own share k/d, and Spatial stays exactly unbiased
    (``theory.mixed_gains``).

    Parameters
    ----------
    encoders : tuple of Encoder
        Of one type, the first of which is the default.

    >>> from sparsemean.encoders import RandK
    >>> OneOf((RandK(0.1), RandK(0.01))).omega(100)
    99.0
    """

    encoders: tuple[Encoder, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoders", tuple(self.encoders))
        if not 2 <= len(set(self.encoders)) == len(self.encoders) <= MOST:
            raise InvalidInput(f"OneOf takes 2 to {MOST} different encoders, got {self.encoders!r}")
        if any(isinstance(encoder, Stateful | OneOf) for encoder in self.encoders):
            raise IncompatibleScheme("OneOf chooses among stateless encoders such as RandK; it neither nests nor wraps")
        if len({encoder.facts for encoder in self.encoders}) > 1:
            raise IncompatibleScheme("OneOf chooses among encoders of one kind: RandK of several sizes, or TopK")

    @property
    def facts(self) -> EncoderFacts:
        return self.encoders[0].facts

    @property
    def choices(self) -> tuple[Encoder, ...]:
        return self.encoders

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return self.encoders[0].layout(dim)

    def omega(self, dim: int) -> float | None:
        found = [omega for encoder in self.encoders if (omega := encoder.omega(dim)) is not None]
        return max(found, default=None)

    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        return self.encoders[0].encode(vector, key, state)
