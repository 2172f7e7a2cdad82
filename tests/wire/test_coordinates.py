"""Lists of coordinates against a plain twin, and their largest size against a search."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.errors import MalformedPayload
from sparsemean.wire import coordinates
from sparsemean.wire.reader import Reader

LARGEST_DIM = 1 << 40


def integer(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(0x80 | number & 0x7F)
        number >>= 7
    return bytes([*out, number])


def slow_gaps(listed: list[int]) -> bytes:
    before, out = -1, b""
    for coordinate in listed:
        out += integer(coordinate - before - 1)
        before = coordinate
    return out


def slow_bitmap(listed: list[int], dim: int) -> bytes:
    out = bytearray((dim + 7) // 8)
    for coordinate in listed:
        out[coordinate // 8] |= 1 << coordinate % 8
    return bytes(out)


def slow_pack(listed: list[int], dim: int) -> bytes:
    if not listed:
        return b"\0"
    gaps, bitmap_size = slow_gaps(listed), (dim + 7) // 8
    mode, body = (0, gaps) if len(gaps) <= bitmap_size else (1, slow_bitmap(listed, dim))
    return integer(len(listed)) + bytes([mode]) + integer(len(body)) + body


def unpack(data: bytes, dim: int, most: int) -> list[int]:
    reader = Reader(memoryview(data))
    listed: list[int] = coordinates.unpack(reader, dim, most).tolist()
    reader.finish()
    return listed


def refused(data: bytes, dim: int, most: int | None = None) -> bool:
    try:
        unpack(data, dim, dim if most is None else most)
    except MalformedPayload:
        return True
    return False


@st.composite
def lists(draw) -> tuple[list[int], int]:
    dim = draw(st.integers(1, 300) | st.sampled_from([1000, 20_000, 1 << 21, LARGEST_DIM]))
    inside = st.integers(0, dim - 1) | st.sampled_from([0, dim - 1])
    return sorted(draw(st.sets(inside, max_size=min(dim, 120)))), dim


@given(lists())
def test_lists_round_trip_and_equal_the_twin(case):
    listed, dim = case
    packed = coordinates.pack(np.array(listed, np.int64), dim)
    assert packed == slow_pack(listed, dim)
    assert unpack(packed, dim, len(listed)) == listed
    assert len(packed) <= coordinates.most_bytes(len(listed), dim)
    for cut in range(len(packed)):
        assert refused(packed[:cut], dim)
    assert refused(packed + b"\0", dim)
    if listed:
        assert refused(packed, dim, most=len(listed) - 1)


@pytest.mark.parametrize("dim", [1, 2, 7, 8, 9, 10])
def test_every_subset_has_the_one_spelling_the_rule_says(dim):
    for size in range(dim + 1):
        for listed in itertools.combinations(range(dim), size):
            packed = coordinates.pack(np.array(listed, np.int64), dim)
            assert packed == slow_pack(list(listed), dim)
            assert unpack(packed, dim, dim) == list(listed)
            if size:  # the other mode, written correctly
                other = slow_bitmap(list(listed), dim) if packed[1] == 0 else slow_gaps(list(listed))
                assert refused(integer(size) + bytes([1 - packed[1]]) + integer(len(other)) + other, dim)


def test_every_bitmap_of_ten_coordinates_is_read_or_refused_by_the_rule():
    accepted = 0
    for low in range(1 << 10):
        for high in (0, 1 << 10, 1 << 15):  # bits beyond the vector
            bitmap = (low | high).to_bytes(2, "little")
            data = integer((low | high).bit_count()) + b"\x01\x02" + bitmap
            listed = [j for j in range(10) if low >> j & 1]
            good = high == 0 and slow_pack(listed, 10) == data
            assert refused(data, 10) != good, data.hex()
            accepted += good
    assert accepted == 2**10 - 1 - 10 - 45  # up to two coordinates are shorter as gaps


@given(st.binary(max_size=14), st.integers(1, 40), st.integers(0, 40))
def test_any_bytes_are_refused_or_are_what_pack_writes(data, dim, most):
    reader = Reader(memoryview(data))
    try:
        listed = coordinates.unpack(reader, dim, most)
    except MalformedPayload:
        return
    assert listed.size <= most
    assert coordinates.pack(listed, dim) == data[: len(data) - reader.left]


def gap_list(*gaps: int, count: int | None = None, length: int | None = None) -> bytes:
    body = b"".join(map(integer, gaps))
    return (
        integer(len(gaps) if count is None else count) + b"\0" + integer(len(body) if length is None else length) + body
    )


@pytest.mark.parametrize(
    ("data", "dim"),
    {
        "the last coordinate is outside": (gap_list(100), 100),
        "the sum leaves the vector": (gap_list(50, 49), 100),
        "more coordinates than announced": (gap_list(1, 2, count=1), 100),
        "fewer coordinates than announced": (gap_list(1, 2, count=3), 100),
        "none where one is announced": (b"\x01\0\0", 100),
        "a gap beyond 2^42": (b"\x01\0\x07" + b"\x80" * 6 + b"\x01", LARGEST_DIM),
        "a gap that is padded": (b"\x01\0\x02\x81\x00", 100),
        "a gap that is cut off": (b"\x01\0\x01\x81", 100),
        "a length that is padded": (b"\x01\0\x81\x00\x05", 100),
        "a count that is padded": (b"\x81\x00\0\x01\x05", 100),
        "an empty list that goes on": (b"\x00\0\0", 100),
        "an unknown mode": (b"\x01\x02\x01\x05", 100),
        "a bitmap of the wrong size": (b"\x03\x01\x03\x07\0\0", 10),
        "gaps longer than the bitmap": (gap_list(*[0] * 10), 10),
        "an empty bitmap": (b"\x03\x01\x02\0\0", 10),
        "a count of 2^41": (integer(1 << 41) + b"\0\x01\x05", LARGEST_DIM),
        "a length of 2^41": (b"\x01\0" + integer(1 << 41) + b"\x05", LARGEST_DIM),
    }.values(),
)
def test_other_spellings_are_refused(data, dim):
    assert refused(data, dim)


def test_gaps_that_wrap_round_64_bits_are_refused():
    # 2^22 gaps of 2^42 − 1 sum, with the steps between them, to exactly 2^64: the coordinates would begin again at 0.
    many = 1 << 22
    data = integer(many + 1) + b"\0" + integer(6 * many + 1) + (b"\xff" * 5 + b"\x7f") * many + b"\x05"
    with pytest.raises(MalformedPayload, match="leave the vector"):
        unpack(data, LARGEST_DIM, LARGEST_DIM)


def searched_most(count: int, dim: int) -> int:
    """Every way to share the room between gaps of 1, 2 and 3 bytes, for every list of at most ``count``."""
    best = 1
    for listed in range(1, count + 1):
        room = dim - listed
        body = 0
        for threes in range(min(listed, room // (1 << 14)) + 1):
            twos = min(listed - threes, (room - threes * (1 << 14)) // (1 << 7))
            body = max(body, listed + twos + 2 * threes)
        body = min(body, (dim + 7) // 8)
        best = max(best, len(integer(listed)) + 1 + len(integer(body)) + body)
    return best


@given(st.data())
def test_most_bytes_is_the_most_of_a_search(data):
    dim = data.draw(st.integers(1, 1 << 20) | st.integers(1, 2000))
    count = data.draw(st.integers(0, min(dim, 150)) | st.just(min(dim, 300)))
    assert coordinates.most_bytes(count, dim) == searched_most(count, dim)


@given(st.data())
def test_most_bytes_is_attained(data):
    dim = data.draw(st.integers(1, 2000) | st.integers(1, LARGEST_DIM))
    count = data.draw(st.integers(1, min(dim, 200)))
    room, gaps = dim - count, [0] * count
    for shorter, longer in itertools.pairwise([0, *(1 << 7 * i for i in range(1, 6))]):
        for i in range(count):
            if gaps[i] == shorter and room >= longer - shorter:
                gaps[i], room = longer, room - (longer - shorter)
    listed = np.cumsum(np.array(gaps) + 1) - 1
    assert listed[-1] < dim
    assert len(coordinates.pack(listed, dim)) == coordinates.most_bytes(count, dim)
