"""Packed coordinates: they come back, have the size that is announced, one spelling, and damage is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.errors import MalformedPayload, PayloadError
from sparsemean.wire import coordinates, packed_coordinates
from sparsemean.wire.reader import Reader


def unpack(blob: bytes, count: int, dim: int) -> np.ndarray:
    reader = Reader(memoryview(blob))
    found = packed_coordinates.unpack(reader, count, dim)
    reader.finish()
    return found


@given(st.data())
def test_they_come_back(data):
    dim = data.draw(st.integers(1, 300) | st.integers(1, 2**40))
    listed = sorted(data.draw(st.sets(st.integers(0, dim - 1), max_size=min(dim, 40))))
    blob = packed_coordinates.pack(np.array(listed, np.int64), dim) if dim < 10**6 or listed else b""
    assert len(blob) == packed_coordinates.size(len(listed), dim)
    assert unpack(blob, len(listed), dim).tolist() == listed


@pytest.mark.parametrize("dim", [1, 2, 7, 8, 9, 100, 160, 416, 1000, 4096])
def test_sizes_never_fall_and_stay_near_what_chance_needs(dim):
    before = 0
    for count in range(1, dim + 1):
        size = packed_coordinates.size(count, dim)
        assert before <= size <= (dim + 7) // 8
        needed = (math.lgamma(dim + 1) - math.lgamma(count + 1) - math.lgamma(dim - count + 1)) / math.log(2)
        assert size >= needed / 8
        assert size <= (needed + 0.8 * count) / 8 + 2 or count > dim / 4  # where a bitmap is shortest
        before = size


@pytest.mark.parametrize("share", [1 / 64, 1 / 32, 0.1, 0.3])
def test_they_are_shorter_than_a_list(share):
    dim = 65536
    drawn = np.sort(np.random.default_rng(0).choice(dim, int(share * dim), replace=False))
    packed, listed = packed_coordinates.pack(drawn, dim), coordinates.pack(drawn, dim)
    assert len(packed) < 0.9 * len(listed) or share == 0.3  # of which both are bitmaps
    assert len(packed) < len(listed)


@pytest.mark.parametrize(("count", "dim"), [(1, 9), (3, 20), (5, 100), (60, 100)])
def test_every_string_of_bits_is_refused_or_the_one_spelling_of_what_it_says(count, dim):
    """All single bytes of a good string replaced by all others."""
    good = packed_coordinates.pack(np.sort(np.random.default_rng(1).choice(dim, count, replace=False)), dim)
    taken = 0
    for at in range(len(good)):
        for byte in range(256):
            blob = good[:at] + bytes([byte]) + good[at + 1 :]
            try:
                found = unpack(blob, count, dim)
            except MalformedPayload:
                continue
            taken += 1
            assert found.size == count
            assert np.all(np.diff(found) > 0)
            assert 0 <= found[0] <= found[-1] < dim
            assert packed_coordinates.pack(found, dim) == blob
    assert taken >= len(good)


def test_what_is_cut_off_is_refused():
    blob = packed_coordinates.pack(np.array([5, 600]), 1000)
    with pytest.raises(PayloadError):
        unpack(blob[:-1], 2, 1000)
