"""Lists of coordinates on the wire: gaps as variable-length integers, or a bitmap, whichever is smaller.

A list is ``count`` (varint), and, unless it is empty, ``mode`` (1 byte), ``length`` (varint) and that many bytes:

- mode 0: first the smallest coordinate, then each gap to the one before, less one
- mode 1: ⌈d/8⌉ bytes, bit j mod 8 of byte ⌊j/8⌋ set where coordinate j is listed

The smaller form is written, mode 0 where they tie; a reader refuses the other one, so a list has one spelling.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sparsemean._types import Ints
from sparsemean.errors import MalformedPayload
from sparsemean.wire import varint
from sparsemean.wire.reader import Reader

GAPS, BITMAP = 0, 1


def _integer(number: int) -> bytes:
    return varint.pack(np.array([number], np.int64))


def pack(coordinates: Ints, dim: int) -> bytes:
    """Ascending distinct coordinates below ``dim`` as bytes.

    >>> pack(np.array([3, 4, 300]), 1000).hex()
    '0300040300a702'
    """
    if coordinates.size == 0:
        return _integer(0)
    gaps = varint.pack(np.diff(coordinates, prepend=-1) - 1)
    bitmap_size = (dim + 7) // 8
    if len(gaps) <= bitmap_size:
        mode, body = GAPS, gaps
    else:
        present = np.zeros(dim, np.uint8)
        present[coordinates] = 1
        mode, body = BITMAP, np.packbits(present, bitorder="little").tobytes()
    return _integer(coordinates.size) + bytes([mode]) + _integer(len(body)) + body


def unpack(reader: Reader, dim: int, most: int) -> Ints:
    """The list that comes next: ascending, distinct, below ``dim``, at most ``most`` of them."""
    count = reader.integer()
    if count > most:
        raise MalformedPayload(f"{count} coordinates are listed where at most {most} may be")
    if count == 0:
        return np.empty(0, np.int64)
    mode = reader.take(1)[0]
    size = reader.integer()
    bitmap_size = (dim + 7) // 8
    body = reader.take(size)
    if mode == GAPS and size <= bitmap_size:
        gaps = varint.unpack(body)
        if gaps.size + np.sum(gaps, dtype=np.float64) > dim:  # a float sum cannot wrap round
            raise MalformedPayload("the listed coordinates leave the vector")
        coordinates = np.cumsum(gaps + 1) - 1
    elif mode == BITMAP and size == bitmap_size:
        bits = np.unpackbits(np.frombuffer(body, np.uint8), bitorder="little")
        if np.count_nonzero(bits) != count:  # before eight bytes are spent on each of them
            raise MalformedPayload("the bitmap has another number of coordinates than the list announces")
        coordinates = np.flatnonzero(bits)
        if np.sum(varint.length(np.diff(coordinates, prepend=-1) - 1)) <= bitmap_size:
            raise MalformedPayload("a bitmap stands where gaps are shorter")
    else:
        raise MalformedPayload("the list of coordinates has an unknown or oversized form")
    if coordinates.size != count or coordinates[-1] >= dim:
        raise MalformedPayload("the list of coordinates has the wrong count or leaves the vector")
    return coordinates


def most_bytes(count: int, dim: int) -> int:
    """The most bytes any list of at most ``count`` coordinates can take.

    Gaps sum to at most d − count: the cheapest way to make them long is to lengthen as many as possible by one byte,
    then as many of those as possible by another, and so on.

    >>> most_bytes(100, 1000)
    110
    """
    gaps, budget, longer = count, dim - count, count
    thresholds = [0, *(1 << 7 * i for i in range(1, varint.LONGEST))]
    for shorter, long in pairwise(thresholds):
        longer = min(longer, budget // (long - shorter))
        budget -= longer * (long - shorter)
        gaps += longer
    body = min(gaps, (dim + 7) // 8)
    return len(_integer(count)) + 1 + len(_integer(body)) + body if count else 1
