"""Integers of 1 to 8 bits in whole bytes: the first in the lowest bits, what is left over 0."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from sparsemean._types import Ints

Bytes: TypeAlias = npt.NDArray[np.uint8]
Singles: TypeAlias = npt.NDArray[np.float32]
Count = TypeVar("Count", int, Ints)


def packed_bytes(count: Count, width: int) -> Count:
    """Bytes that ``count`` integers of ``width`` bits take.

    >>> packed_bytes(9, 1), packed_bytes(9, 3), packed_bytes(9, 8)
    (2, 4, 9)
    """
    return (count * width + 7) // 8


def packed(codes: Bytes, width: int) -> Bytes:
    """The integers as bytes.

    >>> packed(np.array([1, 2, 3], np.uint8), 4), packed(np.array([1, 2, 3], np.uint8), 3)
    (array([33,  3], dtype=uint8), array([209,   0], dtype=uint8))
    """
    if width == 8:
        return codes
    if 8 % width:
        single = codes[:, None] >> np.arange(width, dtype=np.uint8) & np.uint8(1)
        return np.packbits(single, bitorder="little")
    if width == 1:
        return np.packbits(codes, bitorder="little")
    shifts = range(0, 8, width)
    filled = np.zeros(len(shifts) * packed_bytes(codes.size, width), np.uint8)
    filled[: codes.size] = codes
    stored = filled[:: len(shifts)].copy()
    for place, shift in enumerate(shifts[1:], 1):
        stored |= filled[place :: len(shifts)] << np.uint8(shift)
    return stored


def unpacked(stored: Bytes, width: int) -> Bytes:
    """All integers that the bytes hold, those in the padding included."""
    if width == 8:
        return stored
    if 8 % width:
        single = np.unpackbits(stored, bitorder="little")
        table = single[: single.size // width * width].reshape(-1, width)
        codes: Bytes = (table << np.arange(width, dtype=np.uint8)).sum(axis=1, dtype=np.uint8)
        return codes
    if width == 1:
        return np.unpackbits(stored, bitorder="little")
    return _table(width)[stored].view(np.uint8)


@lru_cache
def _table(width: int) -> npt.NDArray[np.uint16] | npt.NDArray[np.uint32]:
    """For each byte the 2 or 4 integers that it holds, as one number: looked up in a quarter of the time of shifts."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)
    each = np.arange(256, dtype=np.uint8)[:, None] >> shifts & np.uint8((1 << width) - 1)
    return each.view(np.uint16)[:, 0] if width == 4 else each.view(np.uint32)[:, 0]
