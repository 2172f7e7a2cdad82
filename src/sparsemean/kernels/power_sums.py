"""Sums over coordinates of products of the power sums S, Q and P3, one pass over the totals of a round."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sparsemean._types import Doubles, Ints
from sparsemean.kernels.choose import ARRAYS, fastest

PowerSums: TypeAlias = Callable[[Doubles, Doubles, Doubles, Ints, int, Ints], Doubles]


def power_sums_numpy(sums: Doubles, squares: Doubles, cubes: Doubles, begin: Ints, size: int, starts: Ints) -> Doubles:
    """Σ S² over all coordinates, Σ S P3, Σ Q² and Σ Q S² over those that keep powers, per block from ``starts`` on.

    Tile b of ``size`` coordinates has its powers from ``begin[b]`` on, none where that is negative.
    """
    tiles = np.flatnonzero(begin >= 0)
    at = (tiles[:, None] * size + np.arange(size)).ravel()
    at = at[at < sums.size]
    block, s = np.searchsorted(starts, at, side="right") - 1, sums[at]
    products = (s * cubes, squares * squares, squares * s * s)
    kept = [np.bincount(block, product, starts.size) for product in products]
    s2 = np.zeros(starts.size)
    filled = np.diff(starts, append=sums.size) > 0
    if sums.size:
        s2[filled] = np.add.reduceat(sums * sums, starts[filled])
    return np.array([s2, *kept])


@functools.cache
def power_sums() -> PowerSums:
    """The fastest of the two here."""
    return fastest(power_sums_numpy, "power_sums", ARRAYS)
