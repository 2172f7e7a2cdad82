"""Integers of 1, 2, 4 or 8 bits in whole bytes: the first in the lowest bits, what is left over 0."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemean._types import Floats
from sparsemean.errors import MalformedPayload
from sparsemean.wire.reader import Reader

Codes = npt.NDArray[np.uint8]


def size(count: int, width: int) -> int:
    """Bytes that ``count`` integers take.

    >>> size(9, 1), size(9, 4), size(9, 8)
    (2, 5, 9)
    """
    return (count * width + 7) // 8


def pack(codes: Codes, width: int) -> bytes:
    """The integers as bytes.

    >>> pack(np.array([1, 2, 3], np.uint8), 4).hex()
    '2103'
    """
    if width == 1:
        return np.packbits(codes, bitorder="little").tobytes()
    if width == 8:
        return codes.tobytes()
    shifts = range(0, 8, width)
    filled = np.zeros(len(shifts) * size(codes.size, width), np.uint8)
    filled[: codes.size] = codes
    packed = filled[:: len(shifts)].copy()
    for place, shift in enumerate(shifts[1:], 1):
        packed |= filled[place :: len(shifts)] << np.uint8(shift)
    return packed.tobytes()


def unpack(reader: Reader, count: int, width: int) -> Codes:
    """The next ``count`` integers; the padding bits must be 0."""
    packed = np.frombuffer(reader.take(size(count, width)), np.uint8)
    if width == 8:
        return packed
    if width == 1:
        codes = np.unpackbits(packed, bitorder="little")
    else:
        shifts = np.arange(0, 8, width, dtype=np.uint8)
        codes = (packed[:, None] >> shifts & np.uint8((1 << width) - 1)).ravel()
    if np.any(codes[count:]):
        raise MalformedPayload("padding bits are set")
    return codes[:count]


def pack_signs(values: Floats) -> bytes:
    """One bit a value, set where it is negative."""
    return pack(np.signbit(values).view(np.uint8), 1)


def unpack_signs(reader: Reader, count: int) -> Floats:
    """The next ``count`` signs as ±1; the padding bits must be 0."""
    return 1.0 - 2.0 * unpack(reader, count, 1)
