"""The checksum of a row with all its arrays, and of single entries of it; see ``kernels.carry``."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from sparsemean._types import Array, Ints
from sparsemean.kernels import check_of

MASK = (1 << 64) - 1
NEXT = 1 << 48  # entries that an array of a row can have, before the numbers of the next one begin


def row_check(arrays: Mapping[str, Array], at: Ints | None = None, dim: int | None = None) -> int:
    """The checksum of a whole row; or the part of it that entries at these coordinates, of ``dim``, have.

    >>> row = {"last": np.zeros(4, np.float32)}
    >>> row_check(row)
    0
    >>> row["last"][[1, 3]] = 5.0, 6.0
    >>> row_check(row) == row_check({"last": row["last"][[1, 3]]}, np.array([1, 3]), 4) != 0
    True
    >>> row_check({"last": np.zeros(0)}, np.arange(0), 4)
    0
    """
    total = 0
    for number, array in enumerate(arrays.values()):
        length = array.shape[-1] if dim is None else dim
        coordinates = np.arange(length) if at is None else at
        levels = math.prod(array.shape[:-1])
        for level, entries in enumerate(np.ascontiguousarray(array).reshape(levels, array.shape[-1])):
            total += check_of(entries, coordinates + (number * NEXT + level * length))
    return total & MASK
