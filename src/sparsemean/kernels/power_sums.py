"""Sums over coordinates of products of the power sums S, Q and P3, one pass over the totals of a round."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sparsemean.kernels.choose import fastest

Doubles: TypeAlias = npt.NDArray[np.float64]
PowerSums: TypeAlias = Callable[[Doubles, Doubles, Doubles, npt.NDArray[np.int64]], Doubles]


def power_sums_numpy(sums: Doubles, squares: Doubles, cubes: Doubles, starts: npt.NDArray[np.int64]) -> Doubles:
    """Σ S², Σ Q, Σ S P3, Σ Q², Σ Q S² per layer; the layers begin at ``starts``."""
    products = (sums * sums, squares, sums * cubes, squares * squares, squares * sums * sums)
    return np.array([np.add.reduceat(product, starts) for product in products])


@functools.cache
def power_sums() -> PowerSums:
    """The fastest of the two here."""
    return fastest(power_sums_numpy, "power_sums")
