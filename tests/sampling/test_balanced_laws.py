"""Balanced samples: their laws by enumeration of all randomness in small cases, and over rounds under fixed seeds.

Enumerated is a slow twin, which the library is compared with first. Offset, rotation of each hand, order of the
positions in each hand, and order of the slots are given to it instead of drawn. Tiles are left out: their shuffle is a
bijection of places and coordinates, so what holds for every place holds for every coordinate.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels.hands import hands_of, runs, shuffled
from sparsemean.kernels.sample import STRIDE, Sample, drawn, from_tile, places, shuffle
from sparsemean.sampling import Key, balanced_sample_of, slot_order
from sparsemean.theory import CountLaw

Law = dict[tuple[int, ...], Fraction]
Order = Callable[[int, int, bool], int]
"""The place of position i among so many, which take one more than the others or do not."""


class Slow(NamedTuple):
    """N positions that take k of dim coordinates each, in hands of any size: plain formula, loop over positions."""

    dim: int
    k: int
    hand: int
    slots: int

    def hands(self) -> Iterator[tuple[int, int]]:
        for start in range(0, self.dim, self.hand):
            yield start, min(start + self.hand, self.dim)

    def count_of(self, off: int, position: int, start: int, end: int) -> int:
        own = off + position * self.dim
        return (own + self.slots * end * self.k) // (self.slots * self.dim) - (own + self.slots * start * self.k) // (
            self.slots * self.dim
        )

    def runs(self, off: int, start: int, end: int, order: Order) -> list[range]:
        """The places of a hand that each position takes, counted on beyond the end of the hand.

        Those of a larger count come first. ``order`` arranges those of each kind, numbered by their turn.
        """
        counts = [self.count_of(off, position, start, end) for position in range(self.slots)]
        q = min(counts)
        ahead = (off + self.slots * end * self.k) // self.dim
        by_turn = sorted(range(self.slots), key=lambda position: (position + ahead) % self.slots)
        more, others = ([position for position in by_turn if (counts[position] > q) == kind] for kind in (True, False))
        queue: list[int] = []
        for group in (more, others):
            queue += sorted(group, key=lambda position: order(group.index(position), len(group), group is more))
        found, begin = {}, 0
        for position in queue:
            found[position] = range(begin, begin + counts[position])
            begin += counts[position]
        return [found[position] for position in range(self.slots)]


CASES = [
    Slow(dim, k, hand, slots)
    for hand, dim in itertools.product((1, 2, 3, 4), range(1, 7))
    for k, slots in itertools.product(range(1, dim + 1), range(1, 5))
]


def sample_at(slow: Slow, off: int, position: int, size: int = 4) -> Sample:
    """The library's sample of the same sizes; some words."""
    sample = Sample(np.uint64(0), np.uint64(0), off, slow.dim, slow.k, size)
    return sample.balanced(bytes(range(32)), slow.hand, position, slow.slots)


# --- the slow twin and the library ----------------------------------------------------------------


def test_counts_and_starts_are_those_of_the_twin():
    for slow in CASES:
        if slow.hand == 3:
            continue  # the library's are powers of two
        for off, position in itertools.product(range(slow.dim), range(slow.slots)):
            sample = sample_at(slow, off, position)
            hands, counts, starts = [], [], []
            for b in range(sample.tiles):
                each = hands_of(sample, np.array([b]), min(sample.size, slow.dim - b * sample.size))
                found = runs(each, position, slow.slots)
                hands += [(int(low), int(high)) for low, high in zip(each.low[0], each.high[0], strict=True)]
                counts += found[0][0].tolist()
                starts += (found[1] - each.o)[0].tolist()
            for h, (start, end) in enumerate(slow.hands()):
                run = slow.runs(off, start, end, lambda i, size, _: shuffled(i, size, *hands[h]))[position]  # noqa: B023
                assert counts[h] == len(run) == slow.count_of(off, position, start, end)
                assert counts[h] == 0 or starts[h] == run.start
            assert np.diff(places(sample, 0, sample.tiles)).sum() == sum(counts) == slow.k


