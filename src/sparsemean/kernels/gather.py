"""What a node sends: the values of its vector at the coordinates of a sample, in the order of the wire."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from sparsemean._types import Floats
from sparsemean.kernels.choose import SMALL, fastest
from sparsemean.kernels.sample import Sample, drawn, sample_numpy

Gather: TypeAlias = Callable[[Sample, Floats, Floats], None]


def gather_numpy(sample: Sample, vector: Floats, out: Floats) -> None:
    """out[i] = vector[coordinate i], rounded to the type of ``out``; sizes k and dim are the caller's to check."""
    chosen = np.empty(sample.k, np.int64)
    sample_numpy(sample, 0, sample.tiles, chosen)
    out[:] = vector[chosen]


def gathered(sample: Sample, vector: Floats) -> Floats:
    """The values of the sample. A small one takes less time than to load numba, and is drawn again at once."""
    if sample.k <= SMALL:
        return vector[drawn(sample)]
    out = np.empty(sample.k, vector.dtype)
    gather()(sample, vector, out)
    return out


@functools.cache
def gather() -> Gather:
    """The fastest of the two here."""
    return fastest(gather_numpy, "gather")
