"""Sums from which a hybrid memory is fitted: products of what came, what last came, and what all have in common."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sparsemean._types import Doubles, Flags, Floats, Ints
from sparsemean.kernels.sample import Sample, drawn
from sparsemean.kernels.twin import twin

A = TypeVar("A", bound=Any)
"""A NumPy array or a torch tensor."""


class Fit(NamedTuple):
    """What came in a round, and what was known before it.

    Attributes
    ----------
    samples
        The coordinates that each node sent; all samples have the same sizes.
    values
        x, the k values of each node.
    rows
        B, what each node last sent, of dim entries; None for a node not heard before.
    heard
        Per node 1 where ``rows`` holds something and 0 where not; None for a node not heard before.
    weights
        ``weights[node, block]``.
    starts
        First coordinate of each block.
    common
        c, the average of B over the nodes heard, of dim entries.
    rounding
        A difference B − c of at most this times |B| + |c| is rounding of running sums, and taken as 0.
    """

    samples: Sequence[Sample]
    values: Sequence[Floats]
    rows: Sequence[Floats | None]
    heard: Sequence[Flags | None]
    weights: Doubles
    starts: Ints
    common: Doubles
    rounding: float


def fit_sums_numpy(fit: Fit, threads: int = 1) -> Doubles:
    """Σc², Σcr, Σr², Σxc, Σxr where heard (r = B − c), Σc², Σxc where not; x, c and B weighted. (7, blocks)."""
    found = np.zeros((7, fit.starts.size))
    for sample, values, row, flags, weights in zip(*fit[:5], strict=True):
        coordinates = drawn(sample)
        block = np.searchsorted(fit.starts, coordinates, side="right") - 1
        weight = weights[block]
        heard = np.zeros(coordinates.size) if flags is None else flags[coordinates].astype(np.float64)
        last = np.zeros(coordinates.size) if row is None else weight * row[coordinates].astype(np.float64)
        found += products(
            block, fit.starts.size, weight * values, weight * fit.common[coordinates], last, heard, fit.rounding
        )
    return found


def products(
    block: Ints, blocks: int, x: Doubles, c: Doubles, last: Doubles, heard: Doubles, rounding: float
) -> Doubles:
    """The seven sums of one node, whose values lie in these blocks; x, c and ``last`` are weighted."""
    each = fit_products(x, c, last, heard, rounding)
    return np.array([np.bincount(block, product, blocks) for product in each])


def fit_products(x: A, c: A, last: A, heard: A, rounding: float, xp: ModuleType = np) -> tuple[A, ...]:
    """c², cr, r², xc, xr where heard (r = B − c), c², xc where not: what the seven sums are of; 0 elsewhere.

    Parameters
    ----------
    x, c, last : array or tensor
        What came, what all have in common, and B, what last came of the same node.
    heard : array or tensor
        1 where ``last`` holds something, 0 where not.
    rounding : float
        A difference B − c of at most this times |B| + |c| is taken as 0.
    xp : module, default numpy
        ``torch``, where the others are torch tensors.
    """
    r = heard * (last - c)
    r = xp.where(xp.abs(r) > rounding * (xp.abs(last) + xp.abs(c)), r, 0.0)
    unheard: A = 1 - heard  # type: ignore[assignment]  # 1 − A is no int
    return heard * c * c, c * r, r * r, heard * x * c, x * r, unheard * c * c, unheard * x * c


fit_sums = twin(fit_sums_numpy, "fit_sums")
