"""Sets of cases that are measured together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from sparsemean.lab.bench.case import Case
from sparsemean.schemes import names
from sparsemean.wire.values import EXAMPLES

MAIN = "rand-k-spatial-avg"
DIMS, SHARES, NODES = (10_000, 1_000_000, 1 << 22, 10_000_000, 100_000_000), (0.001, 0.01, 0.1), (1, 16, 100, 1000)
SOON = 200_000_000  # entries of all vectors together, which are measured in seconds


def every(
    schemes: Iterable[str], values: Iterable[str], dims: Iterable[int], shares: Iterable[float], nodes: Iterable[int]
) -> list[Case]:
    """All combinations, those of one size together."""
    sizes = product(dims, shares, nodes)
    kinds = list(product(schemes, values))
    return [Case(scheme, dim, share, n, kind) for dim, share, n in sizes for scheme, kind in kinds]


def whole() -> list[Case]:
    """The main scheme at every size that is measured soon, every scheme and every kind of value at one."""
    sizes = [case for case in every([MAIN], ["float32"], DIMS, SHARES, NODES) if case.dim * case.nodes <= SOON]
    at_one = every(names(), ["float32"], [1_000_000], [0.01], [16])
    kinds = every([MAIN], EXAMPLES, [1 << 22], [0.1], [16])
    return _together([*sizes, *at_one, *kinds])


def _together(cases: Sequence[Case]) -> list[Case]:
    """Each once, those of one size together, so that they share its baselines."""
    return sorted(dict.fromkeys(cases), key=lambda case: case.size)
