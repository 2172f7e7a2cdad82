"""A checksum of a row that follows its changes, so that keeping it costs O(k) where k entries change.

The entries' bits, as unsigned integers, times an odd number of each entry, summed modulo 2⁶⁴. It is 0 for a row of
zeros, a change adds (new − old) · number, and a single flipped bit always changes it, since 2^b · odd is never 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sparsemean._types import Ints

ODD = 0x9E3779B97F4A7C15  # entry i has (i + 1) times this, made odd


def check_of(array: npt.NDArray[Any], entries: Ints) -> int:
    """What these values, as the entries of these numbers, add to the checksum of their row.

    >>> check_of(np.zeros(3), np.arange(3)), check_of(np.ones(1, np.uint8), np.arange(1)) == ODD
    (0, True)
    """
    bits = array.view(f"u{array.itemsize}").astype(np.uint64)
    return int(np.dot(bits, (entries.astype(np.uint64) + np.uint64(1)) * np.uint64(ODD) | np.uint64(1)))
