"""The law of the counts: every outcome of tiny balanced draws, exact binomials for a million nodes, and refusals."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

import mpmath as mp
import numpy as np
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.theory import CountLaw
from sparsemean.theory.binomial import count_given_sent, pmf
from sparsemean.theory.hypergeometric import pmf as hypergeometric

from .truth import SHARES, balanced, mean


@pytest.mark.parametrize("N", range(1, 7))
@pytest.mark.parametrize("p", SHARES, ids=str)
def test_a_balanced_law_is_that_of_all_outcomes(N, p):
    for n in range(1, N + 1):
        law, outcomes = CountLaw(n, float(p), N), balanced(N, p, tuple(range(n)))
        pair = mean(outcomes, lambda sent: sent[0] * sent[-1]) if n > 1 else Fraction(0)
        for m in range(n + 1):
            at = {sent: chance for sent, chance in outcomes.items() if sum(sent) == m}
            assert law.count[m] == pytest.approx(float(mean(at, lambda sent: 1)), rel=1e-13, abs=1e-16)
            assert law.given_sent[m] == pytest.approx(float(mean(at, lambda sent: sent[0]) / p), rel=1e-13, abs=1e-16)
            both = float(mean(at, lambda sent: sent[0] * sent[-1]) / pair) if pair else 0.0
            assert law.given_pair[m] == pytest.approx(both, rel=1e-13, abs=1e-16)
        assert law.everyone_may_send == any(all(sent) for sent in outcomes)
        factor = pair / p**2 if n > 1 else Fraction(1)
        assert law.pair_factor == pytest.approx(float(factor), rel=1e-13)
        assert law.pair_excess == pytest.approx(float(factor - 1), rel=1e-13, abs=1e-16)


@pytest.mark.parametrize("N", range(1, 6))
@pytest.mark.parametrize("p", SHARES, ids=str)
def test_the_law_does_not_depend_on_who_came(N, p):
    for n in range(1, N + 1):
        first = balanced(N, p, tuple(range(n)))
        assert all(balanced(N, p, came) == first for came in combinations(range(N), n))


@pytest.mark.parametrize(("N", "k", "d"), [(1, 2, 3), (2, 1, 3), (2, 2, 3), (3, 1, 3), (3, 2, 3), (4, 3, 7), (4, 5, 6)])
def test_runs_of_one_circular_permutation_are_a_balanced_draw(N, k, d):
    """The slot in place r takes the r-th run of k places of a shared order; slots are permuted uniformly."""
    ways, came = Counter[tuple[int, ...]](), tuple(range(N))
    for place in range(d):
        covering = [r for r in range(N) if (place - r * k) % d < k]
        for order in permutations(range(N)):
            ways[tuple(int(order[slot] in covering) for slot in came)] += 1
    found = {sent: Fraction(times, d * math.factorial(N)) for sent, times in ways.items()}
    assert found == balanced(N, Fraction(k, d), came)


@pytest.mark.parametrize(
    ("N", "k", "d"), [(10, 1, 10), (10, 3, 10), (3, 1, 3), (49, 1, 49), (7, 93, 217), (10**6, 7, 10)]
)
def test_a_whole_number_of_planned_senders_is_one_in_spite_of_rounding(N, k, d):
    assert CountLaw(N, k / d, N).planned == ((N * k // d, 1.0),)


@pytest.mark.parametrize(("N", "p"), [(10, 0.3 + 1e-12), (10, 0.3 - 1e-12), (3, 1e-300), (1, 0.25)])
def test_a_number_near_a_whole_one_is_not(N, p):
    (lower, fewer), (upper, more) = CountLaw(1, p, N).planned
    assert upper == lower + 1
    assert fewer + more == 1.0
    assert lower * fewer + upper * more == pytest.approx(N * p, rel=1e-15)


def test_many_slots_and_few_nodes_draw_as_if_independently():
    law, alone = CountLaw(5, 0.3, 10**7), CountLaw(5, 0.3)
    assert law.count == pytest.approx(alone.count, rel=1e-5)
    assert law.given_sent == pytest.approx(alone.given_sent, rel=1e-5)
    assert law.pair_factor == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_independent_draws_are_binomial_to_the_bit(n):
    law = CountLaw(n, 0.3)
    assert law.count.tolist() == pmf(n, 0.3).tolist()
    assert law.given_sent.tolist() == count_given_sent(n, 0.3).tolist()
    assert law.given_pair[2:].tolist() == (pmf(n - 2, 0.3).tolist() if n > 1 else [])
    assert (law.pair_factor, law.pair_excess, law.everyone_may_send) == (1.0, 0.0, True)


def test_equal_laws_are_one_key_and_cannot_be_changed():
    law = CountLaw(3, 0.5, 4)
    same: tuple[Any, ...] = np.int64(3), np.float64(0.5), np.int64(4)
    assert {law: 1}[CountLaw(*same)] == 1
    assert law != CountLaw(3, 0.5)
    with pytest.raises(ValueError, match="read-only"):
        law.count[0] = 1.0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0, 0.5, 3), "n must be"),
        ((3, 0.0, 3), "share"),
        ((3, 0.5, 2), "slots must be at least the 3 nodes"),
        ((3, 0.5, 3.5), "slots"),
        ((1, 0.5, 0), "slots"),
        ((1, 0.5, True), "slots"),
    ],
)
def test_refusals(arguments, says):
    with pytest.raises(InvalidInput, match=says):
        CountLaw(*arguments)


def test_independent_draws_plan_nothing():
    with pytest.raises(InvalidInput, match="slots"):
        _ = CountLaw(3, 0.5).planned


@pytest.mark.parametrize("N", [*range(7), 31])
def test_hypergeometric_in_fractions(N):
    for s in range(N + 1):
        for n in range(N + 1):
            found = hypergeometric(N, s, n)
            exact = [Fraction(math.comb(s, m) * math.comb(N - s, n - m), math.comb(N, n)) for m in range(n + 1)]
            assert [v == 0.0 for v in found] == [v == 0 for v in exact]
            assert found == pytest.approx(list(map(float, exact)), rel=1e-13)


@pytest.mark.parametrize(
    ("N", "s", "n"),
    [
        (1000, 300, 900),
        (10**5, 10, 99_000),
        (10**6, 300_000, 500_000),
        (10**6, 999_990, 700_000),
        (10**6, 2000, 1000),
        (10**6, 10**6, 10**6),
    ],
)
def test_hypergeometric_of_a_million(N, s, n):
    found = hypergeometric(N, s, n)
    assert len(found) == n + 1
    assert found.sum() == pytest.approx(1.0, abs=1e-14)
    likely = np.flatnonzero(found > 1e-15)
    with mp.workdps(50):

        def log_choose(a: int, b: int) -> mp.mpf:
            return mp.loggamma(a + 1) - mp.loggamma(b + 1) - mp.loggamma(a - b + 1)

        for m in {int(likely[0]), int(found.argmax()), int(likely[-1])}:
            exact = mp.exp(log_choose(s, m) + log_choose(N - s, n - m) - log_choose(N, n))
            assert abs(found[m] / exact - 1) < 5e-13


@pytest.mark.parametrize("arguments", [(3, 4, 1), (3, 1, 4), (-1, 0, 0), (3, -1, 1), (3, 1, 1.5)])
def test_impossible_draws_are_refused(arguments):
    with pytest.raises(InvalidInput):
        hypergeometric(*arguments)
