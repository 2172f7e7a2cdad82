"""Variable-length integers against a reader and a writer of one number at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.errors import MalformedPayload
from sparsemean.wire import varint

LARGEST = (1 << 42) - 1  # six bytes of seven bits
EDGES = sorted({0, LARGEST, *(edge for i in range(1, 6) for edge in ((1 << 7 * i) - 1, 1 << 7 * i))})


def slow_pack(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(0x80 | number & 0x7F)
        number >>= 7
    out.append(number)
    return bytes(out)


def slow_unpack(data: bytes) -> list[int] | None:
    """The numbers, or None where the spelling is not the only allowed one."""
    numbers, current, shift, size = [], 0, 0, 0
    for byte in data:
        current |= (byte & 0x7F) << shift
        shift, size = shift + 7, size + 1
        if size > 6:
            return None
        if byte < 0x80:
            if byte == 0 and size > 1:
                return None
            numbers.append(current)
            current = shift = size = 0
    return numbers if size == 0 else None


def refused(data: bytes) -> bool:
    try:
        varint.unpack(memoryview(data))
    except MalformedPayload:
        return True
    return False


@pytest.mark.parametrize("number", EDGES)
def test_edges_take_the_bytes_that_leb128_says(number):
    packed = varint.pack(np.array([number]))
    assert packed == slow_pack(number)
    assert len(packed) == varint.length(np.array([number]))[0]
    assert varint.unpack(memoryview(packed)).tolist() == [number]


@given(st.lists(st.integers(0, LARGEST) | st.sampled_from(EDGES), max_size=40))
def test_lists_round_trip_and_equal_the_twin(numbers):
    array = np.array(numbers, np.int64)
    packed = varint.pack(array)
    assert packed == b"".join(map(slow_pack, numbers))
    assert varint.length(array).tolist() == [len(slow_pack(number)) for number in numbers]
    unpacked = varint.unpack(memoryview(packed))
    assert unpacked.dtype == np.int64
    assert unpacked.tolist() == numbers


@given(st.binary(max_size=20) | st.lists(st.sampled_from([0x00, 0x01, 0x7F, 0x80, 0x81, 0xFF]), max_size=16).map(bytes))
def test_any_bytes_are_read_as_the_twin_reads_them_or_refused(data):
    expected = slow_unpack(data)
    if expected is None:
        assert refused(data)
    else:
        unpacked = varint.unpack(memoryview(data))
        assert unpacked.tolist() == expected
        assert varint.pack(unpacked) == data


@pytest.mark.parametrize("first", [0x00, 0x01, 0x7F, 0x80, 0x81, 0xFF])
def test_every_second_byte(first):
    for second in range(256):
        data = bytes([first, second])
        assert refused(data) == (slow_unpack(data) is None), data.hex()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("80", "cut off"),
        ("01ff", "cut off"),
        ("8000", "padded"),
        ("ff8000", "padded"),
        ("80808080808000", "longer"),
        ("ffffffffffff01", "longer"),
        ("ffffffffffffffffff01", "longer"),  # 2^64 − 1, which would wrap round
    ],
)
def test_other_spellings_are_refused(data, why):
    with pytest.raises(MalformedPayload, match=why):
        varint.unpack(memoryview(bytes.fromhex(data)))