def test_a_node_for_itself_has_the_counts_of_an_independent_sample():
    for slow in CASES:
        sample = Sample(np.uint64(0), np.uint64(0), 0, *slow[:2], 4)
        alone, balanced = (
            Counter(
                tuple(places(sample._replace(off=off, slot=slot, slots=slots), 0, sample.tiles))
                for off, slot in itertools.product(range(slow.dim), range(slots))
            )
            for slots in (1, slow.slots)
        )
        assert balanced == Counter({counts: slow.slots * times for counts, times in alone.items()})


@given(st.integers(1, 700), st.integers(1, 150), st.binary(min_size=32, max_size=32), st.integers(1, 7), st.data())
@settings(max_examples=100)
def test_samples_are_those_of_the_twin(dim, slots, digest, w, data):
    slow = Slow(dim, data.draw(st.integers(1, dim) | st.just(dim) | st.integers(1, min(dim, 3))), 1 << w, slots)
    position, size, found = data.draw(st.integers(0, slots - 1)), 128, []
    sample = Sample.keyed(digest, dim, slow.k, size).balanced(digest[::-1], slow.hand, position, slots)
    for b, tile in enumerate(range(0, dim, size)):
        m = min(size, dim - tile)
        draws, _ = shuffle(sample, b * STRIDE, m)
        walk = tile + from_tile(draws, np.arange(m), m)
        hands = hands_of(sample, np.array([b]), m)
        for h, begin in enumerate(range(0, m, slow.hand)):
            order = lambda i, size, _: shuffled(i, size, int(hands.low[0, h]), int(hands.high[0, h]))  # noqa: B023, E731
            end = min(begin + slow.hand, m)
            run = slow.runs(sample.off, tile + begin, tile + end, order)[position]
            found += [walk[begin + (place + hands.o[0, h]) % (end - begin)] for place in run]
    assert drawn(sample).tolist() == found


@given(st.integers(1, 400), st.integers(0, 2**22 - 1), st.integers(0, 2**22 - 1))
def test_slots_are_shuffled_by_a_bijection(size, low, high):
    image = shuffled(np.arange(size), np.full(size, size), low, high)
    assert np.array_equal(np.sort(image), np.arange(size))
    assert shuffled(size // 2, size, low, high) == image[size // 2]


# --- exactness, by enumeration --------------------------------------------------------------------


def law_of_positions(slow: Slow, orders: Sequence[Order]) -> list[Law]:
    """For each place, with which probability which positions take it: over off, o of its hand and these orders."""
    laws = []
    for start, end in slow.hands():
        m = end - start
        found: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(m)]
        for off, order in itertools.product(range(slow.dim), orders):
            takers: list[list[int]] = [[] for _ in range(m)]
            for position, run in enumerate(slow.runs(off, start, end, order)):
                for place in run:
                    takers[place % m].append(position)
            for o, place in itertools.product(range(m), range(m)):
                found[(place + o) % m][tuple(takers[place])] += 1
        total = slow.dim * m * len(orders)
        laws += [{positions: Fraction(n, total) for positions, n in counter.items()} for counter in found]
    return laws


def every_order(slots: int) -> list[Order]:
    """All pairs of bijections, one of the positions that take one more and one of the others, each equally often."""
    every = [list(itertools.permutations(range(size))) for size in range(slots + 1)]

    def order(n: int, i: int, size: int, more: bool) -> int:
        number = n if more else n // math.factorial(slots - size)
        return every[size][number % len(every[size])][i]

    return [partial(order, n) for n in range(math.factorial(slots))]


def senders(law: Law, orders: Sequence[Sequence[int]]) -> Law:
    """The same for slots, each of these orders being equally likely: ``order[slot]`` is a slot's position."""
    found: Law = defaultdict(Fraction)
    for (positions, probability), order in itertools.product(law.items(), orders):
        found[tuple(slot for slot, position in enumerate(order) if position in positions)] += probability / len(orders)
    return found


