"""Draws over an epoch: exact given the whole past, by enumeration; whole epochs; and the words themselves."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean.kernels.sample import Sample
from sparsemean.kernels.sample import drawn as coordinates_of
from sparsemean.sampling import Key, Plan, clock, coordinates, epoch_samples, epochs
from sparsemean.sampling.clock import COIN
from sparsemean.sampling.epochs import _later, _share

Script = dict[tuple[tuple[int, ...], int], int]


def every_outcome(
    fixed: Script, heads: int, play: Callable[[], Any], patch: Callable[[Any], None]
) -> Iterator[tuple[Fraction, Any]]:
    """(probability, what ``play`` returns) for all values of the uniform numbers that are not fixed.

    Of a number below 2^16, the coin, there are two outcomes: below ``heads`` or not.
    """
    digits: list[tuple[int, int]] = []  # (value, how many) of each number, in the order they are asked for
    while True:
        asked: Script = {}
        coins: list[Fraction] = []

        def fair(bound: int, stream: Sequence[int], index: int, asked: Script = asked, coins: Any = coins) -> int:
            at = (tuple(stream), index)
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

        patch(fair)
        result = play()
        yield math.prod(coins, start=Fraction(1, math.prod(bound for _, bound in digits))), result
        while digits and digits[-1][0] == digits[-1][1] - 1:
            digits.pop()
        if not digits:
            return
        digits[-1] = (digits[-1][0] + 1, digits[-1][1])


CASES = [(6, 3, 2, 2), (5, 2, 2, 2), (6, 6, 3, 2), (7, 4, 2, 3), (5, 3, 3, 2), (4, 2, 1, 2), (5, 5, 1, 3), (6, 2, 4, 1)]


@pytest.mark.parametrize(("dim", "size", "k", "rounds"), CASES)
@pytest.mark.parametrize("ratio", [16, 160])
def test_given_the_past_every_coordinate_has_exactly_its_probability(
    monkeypatch: pytest.MonkeyPatch, dim: int, size: int, k: int, rounds: int, ratio: int
) -> None:
    """Pasts at random, with any first draw and order of a tile; of the last round every number that it draws."""
    rng = np.random.default_rng(dim * 100 + k)
    key = Key(1, 0, "a")
    for _ in range(6):
        off, tiles = int(rng.integers(dim)), -(-dim // size)
        begin = [(off + min(tile * size, dim) * k) // dim for tile in range(tiles + 1)]
        spans = [range(tile * size, min((tile + 1) * size, dim)) for tile in range(tiles)]
        order = np.concatenate([rng.permutation(span) for span in spans])
        first: Any = SimpleNamespace(dim=dim, k=k, size=size, tiles=tiles)
        monkeypatch.setattr(epochs, "places", lambda *_, begin=begin: np.array(begin))
        monkeypatch.setattr(epochs, "_kept_order", lambda *_, order=order: order)
        sent = {int(order[t * size + i]) for t in range(tiles) for i in range(begin[t + 1] - begin[t])}
        fixed: Script = {}
        for number in range(1, rounds + 1):
            now = clock(dim, k, bytes([ratio] * number))
            if not now.scheduled:
                break
            chances: tuple[Any, Any] = (Counter(), Counter())
            asked: Script = {}
            for chance, found in every_outcome(
                fixed,
                now.heads,
                partial(_later, key, first, now, 0, dim),
                lambda fair: monkeypatch.setattr(epochs, "fair", fair),
            ):
                assert sum(map(len, found)) == k
                for counted, at in zip(chances, found, strict=True):
                    for coordinate in at.tolist():
                        counted[coordinate] += chance
            (a, u), (b, s) = now.probabilities
            assert chances[0] == {c: Fraction(a, u) for c in range(dim) if c not in sent}
            assert chances[1] == {c: Fraction(b, s) for c in sent}

            def played(
                bound: int, stream: Sequence[int], index: int, asked: Script = asked, fixed: Script = fixed
            ) -> int:
                at = (tuple(stream), index)
                if at not in fixed:
                    asked.setdefault(at, int(rng.integers(bound)))
                return fixed.get(at, asked.get(at, 0)) % bound

            monkeypatch.setattr(epochs, "fair", played)
            for_all = now if k > 1 else now._replace(heads=1 << 16)  # what is scheduled, sent or not
            of_u, _ = _later(key, first, for_all, 0, dim)
            sent |= set(of_u.tolist())
            fixed |= asked


sizes = st.integers(2, 9000).flatmap(lambda d: st.tuples(st.just(d), st.integers(max(1, d // 12), d)))


@settings(max_examples=25, deadline=None)
@given(sizes, st.integers(16, 160), st.sampled_from([None, 0, 2]), st.integers(0, 2**64 - 1))
def test_an_epoch_goes_through_all_coordinates_and_repeats_none_of_them_before(
    size: tuple[int, int], ratio: int, slot: int | None, seed: int
) -> None:
    dim, k = size
    seen, number = np.zeros(dim, bool), 0
    while not seen.all():
        plan = Plan(slot, 0 if slot is None else 3, 4, bytes([ratio] * number))
        now, found = clock(dim, k, plan.ratios), epoch_samples(Key(seed, 9, "a"), dim, k, plan)
        if number == 0:
            ((first, sent, of),) = found
            assert (sent, of) == (k, dim)
            assert first == sm.Balanced().drawn(Key(seed, 4, "a", plan=plan), dim, k)[0].where
            assert isinstance(first, Sample)
            seen[coordinates_of(first)] = True
        else:
            (of_u, *pi_u), (of_s, *pi_s) = found
            assert (tuple(pi_u), tuple(pi_s)) == now.probabilities
            assert of_u.size + of_s.size == k == np.unique(np.concatenate([of_u, of_s])).size
            if k > 1:
                assert not seen[of_u].any()
                assert seen[of_s].all()
                assert of_u.size == now.scheduled[-1]
                seen[of_u] = True
            else:
                return
            if dim > 4096:  # a range of tiles is what of it lies there
                parts = [epoch_samples(Key(seed, 9, "a"), dim, k, plan, *ends) for ends in ((0, 4096), (4096, dim))]
                for whole, *cut in zip(found, *parts, strict=True):
                    assert np.array_equal(np.concatenate([each.where for each in cut]), whole.where)
        number += 1
    assert clock(dim, k, bytes([ratio] * (number - 1))).left == 0


def test_the_words_give_every_coordinate_its_share() -> None:
    """Of 800 nodes, in two tiles and the fourth round: Σz² over 5000 coordinates, and nodes by nodes."""
    dim, k, nodes, plan = 5000, 900, 800, Plan(None, 0, 0, bytes([48, 32, 16]))
    counts, expected, variance = np.zeros(dim), np.zeros(dim), np.zeros(dim)
    for node in range(nodes):
        key = Key(5, 3, str(node))
        (of_u, a, u), (of_s, b, s) = epoch_samples(key, dim, k, plan)
        counts[of_u] += 1
        counts[of_s] += 1
        scheduled: list[Any] = [coordinates(Key(5, 0, str(node)), dim, k)]
        for number in (1, 2):
            scheduled.append(epoch_samples(key, dim, k, Plan(None, 0, 0, plan.ratios[:number]))[0].where)
        pi = np.full(dim, a / u)
        pi[np.concatenate(scheduled)] = b / s
        expected += pi
        variance += pi * (1 - pi)
    z = (counts - expected) / np.sqrt(variance)
    assert abs((z @ z - dim) / math.sqrt(2 * dim)) < 4.5
    assert np.abs(z).max() < 5.5


@given(st.integers(1, 2**40), st.data())
def test_shares_of_long_vectors_are_those_of_whole_numbers(total: int, data: st.DataObject) -> None:
    r, off = data.draw(st.integers(1, total)), data.draw(st.integers(0, total - 1))
    before = data.draw(st.lists(st.integers(0, total), min_size=1, max_size=5))
    found = _share(off, r, total, np.array(before, np.int64))
    assert found.tolist() == [(off + r * each) // total for each in before]


def test_a_plan_of_another_round_or_of_none_is_refused() -> None:
    draw = sm.Epochs()
    for plan in (None, Plan(0, 2), Plan(0, 2, 4), Plan(0, 2, 5, bytes([16])), Plan(0, 2, 4, bytes([16, 16]))):
        with pytest.raises(sm.InvalidInput, match="epochs need the plan of round 5"):
            draw.drawn(Key(1, 5, "a", plan=plan), 10, 3)
    assert len(draw.drawn(Key(1, 5, "a", plan=Plan(0, 2, 5)), 10, 3)) == 1
    assert len(draw.drawn(Key(1, 5, "a", plan=Plan(0, 2, 3, bytes([16, 16]))), 10, 3)) == 2
