"""Balanced samples and slot orders against the code on their specification page, and as the library offers them."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.errors import InvalidInput
from sparsemean.kernels.hands import hands_of, runs
from sparsemean.kernels.sample import Sample, drawn, places
from sparsemean.sampling import MAX_SLOTS, Key, balanced_sample_of, sample_between, slot_order, tile_size

HERE = Path(__file__).parents[1]
GOLDEN = json.loads((HERE / "golden" / "balanced_v1.json").read_text())


def page() -> SimpleNamespace:
    """The slow twin: plain-Python integers of any size and a loop over slots, as printed in the specification."""
    names: dict[str, object] = {}
    for code in re.findall(
        r"```python\n(.*?)```", (HERE.parent / "docs" / "sampling.md").read_text("utf-8"), re.DOTALL
    ):
        exec(code, names)
    return SimpleNamespace(**names)


TWIN = page()

keys = st.builds(
    Key,
    seed=st.integers(0, 2**64 - 1),
    round=st.integers(0, 2**63 - 1),
    node=st.sampled_from([None, "", "a"]),
    part=st.integers(0, 255),
)
slot_numbers = st.integers(1, 70) | st.integers(1, 2000)


def expected(key: Key, dim: int, k: int, slot: int, slots: int) -> list[int]:
    found: list[int] = TWIN.balanced_coordinates(dim, k, slots, slot, key.seed, key.round, key.part)
    return found


# --- the specification ----------------------------------------------------------------------------


@given(keys, st.integers(1, 300) | st.integers(1, 13_000), slot_numbers, st.data())
@settings(max_examples=60)
def test_equals_the_code_on_the_page(key, dim, slots, data):
    k = data.draw(st.integers(1, min(dim, 1000)) | st.integers(1, min(dim, 3)) | st.just(min(dim, 3000)))
    slot = data.draw(st.integers(0, slots - 1))
    sample = balanced_sample_of(key, dim, k, slot, slots)
    assert (sample.slots, sample.slot) == (slots, slot_order(key, k, slots, slot))
    assert drawn(sample).tolist() == expected(key, dim, k, slot, slots)


@pytest.mark.parametrize("dim", [1, 2, 3, 63, 64, 65, 66, 127, 128, 129, 4095, 4096, 4097, 4160, 4161, 8192, 12_289])
def test_equals_the_code_on_the_page_at_edges(dim):
    key = Key(2**64 - 1, 2**63 - 1, "ü")
    for k in {1, 2, dim // 3, dim} & set(range(1, min(dim, 4200) + 1)):
        # Fewer slots than coordinates need, as many and more, so that slots·k/dim is below 1, whole and neither.
        for slots in {1, 2, -(-dim // k), 3 * dim // k + 1}:
            assert drawn(balanced_sample_of(key, dim, k, slots // 2, slots)).tolist() == expected(
                key, dim, k, slots // 2, slots
            )


@pytest.mark.parametrize("slots", [1, 2, 3, 63, 64, 65, 66, 100, 127, 128, 129, 1000])
def test_slot_orders_are_the_bijections_of_the_page(slots):
    for key, k in itertools.product((Key(0, 0, None), Key(2**64 - 1, 2**63 - 1, "n", 255)), (1, 2**40)):
        order = [slot_order(key, k, slots, slot) for slot in range(slots)]
        assert sorted(order) == list(range(slots))
        assert order == [TWIN.slot_order(k, slots, slot, key.seed, key.round, key.part) for slot in range(slots)]


@given(keys, st.integers(1, 2**40), st.integers(1, MAX_SLOTS) | st.just(MAX_SLOTS), st.data())
def test_one_of_very_many_slots_is_found_as_on_the_page(key, k, slots, data):
    slot = data.draw(st.integers(0, slots - 1))
    assert slot_order(key, k, slots, slot) == TWIN.slot_order(k, slots, slot, key.seed, key.round, key.part)


def test_one_of_very_many_slots_is_found_without_going_through_the_others():
    start = time.perf_counter()
    for round in range(200):
        balanced_sample_of(Key(1, round, "n"), 2**40, 5, round, MAX_SLOTS - round)
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize("case", GOLDEN["coordinates"], ids=lambda case: f"{case['dim']}-{case['k']}-{case['slots']}")
def test_golden_coordinates(case):
    key = Key(int(case["seed"]), int(case["round"]), "any", case["part"])
    sample = balanced_sample_of(key, case["dim"], case["k"], case["slot"], case["slots"])
    found = drawn(sample)
    assert sample.slot == case["position"]
    assert found[:8].tolist() == case["first"]
    assert int(found.sum()) == case["sum"]
    assert hashlib.sha256(found.astype("<i8").tobytes()).hexdigest() == case["sha256"]


@pytest.mark.parametrize("case", GOLDEN["slot_orders"], ids=lambda case: f"{case['k']}-{case['slots']}")
def test_golden_slot_orders(case):
    key, k, slots = Key(int(case["seed"]), int(case["round"]), "any", case["part"]), int(case["k"]), case["slots"]
    order = np.array([slot_order(key, k, slots, slot) for slot in range(min(slots, 999))], "<i8")
    assert order[:8].tolist() == case["first"]
    assert slot_order(key, k, slots, slots - 1) == case["last"]
    assert hashlib.sha256(order.tobytes()).hexdigest() == case["sha256"]


# --- the extremes ---------------------------------------------------------------------------------


def at_position(key: Key, dim: int, k: int, position: int, slots: int) -> tuple[Sample, int, Any, Any]:
    """The sample at a position, whichever slot has it, with the offset and the streams of the page."""
    inside, counting = TWIN.streams(key.seed, key.round, None, key.part, b"balanced" + k.to_bytes(8, "little"))
    dealing = TWIN.streams(key.seed, key.round, None, key.part, b"hands" + k.to_bytes(8, "little"))
    sample = balanced_sample_of(key, dim, k, 0, slots)._replace(slot=position)
    return sample, TWIN.below(dim, counting, 0), inside, dealing


@pytest.mark.parametrize(("dim", "slots"), [(2**40, 2**20), (2**40 - 2**20 - 77, 2**20), (2**33 + 5, 1000)])
def test_tiles_of_huge_vectors_equal_the_page(dim, slots):
    size = tile_size(dim)
    tiles = -(-dim // size)
    for k, position, b in [
        (70 * tiles + 3, slots - 1, tiles - 1),
        (70 * tiles, slots // 2, tiles // 2),
        (tiles // 3, 17, 0),
    ]:
        sample, off, stream, dealing = at_position(Key(3, k, None), dim, k, position, slots)
        found, place = sample_between(sample, b * size, min((b + 1) * size, dim))
        assert found.tolist() == TWIN.slot_tile(dim, k, off, slots, position, b, stream, dealing)
        assert place == (off + position * dim + slots * b * size * k) // (slots * dim)


@pytest.mark.parametrize("dim", [2**40, 2**40 - 1, 2**39 + 1, 2**32 + 1, 4097])
@pytest.mark.parametrize("slots", [1, 2, 1000, 2**20 - 1, 2**20])
def test_int64_is_wide_enough_at_the_extremes(dim, slots):
    size = tile_size(dim)
    tiles = -(-dim // size)
    for k, off, b in itertools.product((1, 2, dim // 3, dim - 1, dim), (0, dim - 1), (0, tiles - 2, tiles - 1)):
        hand, position = max(TWIN.hand_size(dim, k), size // 8), (slots - 1, 0, slots // 3)[b % 3]
        sample = Sample(np.uint64(5), np.uint64(6), off, dim, k, size)
        sample = sample.balanced(bytes(range(32)), hand, position, slots)
        m, stream = min(size, dim - b * size), (int(sample.hand_a), int(sample.hand_b))
        hands = hands_of(sample, np.array([b]), m)
        counts, starts = runs(hands, position, slots)
        ends = [min(b * size + end, dim) for end in (*range(0, m, hand), m)]
        taken = [(off + slots * end * k) // dim for end in ends]
        own = [(off + position * dim + slots * end * k) // (slots * dim) for end in ends]
        assert counts[0].tolist() == [after - before for before, after in itertools.pairwise(own)]
        assert places(sample, b, b + 1).tolist() == [own[0], own[-1]]
        for h, (before, after) in enumerate(itertools.pairwise(taken)):
            q, extra = divmod(after - before, slots)
            i, word = (position + after) % slots, TWIN.word(stream, b * (size // hand) + h)
            run = (
                (q + 1) * TWIN.order(i, extra, word)
                if i < extra
                else (q + 1) * extra + q * TWIN.order(i - extra, slots - extra, word)
            )
            assert starts[0, h] == run + hands.o[0, h] < 2**41


# --- structure ------------------------------------------------------------------------------------


@given(keys, st.integers(1, 13_000), st.integers(1, 12), st.data())
@settings(max_examples=60)
def test_slots_share_the_coordinates_out_evenly(key, dim, slots, data):
    k = data.draw(st.integers(1, dim) | st.just(dim) | st.integers(1, min(dim, 3)))
    times, size = np.zeros(dim, int), tile_size(dim)
    for slot in range(slots):
        sample = balanced_sample_of(key, dim, k, slot, slots)
        found, counts = drawn(sample), np.diff(places(sample, 0, sample.tiles))
        assert counts.sum() == k == len(np.unique(found))
        assert np.array_equal(found // size, np.repeat(np.arange(sample.tiles), counts))
        np.add.at(times, found, 1)
    assert slots * k // dim <= times.min() <= times.max() <= -(-slots * k // dim)


@given(keys, st.integers(1, 40_000), slot_numbers, st.data())
@settings(max_examples=60)
def test_sample_cuts_into_ranges(key, dim, slots, data):
    k, slot = data.draw(st.integers(1, dim)), data.draw(st.integers(0, slots - 1))
    sample = balanced_sample_of(key, dim, k, slot, slots)
    ends = sorted(data.draw(st.lists(st.integers(0, sample.tiles), min_size=1, max_size=4)))
    for first, last in itertools.pairwise([0, *ends, sample.tiles]):
        lo, hi = min(first * sample.size, dim), min(last * sample.size, dim)
        part, place = sample_between(sample, lo, hi)
        assert np.array_equal(part, drawn(sample)[place : place + len(part)])
        assert np.array_equal(part, drawn(sample)[(lo <= drawn(sample)) & (drawn(sample) < hi)])


def test_nodes_share_what_the_slot_does_not_decide_and_nothing_else_is_shared():
    key, k = Key(1, 12, "a"), 8
    base = balanced_sample_of(key, 100, k, 3, 100)
    assert balanced_sample_of(Key(1, 12, "b"), 100, k, 3, 100) == base
    assert balanced_sample_of(key, 100, k, 4, 100)._replace(slot=base.slot) == base
    others = [Key(2, 12, "a"), Key(1, 13, "a"), key.child(1)]
    different = [balanced_sample_of(other, 100, k, 3, 100) for other in others]
    for word in ("a", "hand_a"):
        found = [getattr(each, word) for each in [base, *different, balanced_sample_of(key, 100, k + 1, 3, 100)]]
        assert len(set(found)) == 5
    orders = [(key, k), (key, k + 1), *((other, k) for other in others)]
    assert len({tuple(slot_order(each, k, 100, slot) for slot in range(100)) for each, k in orders}) == 5


def test_numpy_integers_are_integers():
    six, three, two, five = np.int64(6), np.uint8(3), np.int32(2), np.uint64(5)
    sample = balanced_sample_of(Key(7, 0, None), six, three, two, five)  # type: ignore[arg-type]
    assert sample == balanced_sample_of(Key(7, 0, None), 6, 3, 2, 5)
    assert type(sample.slot) is type(sample.slots) is type(sample.k) is int


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: balanced_sample_of(Key(0, 0, None), 10, 5, 0, 0),
        lambda: balanced_sample_of(Key(0, 0, None), 10, 5, 0, 2**20 + 1),
        lambda: balanced_sample_of(Key(0, 0, None), 10, 5, 3, 3),
        lambda: balanced_sample_of(Key(0, 0, None), 10, 5, -1, 3),
        lambda: balanced_sample_of(Key(0, 0, None), 10, 5, 0.0, 3),  # type: ignore[arg-type]
        lambda: balanced_sample_of(Key(0, 0, None), 10, 5, 0, True),
        lambda: balanced_sample_of(Key(0, 0, None), 10, 11, 0, 3),
        lambda: balanced_sample_of(Key(0, 0, None), 2**40 + 1, 1, 0, 3),
        lambda: slot_order(Key(0, 0, None), 0, 3, 0),
        lambda: slot_order(Key(0, 0, None), 5, 3, 3),
        lambda: sample_between(balanced_sample_of(Key(0, 0, None), 10_000, 5, 0, 3), 1, 4096),
        lambda: sample_between(balanced_sample_of(Key(0, 0, None), 10_000, 5, 0, 3), 8192, 4096),
    ],
)
def test_wrong_arguments_name_the_remedy(wrong):
    with pytest.raises(InvalidInput, match="give"):
        wrong()
