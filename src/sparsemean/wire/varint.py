"""Variable-length integers: seven bits a byte, low first, the high bit set on all but the last (LEB128)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemean._types import Ints
from sparsemean.errors import MalformedPayload

LONGEST = 6  # bytes for 2^40, the largest dimension


def length(numbers: Ints) -> npt.NDArray[np.uint8]:
    """Bytes each number takes.

    >>> length(np.array([0, 127, 128, 16384])).tolist()
    [1, 1, 2, 3]
    """
    sizes = np.ones(numbers.size, np.uint8)
    for i in range(1, LONGEST):
        sizes += numbers >= 1 << 7 * i
    return sizes


def pack(numbers: Ints) -> bytes:
    """All numbers, one after the other.

    >>> pack(np.array([1, 300])).hex()
    '01ac02'
    """
    sizes = length(numbers)
    at = np.cumsum(sizes, dtype=np.int64)
    out = np.empty(at[-1] if at.size else 0, np.uint8)
    at -= sizes
    while numbers.size:
        more = numbers > 0x7F
        out[at] = numbers.astype(np.uint8) & np.uint8(0x7F) | more.view(np.uint8) << np.uint8(7)
        at, numbers = at[more] + 1, numbers[more] >> 7
    return out.tobytes()


def unpack(buffer: memoryview) -> Ints:
    """The numbers a whole buffer holds; refuses what ``pack`` would not have written.

    >>> unpack(memoryview(bytes.fromhex("01ac02")))
    array([  1, 300])
    """
    data = np.frombuffer(buffer, np.uint8)
    last = np.flatnonzero(data < 0x80)
    if data.size and (last.size == 0 or last[-1] != data.size - 1):
        raise MalformedPayload("an integer is cut off")
    starts = np.concatenate([[0], last[:-1] + 1]) if last.size else last
    sizes = last - starts + 1
    if np.any(sizes > LONGEST):
        raise MalformedPayload(f"an integer is longer than {LONGEST} bytes")
    numbers = np.zeros(last.size, np.int64)
    for i in range(LONGEST):
        here = sizes > i
        numbers[here] |= (data[starts[here] + i].astype(np.int64) & 0x7F) << 7 * i
    if np.any(length(numbers) != sizes):
        raise MalformedPayload("an integer is padded")
    return numbers
