"""The k that a budget allows a scheme: a share of the coordinates, or bytes on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparsemean.errors import InvalidInput
from sparsemean.run import Run
from sparsemean.schemes import AUTO, SIZELESS, Scheme, named, scheme_name
from sparsemean.wire.frame import HEADER_BYTES
from sparsemean.wire.values import value_name

ORACLE = "rand-k-spatial-opt"
"""The scheme that is told the true correlation, which nobody knows."""


@dataclass(frozen=True)
class Budget:
    """Either a ``share`` of the coordinates, or ``bytes``, which no payload exceeds, header included."""

    share: float | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        if (self.share is None) == (self.bytes is None):
            raise InvalidInput("a budget is either a share, such as 10%, or bytes, such as 4KB")
        if self.share is not None and not 0.0 < self.share <= 1.0:
            raise InvalidInput(f"a share lies above 0 and not above 100 %, got {self.share:.4g}")

    def allows(self, payload_bytes: int) -> bool:
        """Whether payloads of up to so many bytes are within the budget; a share does not limit bytes."""
        return self.bytes is None or payload_bytes <= self.bytes

    def count(self, dim: int) -> int:
        """How many of ``dim`` coordinates the share is."""
        return max(1, int((self.share or 0.0) * dim + 0.5))


def scheme_within(name: str, budget: Budget, dim: int, ratio: float) -> Scheme | None:
    """The named scheme with the largest k that the budget allows; None where not even k = 1 fits.

    Of bytes it is the k of ``Run.for_bytes``.

    Parameters
    ----------
    name
        Name of a scheme, which may end in the kind of its values: ``"rand-k int8"``. ``identity`` and ``lag`` send
        whole vectors, whatever the budget.
    budget
        Share of the coordinates, or bytes.
    dim
        d, how many coordinates there are.
    ratio
        R2/R1, which ``rand-k-spatial-opt`` is told.
    """
    text, _, kind = name.partition(" ")
    known, values = scheme_name(text), value_name(kind or "float32")
    oracle: dict[str, Any] = {"ratio": ratio} if known == ORACLE else {}
    if known in SIZELESS:
        return named(known, values=values)
    if budget.bytes is None:
        return named(known, budget.count(dim), values=values, **oracle)
    if known == AUTO:
        return named(known, bytes=budget.bytes) if budget.bytes > HEADER_BYTES else None
    if not budget.allows(Run(named(known, 1, values=values, **oracle), dim).payload_bytes):
        return None
    return Run.for_bytes(known, dim, budget.bytes, values=values, **oracle).scheme