@pytest.mark.parametrize("dim", range(1, 7))
def test_all_laws_hold_exactly(dim):
    for slow in CASES:
        if slow.dim != dim:
            continue
        share = Fraction(slow.k, dim)
        mean, slots = slow.slots * share, range(slow.slots)
        orders = list(itertools.permutations(slots))
        for law in law_of_positions(slow, every_order(slow.slots)):
            assert all(len(set(positions)) == len(positions) for positions in law)
            sent = senders(law, orders)
            for slot in slots:
                assert sum(probability for who, probability in sent.items() if slot in who) == share
            assert {len(who) for who in sent} <= {math.floor(mean), math.ceil(mean)}
            more = sum(probability for who, probability in sent.items() if len(who) == math.floor(mean) + 1)
            assert more == mean - math.floor(mean)
            for number in {len(who) for who in sent}:
                subsets = {sent.get(who, Fraction(0)) for who in itertools.combinations(slots, number)}
                assert len(subsets) == 1
            if slow.slots > 1:
                both = float(sum(probability for who, probability in sent.items() if {0, 1} <= set(who)))
                known = CountLaw(slow.slots, float(share), slow.slots)
                assert both == pytest.approx(known.pair_factor * float(share) ** 2, abs=1e-12)


@pytest.mark.parametrize("word", [0, 2**64 - 1, 0x88956E6C0D065393])
def test_a_uniform_rotation_of_slots_and_of_hands_is_enough_for_inclusion(word):
    """Beyond 64 slots their order is not uniform among all, nor is that in a hand ever; but the rotations are."""
    low, high = (word >> 20) % 2**22, word >> 42
    for slow in CASES:
        order = np.random.default_rng(slow.dim).permutation(slow.slots)
        rotated = [np.roll(order, o).tolist() for o in range(slow.slots)]
        for law in law_of_positions(slow, [lambda i, size, _: shuffled(i, size, low, high)]):
            sent = senders(law, rotated)
            for slot in range(slow.slots):
                inclusion = sum(probability for who, probability in sent.items() if slot in who)
                assert inclusion == Fraction(slow.k, slow.dim)


# --- over rounds, fixed seeds: |z| < 4.5 for a correct sampler, but for one number in 10^5 ----------


def z(found: np.ndarray, expected: float) -> float:
    """Deviation of the mean over rounds from what it should be, in standard errors; exact where nothing is random."""
    if np.all(found == expected):
        return 0.0
    spread = found.std(ddof=1) / math.sqrt(len(found))
    return abs(float(found.mean()) - expected) / spread if spread > 0 else math.inf


def counts_of_all(slots: int, share: float) -> dict[int, float]:
    """The law of M, the number of slots that send a coordinate."""
    low = math.floor(slots * share)
    return {low: 1 - (slots * share - low), low + 1: slots * share - low}


def expectation(law: dict[int, float], of: Callable[[int], float]) -> float:
    return sum(probability * of(number) for number, probability in law.items())


