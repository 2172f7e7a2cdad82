"""Draws over an epoch: exact given the whole past, by enumeration; whole epochs; and the words themselves."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean.kernels import compiled_epochs as compiled
from sparsemean.kernels import epochs as kernel
from sparsemean.kernels.sample import Sample, places
from sparsemean.kernels.sample import drawn as coordinates_of
from sparsemean.kernels.tiled import Tiled
from sparsemean.sampling import (
    Epochs,
    Key,
    Plan,
    balanced_sample_of,
    clock,
    epoch_samples,
    epochs,
    sample_of,
    tile_size,
)
from sparsemean.sampling.clock import COIN
from sparsemean.sampling.epochs import _later
from sparsemean.sampling.recent import Recent

HERE = Path(__file__).parents[1]
GOLDEN = json.loads((HERE / "golden" / "epochs_v1.json").read_text())
Script = dict[tuple[tuple[int, ...], int], int]


def page() -> SimpleNamespace:
    """The slow twin: plain-Python integers and sets, as printed in the specification."""
    names: dict[str, object] = {}
    for code in re.findall(
        r"```python\n(.*?)```", (HERE.parent / "docs" / "sampling.md").read_text("utf-8"), re.DOTALL
    ):
        exec(code, names)
    return SimpleNamespace(**names)


TWIN = page()
TWINS = pytest.mark.parametrize("loops", ["numpy", "numba"])


@contextmanager
def using(loops: str, room: int = 0) -> Iterator[None]:
    """The loops of this kind, and a cache of so many bytes."""
    twins = {"numpy": (kernel.schedule_numpy, kernel.send_numpy), "numba": (compiled.schedule, compiled.send)}
    with pytest.MonkeyPatch.context() as patch:
        for name, function in zip(("schedule", "send"), twins[loops], strict=True):
            patch.setattr(kernel, name, function)
        patch.setattr(epochs, "_kept", Recent(room))
        yield


def found(key: Key, dim: int, k: int, plan: Plan, lo: int = 0, hi: int | None = None) -> list[list[int]]:
    return [np.asarray(each.where).tolist() for each in epoch_samples(key, dim, k, plan, lo, hi)]


def plan_of(slot: int | None, slots: int, epoch: int, ratios: bytes) -> Plan:
    return Plan(slot, 0 if slot is None else slots, epoch, ratios)


# --- the specification ----------------------------------------------------------------------------


sizes = st.integers(2, 300) | st.integers(2, 9000)
rounds = st.lists(st.integers(16, 160), min_size=1, max_size=9).map(bytes)


@TWINS
@settings(max_examples=30, deadline=None)
@given(sizes, st.integers(1, 40) | st.integers(1, 1000), rounds, st.integers(0, 2**64 - 1), st.data())
def test_equals_the_code_on_the_page(
    loops: str, dim: int, slots: int, ratios: bytes, seed: int, data: st.DataObject
) -> None:
    k = data.draw(st.integers(1, dim) | st.integers(1, min(dim, 9)))
    slot = data.draw(st.none() | st.integers(0, slots - 1))
    now = clock(dim, k, ratios)
    began, r, heads = TWIN.clock(dim, k, ratios)
    assert (now.began, list(now.scheduled)) == (began, r)
    if r:
        assert k > 1 or now.heads == heads
        key = Key(seed, 77, "ü", 3)
        expected = TWIN.epoch_coordinates(dim, k, slots, slot, seed, 5, "ü", ratios, 3)
        with using(loops):
            assert found(key, dim, k, plan_of(slot, slots, 5, ratios)) == list(map(list, expected))


@TWINS
@pytest.mark.parametrize("dim", [2, 3, 63, 64, 65, 129, 4096, 4097, 4161, 8192])
def test_equals_the_code_on_the_page_at_edges(loops: str, dim: int) -> None:
    key, ratios = Key(2**64 - 1, 2**63 - 1, ""), bytes([16, 100, 160])
    for k in {1, 2, dim // 40, dim // 3, dim - 1} & set(range(1, dim)):
        for slot, slots in ((None, 0), (1, 3 * dim // k)):
            told = ratios[: 3 if k > 2 else 1]
            expected = TWIN.epoch_coordinates(dim, k, slots, slot, key.seed, 9, "", told)
            with using(loops):
                assert found(key, dim, k, plan_of(slot, slots, 9, told)) == list(expected)


@TWINS
@pytest.mark.parametrize(("dim", "share"), [(2**33 + 5, 0.3), (2**34 - 1, 0.004)])
def test_tiles_of_long_vectors_equal_the_page(loops: str, dim: int, share: float) -> None:
    size, k, ratios = tile_size(dim), int(dim * share), bytes([16, 160])
    _, r, _ = TWIN.clock(dim, k, ratios)
    for slot in (None, 999):
        for tile in (12_345, dim // size):
            lo, hi = tile * size, min((tile + 1) * size, dim)
            expected = TWIN.epoch_tile(dim, k, 1000, slot, tile, 3, 2, "n", r, k - r[-1])
            with using(loops):
                assert found(Key(3, 4, "n"), dim, k, plan_of(slot, 1000, 2, ratios), lo, hi) == list(expected)


@pytest.mark.xdist_group("wide tiles")  # whose loops are compiled once
@pytest.mark.parametrize(("dim", "share"), [(2**37 - 1, 0.5), (2**40, 1e-6), (2**40 - 2**20 - 77, 1e-3)])
def test_both_loops_agree_where_tiles_are_wide(dim: int, share: float) -> None:
    size, k = tile_size(dim), int(dim * share)
    for slot in (None, 777_777):
        plan = plan_of(slot, 2**20, 2, bytes([16, 16, 16]))
        for tile in (0, (dim - 1) // size):
            ranges = tile * size, min((tile + 1) * size, dim)
            every = []
            for loops in ("numpy", "numba"):
                with using(loops):
                    every.append(found(Key(3, 5, "n"), dim, k, plan, *ranges))
            assert every[0] == every[1]
            assert sum(map(len, every[0])) == pytest.approx(k / dim * (ranges[1] - ranges[0]), abs=2)


@TWINS
@pytest.mark.parametrize("case", GOLDEN["coordinates"], ids=lambda case: f"{case['dim']}-{case['k']}-{case['slots']}")
def test_golden_coordinates(loops: str, case: dict[str, Any]) -> None:
    key = Key(int(case["seed"]), 2**63 - 1, case["node"], case["part"])
    plan = Plan(case["slot"], case["slots"], int(case["epoch"]), bytes(case["ratios"]))
    with using(loops):
        both = epoch_samples(key, case["dim"], case["k"], plan)
    for name, each in zip(("of_u", "of_s"), both, strict=True):
        where, expected = np.asarray(each.where), case[name]
        assert (where.size, where[:5].tolist()) == (expected["count"], expected["first"])
        assert hashlib.sha256(where.astype("<i8").tobytes()).hexdigest() == expected["sha256"]


@pytest.mark.parametrize("bound", [1, 3, 2**40 - 1, 3 << 61, (1 << 63) - 1])
def test_fair_numbers_are_those_of_the_page(bound: int) -> None:
    """The larger bounds reject a quarter and, nearly, none of the words, so that several tries are seen."""
    stream, tiles = (2**64 - 5, 12), np.arange(200)
    bounds = np.full(200, bound)
    for of_s in (0, 1):
        expected = [TWIN.fair(bound, stream, (7 << 24) + 2 * b + of_s) for b in range(200)]
        assert kernel.rotation(bounds, stream, 7, tiles, of_s).tolist() == expected
        words = np.uint64(stream[0]), np.uint64(stream[1])
        assert [compiled._rotation(bound, *words, 7, b, of_s) for b in range(200)] == expected


@given(st.integers(1, 2**40), st.data())
def test_shares_of_long_vectors_are_those_of_whole_numbers(total: int, data: st.DataObject) -> None:
    r, off = data.draw(st.integers(0, total)), data.draw(st.integers(0, total - 1))
    below = data.draw(st.lists(st.integers(0, total), min_size=1, max_size=5))
    shares = kernel.share(off, r, total, np.array(below, np.int64))
    assert shares.tolist() == [(off + r * each) // total for each in below]


@given(st.integers(2, 9000), st.integers(1, 40), st.integers(0, 2**64 - 1), st.data())
@settings(max_examples=40, deadline=None)
def test_the_places_of_a_node_are_all_of_the_tile_and_its_own_come_first(
    dim: int, slots: int, seed: int, data: st.DataObject
) -> None:
    k, key = data.draw(st.integers(1, dim - 1)), Key(seed, 3, "a")
    slot = data.draw(st.none() | st.integers(0, slots - 1))
    first = sample_of(key, dim, k) if slot is None else balanced_sample_of(key, dim, k, slot, slots)
    own, sent = (seed, 5), coordinates_of(first)
    for tile in range(first.tiles):
        m = min(first.size, dim - tile * first.size)
        every = kernel.tile_places(first, own, np.array([tile]), m, np.arange(m, dtype=np.int32)[None])[0]
        assert sorted(every.tolist()) == list(range(m))
        here = sent[sent // first.size == tile]
        count = np.array([[here.size], [0]])
        places = np.arange(here.size), np.empty(0, np.int64)
        found = kernel._walked(first, own, np.array([tile]), m, count, places)[0]
        assert np.array_equal(found + tile * first.size, here)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("dim", "k", "slot"), [(40_000, 5000, 3), (40_001, 9000, None), (200_000, 4500, 3)])
def test_values_are_gathered_as_coordinates_are_drawn(dim: int, k: int, slot: int | None, dtype: str) -> None:
    vector, ratios = np.random.default_rng(1).normal(size=dim).astype(dtype), b""
    for round, ratio in enumerate([16, 40, 24, 160]):
        ratios += bytes([ratio])
        key = Key(7, 3 + round, "a", plan=plan_of(slot, 8, 2, ratios))
        for send in (kernel.send_gathered_numpy, compiled.send_gathered):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(kernel, "send_gathered", send)
                sent = Epochs().gathered(key, k, vector[::-1])  # as a view with a step, which has to be copied
            for (at, values), drawn in zip(sent, Epochs().drawn(key, dim, k), strict=True):
                assert isinstance(at.where, Tiled)
                assert isinstance(drawn.where, Tiled)
                assert at[1:] == drawn[1:]
                assert np.array_equal(at.where.coordinates, drawn.where.coordinates)
                assert values.dtype == dtype
                assert np.array_equal(values, vector[::-1][drawn.where.coordinates])


# --- every outcome of a round ---------------------------------------------------------------------


def every_outcome(fixed: Script, heads: int, play: Callable[[], Any]) -> Iterator[tuple[Fraction, Any]]:
    """(probability, what ``play`` returns) for all values of the uniform numbers that are not fixed.

    Of a number below 2^16, the coin, there are two outcomes: below ``heads`` or not.
    """
    digits: list[tuple[int, int]] = []  # (value, how many) of each number, in the order they are asked for
    while True:
        asked: Script = {}
        coins: list[Fraction] = []

        def number(bound: int, at: Any, asked: Script = asked, coins: list[Fraction] = coins) -> int:
            if at in fixed:
                return fixed[at] % bound
            if at not in asked:
                asked[at] = len(asked)
                if asked[at] == len(digits):
                    digits.append((0, 2 if bound == COIN else bound))
            value, _ = digits[asked[at]]
            if bound == COIN:
                coins.append(Fraction((heads, COIN - heads)[value], COIN) * 2)
                return value * (COIN - 1)
            return value

        with numbers_from(number):
            result = play()
        yield math.prod(coins, start=Fraction(1, math.prod(bound for _, bound in digits))), result
        while digits and digits[-1][0] == digits[-1][1] - 1:
            digits.pop()
        if not digits:
            return
        digits[-1] = (digits[-1][0] + 1, digits[-1][1])


@contextmanager
def numbers_from(number: Callable[[int, Any], int]) -> Iterator[None]:
    """Uniform numbers as ``number(bound, where in which stream)`` gives them."""

    def fair(bounds: Any, stream: Any, index: Any) -> Any:
        pairs = zip(bounds.tolist(), index.tolist(), strict=True)
        return np.array([number(bound, (tuple(stream), at)) if bound else 0 for bound, at in pairs], np.int64)

    with using("numpy"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "fair", fair)
        patch.setattr(epochs, "fair", fair)
        yield


def check_every_round(first: Sample, sent: set[int], ratio: int, count: int, rng: np.random.Generator) -> None:
    """Of each round every number that it draws, given the first draw and, at random, the numbers of earlier rounds."""
    dim, k, key = first.dim, first.k, Key(1, 0, "a")
    fixed: Script = {}
    for number in range(1, count + 1):
        now = clock(dim, k, bytes([ratio] * number))
        if not now.scheduled:
            return
        chances: tuple[Any, Any] = (Counter(), Counter())
        for chance, both in every_outcome(fixed, now.heads, partial(_later, key, first, now, 0, dim)):
            assert sum(each.k for each in both) == k
            for counted, at in zip(chances, both, strict=True):
                for coordinate in at.coordinates.tolist():
                    counted[coordinate] += chance
        (a, u), (b, s) = now.probabilities
        assert chances[0] == {c: Fraction(a, u) for c in range(dim) if c not in sent}
        assert chances[1] == {c: Fraction(b, s) for c in sent}

        def played(bound: int, at: Any) -> int:
            return fixed.setdefault(at, int(rng.integers(bound))) % bound

        with numbers_from(played):
            of_u, _ = _later(key, first, now._replace(heads=COIN), 0, dim)  # what is scheduled, sent or not
        sent |= set(of_u.coordinates.tolist())


CASES = [(6, 3, 2, 2), (5, 2, 2, 2), (6, 6, 3, 2), (7, 4, 2, 3), (5, 3, 3, 2), (4, 2, 1, 2), (5, 5, 1, 3), (6, 2, 4, 1)]


@pytest.mark.parametrize(("dim", "size", "k", "count"), CASES)
@pytest.mark.parametrize("ratio", [16, 160])
def test_given_the_past_every_coordinate_has_exactly_its_probability(
    monkeypatch: pytest.MonkeyPatch, dim: int, size: int, k: int, count: int, ratio: int
) -> None:
    """Tiles of any size, with any order of their places."""
    rng = np.random.default_rng(dim * 100 + k)
    for _ in range(4):
        first = Sample(np.uint64(0), np.uint64(0), int(rng.integers(dim)), dim, k, size)
        order = np.concatenate([rng.permutation(np.arange(at, min(at + size, dim))) for at in range(0, dim, size)])

        def walked(first: Sample, own: Any, tiles: Any, m: int, counts: Any, chosen: Any, order: Any = order) -> Any:
            return [
                order[np.repeat(tiles, each) * first.size + places] % first.size
                for each, places in zip(counts, chosen, strict=True)
            ]

        monkeypatch.setattr(kernel, "_walked", walked)
        at = places(first, 0, first.tiles)
        sent = {int(order[tile * size + i]) for tile in range(first.tiles) for i in range(at[tile + 1] - at[tile])}
        check_every_round(first, sent, ratio, count, rng)


@pytest.mark.parametrize(("dim", "k", "slots"), [(5, 2, 3), (7, 3, 2), (6, 1, 4), (7, 5, None), (6, 2, None)])
def test_the_same_with_the_places_that_the_words_give(dim: int, k: int, slots: int | None) -> None:
    rng = np.random.default_rng(dim)
    for seed in range(3):
        key = Key(seed, 0, "a")
        first = sample_of(key, dim, k) if slots is None else balanced_sample_of(key, dim, k, seed % slots, slots)
        check_every_round(first, set(coordinates_of(first).tolist()), 40, 3, rng)


# --- whole epochs ---------------------------------------------------------------------------------


@TWINS
@settings(max_examples=25, deadline=None)
@given(
    st.integers(2, 9000).flatmap(lambda d: st.tuples(st.just(d), st.integers(max(1, d // 12), d))),
    st.integers(16, 160),
    st.sampled_from([None, 0, 2]),
    st.integers(0, 2**64 - 1),
)
def test_an_epoch_goes_through_all_coordinates_and_repeats_none_of_them_before(
    loops: str, size: tuple[int, int], ratio: int, slot: int | None, seed: int
) -> None:
    (dim, k), key = size, Key(seed, 9, "a")
    seen, number = np.zeros(dim, bool), 0
    while not seen.all():
        plan = plan_of(slot, 3, 4, bytes([ratio] * number))
        now = clock(dim, k, plan.ratios)
        with using(loops):
            draws = epoch_samples(key, dim, k, plan)
        if number == 0:
            ((first, sent, of),) = draws
            assert (sent, of) == (k, dim)
            assert first == sm.Balanced().drawn(Key(seed, 4, "a", plan=plan), dim, k)[0].where
            assert isinstance(first, Sample)
            seen[coordinates_of(first)] = True
        else:
            (of_u, *pi_u), (of_s, *pi_s) = draws
            assert isinstance(of_u, np.ndarray)
            assert isinstance(of_s, np.ndarray)
            assert (tuple(pi_u), tuple(pi_s)) == now.probabilities
            assert of_u.size + of_s.size == k == np.unique(np.concatenate([of_u, of_s])).size
            if k == 1:
                return
            assert not seen[of_u].any()
            assert seen[of_s].all()
            assert of_u.size == now.scheduled[-1]
            seen[of_u] = True
        number += 1
    assert clock(dim, k, bytes([ratio] * (number - 1))).left == 0


@TWINS
@pytest.mark.parametrize("slot", [None, 4])
@pytest.mark.parametrize("k", [1, 7, 3000])
def test_a_range_of_tiles_is_what_of_the_whole_lies_there(loops: str, slot: int | None, k: int) -> None:
    dim, plan, key = 20_000, plan_of(slot, 11, 4, bytes([30, 60, 90])), Key(8, 9, "a")
    with using(loops, room=1 << 20):
        whole = found(key, dim, k, plan)
        for lo, hi in ((0, 4096), (4096, 16_384), (16_384, dim), (8192, 8192), (0, 0), (dim, dim), (0, dim)):
            part = found(key, dim, k, plan, lo, hi)
            assert part == [[j for j in each if lo <= j < hi] for each in whole]
    with pytest.raises(sm.InvalidInput, match="give lo ≤ hi"):
        epoch_samples(key, dim, k, plan, 1, 4096)


@TWINS
@pytest.mark.parametrize("slot", [None, 4])
def test_what_is_kept_from_the_last_round_changes_nothing(loops: str, slot: int | None) -> None:
    """Over more rounds than are scheduled together, with a gap of rounds, and then with other ratios."""
    dim, k, key = 9000, 100, Key(8, 9, "a")
    told = [bytes([40] * number) for number in (1, 2, 3, 3, 60, 70, 71)] + [bytes([99] * 4), bytes([99, 16, 20])]
    with using(loops, room=1 << 20):
        kept = [found(key, dim, k, plan_of(slot, 11, 4, ratios)) for ratios in told]
        assert 0 < epochs._kept.used < 1 << 20
    with using(loops):
        assert kept == [found(key, dim, k, plan_of(slot, 11, 4, ratios)) for ratios in told]
        assert epochs._kept.used == 0


def test_loops_go_on_from_each_others_gaps() -> None:
    dim, k, scheduled = 9000, 100, clock(9000, 100, bytes([40] * 30)).scheduled
    epoch = kernel.Epoch(balanced_sample_of(Key(1, 2, "a"), dim, k, 3, 7), (1, 2), (3, 4))
    with using("numpy"):
        early = kernel.later_gaps(epoch, kernel.first_gaps(epoch.first, 0, 3), scheduled[:20])
        late = kernel.later_gaps(epoch, early, scheduled)
    with using("numba"):
        same = kernel.later_gaps(epoch, kernel.first_gaps(epoch.first, 0, 3), scheduled[:20])
        for other in (kernel.later_gaps(epoch, early, scheduled), kernel.later_gaps(epoch, same, scheduled)):
            assert (late.tile, late.rounds) == (other.tile, other.rounds)
            for one, each in zip(late[2:], other[2:], strict=True):
                assert np.array_equal(one, each)


# --- the words ------------------------------------------------------------------------------------


@pytest.mark.parametrize("slots", [0, 8])
def test_the_words_give_every_coordinate_its_share(slots: int) -> None:
    """Of 800 nodes, in two tiles and the fourth round: Σz² over 5000 coordinates."""
    dim, k, nodes, ratios = 5000, 900, 800, bytes([48, 32, 16])
    counts, expected, variance = np.zeros(dim), np.zeros(dim), np.zeros(dim)
    for node in range(nodes):
        key = Key(5 + node // max(slots, 1) if slots else 5, 3, str(node))
        slot = node % slots if slots else None
        scheduled: list[Any] = [coordinates_of(epoch_samples(key, dim, k, plan_of(slot, slots, 0, b""))[0].where)]  # type: ignore[arg-type]
        for number in (1, 2):
            scheduled.append(epoch_samples(key, dim, k, plan_of(slot, slots, 0, ratios[:number]))[0].where)
        (of_u, a, u), (of_s, b, s) = epoch_samples(key, dim, k, plan_of(slot, slots, 0, ratios))
        counts[of_u] += 1
        counts[of_s] += 1
        pi = np.full(dim, a / u)
        pi[np.concatenate(scheduled)] = b / s
        expected += pi
        variance += pi * (1 - pi)
    z = (counts - expected) / np.sqrt(variance)
    assert abs((z @ z - dim) / math.sqrt(2 * dim)) < 4.5
    assert np.abs(z).max() < 5.5


def test_a_plan_of_another_round_or_of_none_is_refused() -> None:
    draw = sm.Epochs()
    for plan in (None, Plan(0, 2), Plan(0, 2, 4), Plan(0, 2, 5, bytes([16])), Plan(0, 2, 4, bytes([16, 16]))):
        with pytest.raises(sm.InvalidInput, match="epochs need the plan of round 5"):
            draw.drawn(Key(1, 5, "a", plan=plan), 10, 3)
    assert len(draw.drawn(Key(1, 5, "a", plan=Plan(0, 2, 5)), 10, 3)) == 1
    assert len(draw.drawn(Key(1, 5, "a", plan=Plan(0, 2, 3, bytes([16, 16]))), 10, 3)) == 2
