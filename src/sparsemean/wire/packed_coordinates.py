"""A known number of coordinates in a known number of bytes: a bitmap, or Elias and Fano's code where that is shorter.

Elias and Fano's code splits each of k ascending coordinates below d into its l = ⌊log2(d/k)⌋ low bits and the rest, its
high part h. Bit by bit, the lowest of a byte first:

- k + ⌊(d − 1)/2^l⌋ bits, of which bit h_i + i is set for the i-th coordinate, i from 0
- the l low bits of each coordinate, the lowest first

Both sides know k and d, and so which of the two it is and how long: about 2 + log2(d/k) bits a coordinate, where no
code for random ones can have fewer than about 1.44 + log2(d/k).
"""

from __future__ import annotations

import numpy as np

from sparsemean._types import Ints
from sparsemean.errors import MalformedPayload
from sparsemean.wire.reader import Reader
from sparsemean.wire.values.bits import check_padding


def size(count: int, dim: int) -> int:
    """Bytes that ``count`` coordinates below ``dim`` take; never fewer for more of them.

    >>> size(64, 4096), size(400, 1000), size(10, 1 << 20)
    (64, 125, 24)
    """
    return (sum(_bits(count, dim)) + 7) // 8 if count else 0


def pack(coordinates: Ints, dim: int) -> bytes:
    """Ascending distinct coordinates below ``dim`` as bytes.

    >>> pack(np.array([3, 4, 300]), 1000).hex(), pack(np.array([1, 2]), 7).hex()
    ('cb00010b', '06')
    """
    count = coordinates.size
    if count == 0:
        return b""
    upper, lower = _bits(count, dim)
    width = lower // count
    single = np.zeros(upper + lower, np.uint8)
    single[(coordinates >> width) + np.arange(count) if width else coordinates] = 1
    single[upper:] = (coordinates[:, None] >> np.arange(width) & 1).ravel()
    return np.packbits(single, bitorder="little").tobytes()


def unpack(reader: Reader, count: int, dim: int) -> Ints:
    """The next ``count`` coordinates: ascending, distinct, below ``dim``."""
    if count == 0:
        return np.empty(0, np.int64)
    upper, lower = _bits(count, dim)
    width = lower // count
    stored = np.frombuffer(reader.take(size(count, dim)), np.uint8)
    check_padding(stored, upper + lower)
    single = np.unpackbits(stored, count=upper + lower, bitorder="little")
    if np.count_nonzero(single[:upper]) != count:  # before eight bytes are spent on each of them
        raise MalformedPayload("packed coordinates are more or fewer than the encoder sends")
    high = np.flatnonzero(single[:upper])
    if not width:
        return high
    low = (single[upper:].reshape(count, width).astype(np.int64) << np.arange(width)).sum(axis=1)
    coordinates: Ints = (high - np.arange(count) << width) + low
    if coordinates[-1] >= dim or np.any(np.diff(coordinates) <= 0):
        raise MalformedPayload("packed coordinates are out of order or leave the vector")
    return coordinates


def _bits(count: int, dim: int) -> tuple[int, int]:
    """Bits of the high parts, and of the low ones: of a bitmap d and none."""
    width = (dim // count).bit_length() - 1
    upper, lower = count + (dim - 1 >> width), count * width
    return (upper, lower) if width and upper + lower < dim else (dim, 0)
