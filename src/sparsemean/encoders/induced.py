"""Induced compressor (Horváth and Richtárik 2021): a biased part, and an unbiased sample of what it left."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State
from sparsemean.encoders.wrapping import require_stateless
from sparsemean.errors import IncompatibleScheme
from sparsemean.payload import Layout, Payload
from sparsemean.sampling import Key


@dataclass(frozen=True)
class Induced(Encoder):
    """C(x) = B(x) + U(x − B(x)) with B biased and U unbiased; both parts are sent. Unbiased, ω = ω_U (1 − k_B/d).

    Parameters
    ----------
    biased : Encoder
        B, such as ``TopK``.
    unbiased : Encoder
        U, such as ``RandK``, which encodes what B left over.

    >>> from sparsemean.encoders import RandK, TopK
    >>> Induced(TopK(10), RandK(40)).omega(100)
    1.35
    """

    biased: Encoder
    unbiased: Encoder

    def __post_init__(self) -> None:
        require_stateless(self.biased, "Induced")
        require_stateless(self.unbiased, "Induced")
        if not self.biased.facts.raw:
            raise IncompatibleScheme(
                f"the first part of Induced keeps entries of x: use TopK or RTopK, not {self.biased!r}"
            )
        if not self.unbiased.facts.unbiased:
            raise IncompatibleScheme(
                f"the second part of Induced must be unbiased: use RandK or Wangni, not {self.unbiased!r}"
            )

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=False, uniform=False, unbiased=True, planned=self.unbiased.facts.planned)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        kept = tuple(replace(layout, scale=1.0) for layout in self.biased.layout(dim))
        return kept + tuple(replace(layout, part=layout.part + 1) for layout in self.unbiased.layout(dim))

    def omega(self, dim: int) -> float | None:
        kept = sum(layout.count for layout in self.biased.layout(dim))
        omega = self.unbiased.omega(dim)
        return None if omega is None else omega * (1.0 - kept / dim)

    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        kept = self.biased.encode(vector, key, state)
        if kept is None:
            return None
        kept = Payload(tuple(replace(part, scale=1.0) for part in kept.parts))
        rest = self.unbiased.encode(vector - kept.dense(vector.size), key.child(key.part + 1), state)
        return kept if rest is None else Payload(kept.parts + rest.parts)
