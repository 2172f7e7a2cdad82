"""Balanced samples: their laws by enumeration of all randomness in small cases, and over rounds under fixed seeds.

Enumerated is a slow twin, which the library is compared with first. Offset, rotation and shuffle of each tile, and the
order of the slots are given to it instead of drawn.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels.sample import STRIDE, Sample, drawn, from_tile, places, run_starts, shuffle
from sparsemean.sampling import Key, balanced_sample_of, slot_order

Law = dict[tuple[int, ...], Fraction]


class Slow(NamedTuple):
    """N positions that take k of dim coordinates each, as specified: plain formula, loop over positions."""

    dim: int
    k: int
    size: int
    slots: int

    def tiles(self) -> Iterator[tuple[int, int]]:
        for start in range(0, self.dim, self.size):
            yield start, min(start + self.size, self.dim)

    def taken(self, off: int, position: int, end: int) -> int:
        return (off + position * self.dim + self.slots * end * self.k) // (self.slots * self.dim)

    def runs(self, off: int, start: int, end: int) -> Iterator[range]:
        """The places of a tile that each position takes, counted on beyond the end of the tile."""
        begin = 0
        for position in range(self.slots):
            count = self.taken(off, position, end) - self.taken(off, position, start)
            yield range(begin, begin + count)
            begin += count


CASES = [
    Slow(dim, k, size, slots)
    for size, dim in itertools.product((1, 2, 4), range(1, 8))
    for k, slots in itertools.product(range(1, dim + 1), range(1, 6))
]


# --- the slow twin and the library ----------------------------------------------------------------


def test_counts_and_starts_are_those_of_the_twin():
    for slow in CASES:
        for off, position in itertools.product(range(slow.dim), range(slow.slots)):
            sample = Sample(np.uint64(0), np.uint64(0), off, *slow[:3], position, slow.slots)
            ends = [0, *(end for _, end in slow.tiles())]
            assert places(sample, 0, sample.tiles).tolist() == [slow.taken(off, position, end) for end in ends]
            runs = [list(slow.runs(off, *tile))[position] for tile in slow.tiles()]
            assert run_starts(sample, np.arange(sample.tiles)).tolist() == [run.start for run in runs]
            assert np.diff(places(sample, 0, sample.tiles)).tolist() == [len(run) for run in runs]


def test_a_node_for_itself_has_the_counts_of_an_independent_sample():
    for slow in CASES:
        sample = Sample(np.uint64(0), np.uint64(0), 0, *slow[:3])
        alone, balanced = (
            Counter(
                tuple(places(sample._replace(off=off, slot=slot, slots=slots), 0, sample.tiles))
                for off, slot in itertools.product(range(slow.dim), range(slots))
            )
            for slots in (1, slow.slots)
        )
        assert balanced == Counter({counts: slow.slots * times for counts, times in alone.items()})


@given(st.integers(1, 700), st.integers(1, 150), st.binary(min_size=32, max_size=32), st.data())
@settings(max_examples=150)
def test_samples_are_those_of_the_twin(dim, slots, digest, data):
    slow = Slow(dim, data.draw(st.integers(1, dim) | st.just(dim) | st.integers(1, min(dim, 3))), 128, slots)
    position = data.draw(st.integers(0, slots - 1))
    sample, found = Sample.keyed(digest, *slow[:3], position, slots), []
    for b, (start, end) in enumerate(slow.tiles()):
        draws, o = shuffle(sample, b * STRIDE, end - start)
        order = start + from_tile(draws, o, end - start, end - start)
        run = list(slow.runs(sample.off, start, end))[position]
        found += [order[place % (end - start)] for place in run]
    assert drawn(sample).tolist() == found


# --- exactness, by enumeration --------------------------------------------------------------------


def law_of_positions(slow: Slow) -> list[Law]:
    """For each coordinate, with which probability which positions take it: over off, and o and shuffle of its tile."""
    laws = []
    for start, end in slow.tiles():
        m = end - start
        found: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(m)]
        for off in range(slow.dim):
            runs = list(slow.runs(off, start, end))
            for o, walk in itertools.product(range(m), itertools.permutations(range(m))):
                takers: list[list[int]] = [[] for _ in range(m)]
                for position, run in enumerate(runs):
                    for place in run:
                        takers[walk[(o + place) % m]].append(position)
                for counter, positions in zip(found, takers, strict=True):
                    counter[tuple(positions)] += 1
        total = slow.dim * m * math.factorial(m)
        laws += [{positions: Fraction(n, total) for positions, n in counter.items()} for counter in found]
    return laws


def senders(law: Law, orders: Sequence[Sequence[int]]) -> Law:
    """The same for slots, each of these orders being equally likely: ``order[slot]`` is a slot's position."""
    found: Law = defaultdict(Fraction)
    for (positions, probability), order in itertools.product(law.items(), orders):
        found[tuple(slot for slot, position in enumerate(order) if position in positions)] += probability / len(orders)
    return found


@pytest.mark.parametrize("dim", range(1, 8))
def test_all_laws_hold_exactly(dim):
    for slow in CASES:
        if slow.dim != dim:
            continue
        share = Fraction(slow.k, dim)
        mean, slots = slow.slots * share, range(slow.slots)
        orders = list(itertools.permutations(slots))
        for law in law_of_positions(slow):
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


def test_a_uniform_rotation_of_the_slots_is_enough_for_inclusion():
    """Beyond 64 slots their order is not uniform among all, but the rotation is."""
    for slow in CASES:
        order = np.random.default_rng(slow.dim).permutation(slow.slots)
        rotated = [np.roll(order, o).tolist() for o in range(slow.slots)]
        for law in law_of_positions(slow):
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
