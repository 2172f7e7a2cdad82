"""Add one part's values and counts to the totals of a round, in one pass where numba is installed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

from sparsemean._types import Counts, Doubles, Ints
from sparsemean.kernels.choose import ARRAYS, fastest

Scatter: TypeAlias = Callable[[Doubles, Counts, Ints, Doubles], None]


def scatter_numpy(sums: Doubles, counts: Counts, coordinates: Ints, y: Doubles) -> None:
    """sums += y and counts += 1 at distinct coordinates."""
    sums[coordinates] += y
    counts[coordinates] += 1


@functools.cache
def scatter() -> Scatter:
    """The fastest of the two here."""
    return fastest(scatter_numpy, "scatter", ARRAYS)