@pytest.mark.parametrize(("slots", "n"), [(10, 5), (100, 10)])
@pytest.mark.parametrize("share", [0.1, 0.25])
def test_inclusion_pairs_and_attendance_over_rounds(slots, n, share):
    rounds, dim, present = 2000, 160, range(0, slots, slots // n)
    k, law = round(share * dim), counts_of_all(slots, share)
    sent = np.zeros((rounds, n, dim), bool)
    for t, (i, slot) in itertools.product(range(rounds), enumerate(present)):
        # Two tiles, one shuffled by rounds and a short one by ranking.
        sample = balanced_sample_of(Key(2022, t, None), dim, k, slot, slots)._replace(size=128)
        sent[t, i, drawn(sample)] = True

    for i, j in itertools.product(range(n), range(dim)):
        assert z(sent[:, i, j], share) < 4.5, f"slot {present[i]} at coordinate {j}"
    together = expectation(law, lambda number: number * (number - 1)) / (slots * (slots - 1))
    for i, other in itertools.combinations(range(n), 2):
        assert z((sent[:, i] & sent[:, other]).mean(1), together) < 4.5, f"slots {present[i]} and {present[other]}"
    came = sent.sum(1)
    for number in range(n + 1):
        ways = expectation(law, lambda of: math.comb(of, number) * math.comb(slots - of, n - number))  # noqa: B023
        probability = ways / math.comb(slots, n)
        if probability == 0:
            assert not (came == number).any()
        elif probability * rounds * dim > 100:
            assert z((came == number).mean(1), probability) < 4.5, f"{number} of {n} present"


def test_orders_of_few_slots_are_uniform():
    rounds, every = 12_000, list(itertools.permutations(range(4)))
    found = Counter(tuple(slot_order(Key(5, t, None), 3, 4, slot) for slot in range(4)) for t in range(rounds))
    expected = rounds / len(every)
    for order in every:
        assert abs(found[order] - expected) < 4.5 * math.sqrt(expected * (1 - 1 / len(every)))


@pytest.mark.parametrize("slots", [65, 100])
def test_orders_of_many_slots_are_uniform_in_places_and_pairs(slots):
    rounds = 3000
    orders = np.array(
        [[slot_order(Key(6, t, None), 3, slots, slot) for slot in (0, 1, slots // 2)] for t in range(rounds)]
    )
    for group in (np.arange(slots) * 4 // slots, np.arange(slots) % 4):
        width = np.bincount(group)
        for slot, number in itertools.product(range(3), range(4)):
            assert z(group[orders[:, slot]] == number, width[number] / slots) < 4.5
        for (one, other), a, b in itertools.product(itertools.combinations(range(3), 2), range(4), range(4)):
            both = (group[orders[:, one]] == a) & (group[orders[:, other]] == b)
            assert z(both, width[a] * (width[b] - (a == b)) / (slots * (slots - 1))) < 4.5


def test_rounds_are_independent():
    rounds, dim, k = 3000, 160, 40
    sent = np.zeros((rounds, dim), bool)
    for t in range(rounds):
        sent[t, drawn(balanced_sample_of(Key(8, t, None), dim, k, 3, 10))] = True
    assert z((sent[0::2] & sent[1::2]).mean(1), (k / dim) ** 2) < 4.5


# --- who meets whom -------------------------------------------------------------------------------


def sent_by(hand: int | None, rounds: int, dim: int, k: int, slots: int) -> np.ndarray:
    """(rounds, slots, dim): who sends what, in hands of the sampler's size or of another."""
    sent = np.zeros((rounds, slots, dim), bool)
    for t, slot in itertools.product(range(rounds), range(slots)):
        sample = balanced_sample_of(Key(11, t, None), dim, k, slot, slots)
        sent[t, slot, drawn(sample if hand is None else sample._replace(hand=hand))] = True
    return sent


@pytest.mark.parametrize(("hand", "few"), [(None, False), (4096, True)], ids=["hands", "one order for all"])
def test_coordinates_have_many_different_sets_of_senders(hand, few):
    sent = sent_by(hand, 1, 800, 80, 40)[0]
    sets = len(np.unique(sent, axis=1).T)
    assert sets <= 2 * 40 if few else sets > 300


@pytest.mark.parametrize(("hand", "low", "high"), [(None, 0.7, 2.5), (4096, 20.0, 80.0)], ids=["hands", "one order"])
def test_the_error_of_a_round_scatters_as_that_of_independent_sets_of_senders(hand, low, high):
    """Three nodes of ten are far from the others, so that errors are large where two or none of them send.

    The variance of the error of a mean of those who send, over that of sets of senders that are drawn anew for each
    coordinate: 1.7 with hands of 8 places, 44 with one order for all. It is estimated from 400 rounds, with a standard
    error of about √(2/400) = 0.07 of itself, so that the bounds are far beyond 4.5 of these.
    """
    slots, dim, k, rounds = 10, 400, 120, 400
    values = np.random.default_rng(5).normal(size=(slots, dim))
    values[:3] += 5.0
    truth = values.mean(0)
    sets = np.array([np.isin(range(slots), who) for who in itertools.combinations(range(slots), 3)])
    anew = ((sets @ values / 3 - truth) ** 2).var(axis=0).sum()
    sent = sent_by(hand, rounds, dim, k, slots)
    assert (sent.sum(1) == 3).all()
    errors = (((sent * values).sum(1) / 3 - truth) ** 2).sum(1)
    assert low < errors.var(ddof=1) / anew < high
