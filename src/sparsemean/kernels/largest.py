"""Which entries of a vector are largest in magnitude: a partition, never a sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sparsemean._types import Floats, Ints
from sparsemean.kernels.choose import ARRAYS, fastest, worth_loading

Largest: TypeAlias = Callable[[Floats, int], Ints]


def largest_numpy(vector: Floats, k: int) -> Ints:
    """The k coordinates of largest magnitude in ascending order; of equal magnitudes those that come first.

    >>> largest_numpy(np.array([1.0, -5.0, 3.0, -3.0]), 2)
    array([1, 2])
    """
    if k == 0:
        return np.empty(0, np.int64)
    magnitude = np.abs(vector)
    least = np.partition(magnitude, vector.size - k)[vector.size - k]
    chosen = magnitude > least
    chosen[np.flatnonzero(magnitude == least)[: k - np.count_nonzero(chosen)]] = True
    return np.flatnonzero(chosen)


def largest(vector: Floats, k: int) -> Ints:
    """The same by the faster of the two here."""
    return (fastest(largest_numpy, "largest", ARRAYS) if worth_loading(vector.size) else largest_numpy)(vector, k)
