"""What a hybrid memory is fitted from: sums of products of what came, what last came, and what all have in common."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from sparsemean._types import Doubles, Flags, Floats, Ints
from sparsemean.kernels.choose import fastest
from sparsemean.kernels.sample import Sample, drawn


class Fit(NamedTuple):
    """Of each node a sample, its values, its row B, and 1 in ``heard`` where that holds something (None: nowhere).

    c is ``common``; ``weights[i, block]``; a difference B − c below ``rounding`` times their size is 0.
    """

    samples: Sequence[Sample]
    values: Sequence[Floats]
    rows: Sequence[Floats | None]
    heard: Sequence[Flags | None]
    weights: Doubles
    starts: Ints
    common: Doubles
    rounding: float


FitSums: TypeAlias = Callable[[Fit, int], Doubles]


def fit_sums_numpy(fit: Fit, threads: int = 1) -> Doubles:
    """Σc², Σcr, Σr², Σxc, Σxr where heard (r = B − c), Σc², Σxc where not, all weighted, per block: (7, blocks)."""
    found = np.zeros((7, fit.starts.size))
    for sample, values, row, flags, weights in zip(*fit[:5], strict=True):
        chosen = drawn(sample)
        block = np.searchsorted(fit.starts, chosen, side="right") - 1
        weight = weights[block]
        heard = np.zeros(chosen.size) if flags is None else flags[chosen].astype(np.float64)
        last = np.zeros(chosen.size) if row is None else weight * row[chosen].astype(np.float64)
        found += products(
            block, fit.starts.size, weight * values, weight * fit.common[chosen], last, heard, fit.rounding
        )
    return found


def products(
    block: Ints, blocks: int, x: Doubles, c: Doubles, last: Doubles, heard: Doubles, rounding: float
) -> Doubles:
    """The sums of one node, of values that lie in these blocks."""
    r = heard * (last - c)
    r = np.where(np.abs(r) > rounding * (np.abs(last) + np.abs(c)), r, 0.0)
    each = (heard * c * c, c * r, r * r, heard * x * c, x * r, (1 - heard) * c * c, (1 - heard) * x * c)
    return np.array([np.bincount(block, product, blocks) for product in each])


@functools.cache
def fit_sums() -> FitSums:
    """The fastest of the two here."""
    return fastest(fit_sums_numpy, "fit_sums")
