"""One pass over long arrays: a multiple of one is added to another."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sparsemean._types import Doubles, Floats
from sparsemean.kernels.choose import ARRAYS, fastest

AddScaled: TypeAlias = Callable[[Floats, float, Doubles, bool], None]


def add_scaled_numpy(sums: Floats, factor: float, out: Doubles, anew: bool = False) -> None:
    """out += factor · sums, or out = factor · sums if it is written ``anew``."""
    if anew:
        np.multiply(sums, factor, out=out)
    else:
        out += factor * sums


@functools.cache
def add_scaled() -> AddScaled:
    """The fastest of the two here."""
    return fastest(add_scaled_numpy, "add_scaled", ARRAYS)
