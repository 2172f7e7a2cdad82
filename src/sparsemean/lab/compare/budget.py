"""The k that a budget allows a scheme: a share of the coordinates, or bytes on the wire."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsemean._types import Doubles
from sparsemean.client import Client
from sparsemean.errors import InvalidInput
from sparsemean.run import Run
from sparsemean.schemes import Scheme, named

WHOLE_VECTORS = ("identity", "lag")
PROBES = 8


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
        """Whether payloads of this average size keep it; a share does not limit bytes."""
        return self.bytes is None or bytes_per_node <= self.bytes


def scheme_within(name: str, budget: Budget, vectors: Doubles, ratio: float) -> Scheme | None:
    """The named scheme with the largest k the budget allows on these (n, d) vectors; None where not even k = 1 fits.

    A name may end in the kind of its values: ``"rand-k int8"``. Sizes that depend on the vector are measured on a few
    of these; ``identity`` and ``lag`` send all there is.
    """
    dim = vectors.shape[1]
    name, _, kind = name.partition(" ")
    values, oracle = kind or "float32", {"ratio": ratio} if name == "rand-k-spatial-opt" else {}

    def with_k(k: int) -> Scheme:
        return named(name, k, values=values, **oracle)

    if budget.share is not None:
        return with_k(max(1, int(budget.share * dim + 0.5)))
    if name in WHOLE_VECTORS:
        return named(name, values=values)
    limit = float(budget.bytes or 0)
    return _largest(with_k, dim, lambda scheme: _mean_bytes(Run(scheme, dim), vectors) <= limit)


def _largest(with_k: Callable[[int], Scheme], dim: int, fits: Callable[[Scheme], bool]) -> Scheme | None:
    """Bisection: sizes grow with k."""
    low, high = 0, dim
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(with_k(middle)) else (low, middle - 1)
    return with_k(low) if low else None


def _mean_bytes(run: Run, vectors: Doubles) -> float:
    if run.payload_fixed:
        return float(run.payload_bytes)
    chosen = vectors[:: max(1, len(vectors) // PROBES)]
    return float(np.mean([len(Client(run, str(i)).encode(vector, 0)) for i, vector in enumerate(chosen)]))
