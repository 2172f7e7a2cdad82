"""Ranks of the senders of a coordinate: each once, for every hand, and in any order equally likely."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import compiled
from sparsemean.kernels.hands import ranked
from sparsemean.kernels.ranks import rank_words_numpy
from sparsemean.kernels.sample import Sample, drawn, places
from sparsemean.sampling import Key, balanced_sample_of, stream_of, words


def ranks(sample: Sample) -> list[tuple[int, int, int]]:
    """Place in the vector, rank and number of senders of each value."""
    found = []
    for tile in range(sample.tiles):
        start = tile * sample.size
        if np.diff(places(sample, tile, tile + 1))[0]:
            at, rank, senders = ranked(sample, np.array([tile]), min(sample.size, sample.dim - start))
            found += list(zip((at + start).tolist(), rank.tolist(), senders.tolist(), strict=True))
    return found


SIZES = [(1, 1, 1), (1, 1, 4), (5, 5, 3), (6, 4, 3), (7, 2, 2), (100, 10, 7), (300, 299, 3), (784, 78, 100)]
SIZES += [(784, 784, 20), (5000, 4999, 6), (9000, 3, 4), (40_000, 400, 50), (33_000, 33_000, 3)]


@pytest.mark.parametrize(("dim", "k", "slots"), SIZES)
def test_the_senders_of_a_place_have_all_ranks_once(dim, k, slots):
    senders = defaultdict(list)
    for slot in range(slots):
        for place, rank, planned in ranks(balanced_sample_of(Key(7, dim + k, None), dim, k, slot, slots)):
            senders[place].append((rank, planned))
    assert len(senders) == min(dim, slots * k) or slots * k > dim
    for found in senders.values():
        assert sorted(found) == [(rank, len(found)) for rank in range(len(found))]
        assert len(found) in (slots * k // dim, -(-slots * k // dim))


def test_every_order_of_the_senders_is_equally_likely():
    """Place 0 of six, k = 4, three slots: the 6 pairs in order, 1,200 rounds, chi-square of 5 degrees below 25."""
    seen: Counter[tuple[int, ...]] = Counter()
    for round in range(1200):
        at: dict[int, int] = {}
        for slot in range(3):
            at |= {
                rank: slot
                for place, rank, _ in ranks(balanced_sample_of(Key(1, round, None), 6, 4, slot, 3))
                if not place
            }
        seen[tuple(at[rank] for rank in sorted(at))] += 1
    assert len(seen) == 6
    assert sum((count - 200) ** 2 / 200 for count in seen.values()) < 25


@pytest.mark.parametrize(("dim", "k", "slots"), SIZES)
def test_the_words_are_those_of_the_document(dim, k, slots):
    key = Key(3, 11, None)
    stream, common = stream_of(key, b"here"), words(key, b"here", dim // 2 + 1)
    for slot in {0, slots // 2, slots - 1}:
        sample = balanced_sample_of(key, dim, k, slot, slots)
        out = np.empty(k, np.uint32)
        rank_words_numpy(sample, stream, out)
        for i, (place, rank, planned) in enumerate(ranks(sample)):
            w = int(common[place // 2]) >> 32 * (place % 2) & 0xFFFFFFFF
            assert int(out[i]) == (w + (rank << 32) // planned) % 2**32
        assert len(ranks(sample)) == len(drawn(sample)) == k


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_both_twins_leave_the_same_words(data):
    dim = data.draw(st.integers(1, 300) | st.integers(4000, 9000) | st.integers(32_760, 45_000))
    k = data.draw(st.integers(1, dim) | st.just(dim) | st.integers(1, min(dim, 3)))
    slots = data.draw(st.integers(1, 20) | st.integers(2, 1 << 20))
    key = Key(data.draw(st.integers(0, 2**64 - 1)), 0, None)
    sample = balanced_sample_of(key, dim, k, data.draw(st.integers(0, slots - 1)), slots)
    one, other = np.zeros((2, k), np.uint32)
    rank_words_numpy(sample, stream_of(key, b"x"), one)
    compiled.rank_words(sample, stream_of(key, b"x"), other)
    assert one.tobytes() == other.tobytes()
