"""Nodes that send in proportion to their weight."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import finite, whole

STEPS = [2.0 ** (i / 4 - 3) for i in range(57)]
"""Octaves between two sizes: from an eighth to all that a double can hold."""


def sizes_for_weights(weights: npt.ArrayLike, k: float, dim: int, *, levels: int = 16) -> list[int]:
    """k_i of each node: in proportion to its weight, at most k on average, and of few different sizes.

    With w_i/k_i the same for all, w_i x_i d/k_i are as similar as the vectors themselves, so that Spatial and balanced
    draws gain what they gain with equal weights; and of heavy nodes more is sent. Sizes are powers of one factor times
    a common number, cut off at 1 and d; the factor is 2^(1/8) or, where that takes too many ``levels``, the next that
    does not. Sizes are known before the draw, so the estimate is unbiased, whatever the weights in a round.

    Parameters
    ----------
    weights : (n,) array
        Of all nodes that are expected, none negative and not all 0; a node of weight 0 sends one coordinate.
    k : float
        How many coordinates a node sends on average.
    dim : int
        d, the length of the vectors.
    levels : int, default 16
        How many different sizes there may be: as many as a ``OneOf`` takes. The server keeps a sum for each.

    >>> sizes_for_weights([1.0, 2.0, 4.1, 1.0], 100, 1000)
    [50, 100, 200, 50]
    """
    given, d = np.asarray(weights, np.float64), whole(dim, "dim", 1)
    mean, most = finite(k, "k"), whole(levels, "levels", 1)
    if given.ndim != 1 or not np.all(np.isfinite(given) & (given >= 0)) or not np.any(given > 0):
        raise InvalidInput("weights are one finite number for each node, none negative and not all 0")
    if not 1.0 <= mean <= d:
        raise InvalidInput(f"k, the mean number of coordinates, lies between 1 and dim = {d}, got {k!r}")
    with np.errstate(divide="ignore"):
        octaves = np.log2(given) - math.log2(given.max())
    found = (_sizes(np.exp2(step * np.rint(octaves / step)), mean, d) for step in STEPS)
    return next((sizes for sizes in found if len(set(sizes)) <= most), [int(mean)] * len(given))


def _sizes(shape: npt.NDArray[np.float64], mean: float, dim: int) -> list[int]:
    """The largest multiple of the shape, rounded and cut off, whose mean is at most ``mean``."""

    def sizes(factor: float) -> npt.NDArray[np.float64]:
        return np.clip(np.rint(factor * shape), 1.0, dim)

    low, high = 0.0, 1.0
    while high < 1e300 and sizes(high).mean() <= mean:
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if sizes(middle).mean() <= mean else (low, middle)
    return [int(size) for size in sizes(low)]
