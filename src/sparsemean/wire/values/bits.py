"""Integers of 1 to 8 bits on the wire (``kernels.bit_stream``), and signs as bits."""

from __future__ import annotations

import numpy as np

from sparsemean._types import Floats
from sparsemean.errors import MalformedPayload
from sparsemean.kernels.bit_stream import Bytes, packed, packed_bytes, unpacked
from sparsemean.wire.reader import Reader


def pack(codes: Bytes, width: int) -> bytes:
    """The integers as bytes.

    >>> pack(np.array([1, 2, 3], np.uint8), 4).hex()
    '2103'
    """
    return packed(codes, width).tobytes()


def unpack(reader: Reader, count: int, width: int) -> Bytes:
    """The next ``count`` integers; the padding bits must be 0."""
    stored = np.frombuffer(reader.take(packed_bytes(count, width)), np.uint8)
    check_padding(stored, count * width)
    return unpacked(stored, width)[:count]


def check_padding(stored: Bytes, used: int) -> None:
    """Refuse bytes that have a bit set after the first ``used``."""
    if used % 8 and stored[-1] >> used % 8:
        raise MalformedPayload("padding bits are set")


def pack_signs(values: Floats) -> bytes:
    """One bit a value, set where it is negative."""
    return pack(np.signbit(values).view(np.uint8), 1)


def unpack_signs(reader: Reader, count: int) -> Floats:
    """The next ``count`` signs as ±1; the padding bits must be 0."""
    return 1.0 - 2.0 * unpack(reader, count, 1)
