"""Loops over single coordinates of one node's row: what is expected there, what a fit learns, what changes in sums."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sparsemean._types import Doubles, Flags, Floats, Ints
from sparsemean.kernels.carry import CANCELLED
from sparsemean.kernels.fit_sums import A, products
from sparsemean.kernels.twin import ARRAYS, twin


class Known(NamedTuple):
    """What a hybrid memory knows before a round, of one node and of all.

    Attributes
    ----------
    last, heard
        B, what the node last sent, of dim entries; and 1 where that is something, else 0.
    common
        c, the average of B over the nodes heard.
    starts
        First coordinate of each block.
    """

    last: Floats
    heard: Flags
    common: Doubles
    starts: Ints

    def block(self, coordinates: Ints) -> Ints:
        """The block of each coordinate."""
        return np.searchsorted(self.starts, coordinates, side="right") - 1


def hybrid_expectation(common: A, last: Any, heard: Any, coefficients: tuple[Any, Any, Any]) -> A:
    """b = a·c + g·(B − c) where a node was heard (``heard`` is 1, else 0), and u·c where it was not.

    Parameters
    ----------
    common, last : array or tensor
        c and B; B is 0 where the node was not heard, and may be the number 0 if that is everywhere.
    heard : array or tensor
        1 or 0.
    coefficients : triple
        (a, g, u).
    """
    on_common, own, unheard = coefficients
    expected: A = unheard * common + heard * ((on_common - own - unheard) * common + own * last)
    return expected


def expected_at_numpy(known: Known, coefficients: Doubles, coordinates: Ints) -> Doubles:
    """``hybrid_expectation`` at these coordinates; ``coefficients[:, block]`` is (a, g, u)."""
    on_common, own, unheard = coefficients[:, known.block(coordinates)]
    last = known.last[coordinates].astype(np.float64)
    here = known.common[coordinates], last, known.heard[coordinates]
    return hybrid_expectation(*here, (on_common, own, unheard))


def fit_at_numpy(known: Known, weight: Doubles, coordinates: Ints, values: Floats, rounding: float) -> Doubles:
    """The seven sums of ``fit_sums_numpy`` of one node, which sent these values with this weight per block."""
    block = known.block(coordinates)
    # Each times w: the fit is of their products, which are weighted by w².
    w, last = weight[block], known.last[coordinates].astype(np.float64)
    x, c, heard = w * values, w * known.common[coordinates], known.heard[coordinates].astype(np.float64)
    return products(block, weight.size, x, c, w * last, heard, rounding)


def carry_at_numpy(
    sums: Doubles, weight: Doubles, starts: Ints, coordinates: Ints, before: Doubles, after: Floats | Flags
) -> Ints:
    """sums += w · (after − before) at these coordinates, which are distinct; w is that of the block.

    Returns
    -------
    The coordinates where cancellation left a sum inexact, as ``carry_numpy`` says.
    """
    w = weight[np.searchsorted(starts, coordinates, side="right") - 1]
    moved = sums[coordinates] + w * (after - before)
    sums[coordinates] = moved
    lost: Ints = coordinates[np.abs(moved) < CANCELLED * np.abs(w * before)]
    return lost


expected_at = twin(expected_at_numpy, "expected_at", ARRAYS)
fit_at = twin(fit_at_numpy, "fit_at", ARRAYS)
carry_at = twin(carry_at_numpy, "carry_at", ARRAYS)
