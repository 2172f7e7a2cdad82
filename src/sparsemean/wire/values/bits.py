"""Integers of 1 to 8 bits on the wire (``kernels.bit_stream``), signs as bits, and trits, five to a byte."""

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


def trit_bytes(count: int) -> int:
    """Bytes that ``count`` trits take."""
    return -(-count // 5)


def pack_trits(codes: Bytes) -> bytes:
    """Integers from 0 to 2 as bytes: five are the digits of a number below 243, the first the lowest.

    >>> pack_trits(np.array([1, 2, 0, 0, 2, 1], np.uint8)).hex()
    'a901'
    """
    filled = np.zeros((trit_bytes(codes.size), 5), np.uint8)
    filled.ravel()[: codes.size] = codes
    return (filled @ _POWERS).tobytes()


def unpack_trits(reader: Reader, count: int) -> Bytes:
    """The next ``count`` integers; digits that are left over must be 0."""
    stored = np.frombuffer(reader.take(trit_bytes(count)), np.uint8)
    if np.any(stored >= 243):
        raise MalformedPayload("a byte holds more than five trits")
    codes: Bytes = (stored[:, None] // _POWERS % np.uint8(3)).ravel()
    if np.any(codes[count:]):
        raise MalformedPayload("padding trits are set")
    return codes[:count]


_POWERS = np.array([1, 3, 9, 27, 81], np.uint8)
