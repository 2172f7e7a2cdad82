"""The k that a budget allows a scheme: a share of the coordinates, or bytes on the wire."""

from __future__ import annotations

from dataclasses import dataclass

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.byte_budget import largest_k
from sparsemean.schemes import AUTO, SIZELESS, Scheme, named
from sparsemean.wire.frame import HEADER_BYTES

PROBES = 8  # vectors on which lengths of payloads are measured


@dataclass(frozen=True)
class Budget:
    """Either a ``share`` of the coordinates, or at most ``bytes`` per node and round, header included."""

    share: float | None = None
    bytes: int | None = None

    def __post_init__(self) -> None:
        if (self.share is None) == (self.bytes is None):
            raise InvalidInput("a budget is either a share, such as 10%, or bytes, such as 4KB")
        if self.share is not None and not 0.0 < self.share <= 1.0:
            raise InvalidInput(f"a share lies above 0 and not above 100 %, got {self.share:.4g}")

    def allows(self, bytes_per_node: float) -> bool:
        """Whether payloads of this average size are within the budget; a share does not limit bytes."""
        return self.bytes is None or bytes_per_node <= self.bytes


def scheme_within(name: str, budget: Budget, vectors: Doubles, ratio: float) -> Scheme | None:
    """The named scheme with the largest k that the budget allows; None where not even k = 1 fits.

    Parameters
    ----------
    name
        Name of a scheme, which may end in the kind of its values: ``"rand-k int8"``. ``identity`` and ``lag`` send
        whole vectors, whatever the budget.
    budget
        Share of the coordinates, or bytes.
    vectors
        Shape (n, d). Where the length of a payload depends on the vector, it is measured on a few of these.
    ratio
        R2/R1, which ``rand-k-spatial-opt`` is told.
    """
    dim = vectors.shape[1]
    name, _, kind = name.partition(" ")
    values, oracle = kind or "float32", {"ratio": ratio} if name == "rand-k-spatial-opt" else {}

    def with_k(k: int) -> Scheme:
        return named(name, k, values=values, **oracle)

    if name == AUTO and budget.bytes is not None:
        return named(name, bytes=budget.bytes) if budget.bytes > HEADER_BYTES else None
    if budget.share is not None:
        return with_k(max(1, int(budget.share * dim + 0.5)))
    if name in SIZELESS:
        return named(name, values=values)
    limit = float(budget.bytes or 0)
    k = largest_k(with_k, limit, vectors, least=0, probes=PROBES)
    return with_k(k) if k else None
