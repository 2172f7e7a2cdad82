"""Balanced draws: gains, errors and own estimates against every outcome of tiny rounds, and known figures."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from sparsemean import theory
from sparsemean.errors import InvalidInput
from sparsemean.theory import CountLaw, Moments
from sparsemean.theory.estimated import error_terms

from .truth import (
    MEMBERS,
    SHARES,
    balanced,
    energies,
    error,
    exact_T,
    factors,
    given,
    mean_inverse,
    product_mean,
    vector,
)


def close(exact: Fraction, absolute: float = 1e-15):
    return pytest.approx(float(exact), rel=1e-12, abs=absolute)


@pytest.mark.parametrize("p", SHARES, ids=str)
@pytest.mark.parametrize("N", range(1, 7))
def test_gains_and_error_are_those_of_all_outcomes(N, p):
    for n, T in product(range(1, N + 1), MEMBERS):
        outcomes, share, member = balanced(N, p, tuple(range(n))), float(p), given(T)
        factor = factors(outcomes, n, T)
        gains = theory.gains(member, n, share, slots=N)
        for sent, each in factor.items():
            assert gains[sum(sent)] * np.array(sent) / share == pytest.approx([float(f) for f in each], rel=1e-13)
        assert theory.beta_bar(member, n, share, slots=N) == close(1 / mean_inverse(outcomes, T, 0))
        a1, a2 = theory.error_coefficients(member, n, share, slots=N)
        assert a1 == close(product_mean(outcomes, factor, 0, 0) - 1)
        assert a2 == close(product_mean(outcomes, factor, 0, n - 1) - 1 if n > 1 else Fraction(0))
        equal = error(outcomes, factor, [Fraction(1)] * n)
        assert theory.feedback_factor(member, n, share, slots=N) == close(equal)
        for x in (vector(n), vector(n, 1), [Fraction(1)] * n, [Fraction(i == 0) - Fraction(1, n) for i in range(n)]):
            r1, r2 = map(float, energies(x))
            assert theory.spatial_mse(r1, r2, n, share, member, slots=N) == close(error(outcomes, factor, x), 1e-16)


@pytest.mark.parametrize("T", ["avg", MEMBERS[-1]], ids=str)
@pytest.mark.parametrize("p", [Fraction(1, 4), Fraction(2, 5), Fraction(1, 2)], ids=str)
def test_any_nodes_may_be_absent(p, T):
    """Every attendance of five slots, weights folded into the values."""
    weight = [Fraction(w) for w in (1, 3, 2, 5, 4)]
    for n in range(1, 6):
        for came in combinations(range(5), n):
            total = sum((weight[slot] for slot in came), Fraction(0))
            y = [n * weight[slot] * v / total for slot, v in zip(came, vector(n), strict=True)]
            outcomes = balanced(5, p, came)
            exact = error(outcomes, factors(outcomes, n, T), y)
            r1, r2 = map(float, energies(y))
            assert theory.spatial_mse(r1, r2, n, float(p), given(T), slots=5) == close(exact)


@pytest.mark.parametrize("T", ["one", "avg", MEMBERS[-1]], ids=str)
@pytest.mark.parametrize("p", SHARES, ids=str)
@pytest.mark.parametrize(("N", "n"), [(1, 1), (3, 1), (3, 2), (3, 3), (5, 4)])
def test_the_servers_estimates_are_unbiased(N, n, p, T):
    law, share, weight = CountLaw(n, float(p), N), float(p), 5.0
    outcomes, x = balanced(N, p, tuple(range(n))), vector(n)
    coefficients = theory.error_coefficients(given(T), n, share, slots=N)
    kappa, total = law.pair_factor, np.zeros(4)
    for sent, chance in outcomes.items():
        y = np.array([[float(xi * v) / share] for xi, v in zip(sent, x, strict=True)])
        moments, error = Moments.of(y), math.nan
        if kappa > 0.0:
            error, _ = theory.estimated_error(moments, share, coefficients, weight, n, 1, pair_factor=kappa)
            assert error_terms(moments, share, *coefficients, kappa) == pytest.approx(error * weight**2, abs=1e-12)
        bound = theory.error_bound(moments, share, coefficients[0], weight)
        r1, r2 = theory.estimated_r1_r2(moments, share, kappa)
        total += float(chance) * np.array([r1, r2, error, bound])
    r1, r2 = map(float, energies(x))
    exact = theory.spatial_mse(r1, r2, n, share, given(T), slots=N) * n**2 / weight**2
    assert total[0] == pytest.approx(r1, rel=1e-12)
    assert total[3] == pytest.approx((coefficients[0] + 1.0) * r1 / weight**2, rel=1e-12)
    if kappa > 0.0:
        assert total[1] == pytest.approx(r2, rel=1e-12, abs=1e-13)
        assert total[2] == pytest.approx(exact, rel=1e-12, abs=1e-14 * coefficients[0])
    else:
        assert np.isnan(total[1:3]).all()
        assert coefficients == pytest.approx((1.0 / share - 1.0, -1.0), rel=1e-14)
        assert total[3] >= exact


@pytest.mark.parametrize("T", ["one", "avg", MEMBERS[-1]], ids=str)
@pytest.mark.parametrize(("N", "n", "p"), [(3, 3, Fraction(1, 2)), (4, 3, Fraction(1, 2)), (3, 2, Fraction(3, 4))])
def test_independent_noise_adds_a1_plus_1_times_its_variance(N, n, p, T):
    outcomes, x, noise = balanced(N, p, tuple(range(n))), vector(n), [Fraction(i + 1, 4) for i in range(n)]
    exact = error(outcomes, factors(outcomes, n, T), x, noise)
    a1, a2 = theory.error_coefficients(given(T), n, float(p), slots=N)
    r1, r2 = map(float, energies(x))
    variance = float(sum((sigma * sigma for sigma in noise), Fraction(0)))
    assert (a1 * r1 + a2 * r2 + (a1 + 1.0) * variance) / n**2 == close(exact)


@pytest.mark.parametrize("n", [3, 10, 49, 1000])
@pytest.mark.parametrize("s", [1, 2, 3])
def test_equal_vectors_are_averaged_exactly_where_np_is_whole(n, s):
    assert theory.spatial_mse(n, n * (n - 1.0), n, s / n, "one", slots=n) == 0.0
    assert theory.feedback_factor("one", n, s / n, slots=n) == 0.0
    r1, r2 = theory.correlation(np.tile(np.random.default_rng(s).standard_normal(20), (n, 1)))
    assert theory.spatial_mse(r1, r2, n, s / n, "one", slots=n) <= 1e-14 * theory.rand_k_mse(r1, n, s / n)


@pytest.mark.parametrize("n", [2, 3, 10, 100, 1000])
@pytest.mark.parametrize("where", [-1.0, -0.5, 0.0, 0.3, 0.99, 1.0])
def test_the_plain_mean_in_closed_form(n, where):
    r2 = where * (n - 1.0) if where > 0.0 else where
    for s in {1, 2, n // 2, n}:
        p = s / n
        exact = (1.0 / p - 1.0) * (1.0 - r2 / (n - 1)) / n**2
        assert theory.spatial_mse(1.0, r2, n, p, "one", slots=n) == pytest.approx(exact, rel=1e-12, abs=1e-18)
    for p in (1.0 / n, 0.7 / n, 1e-4 / n):
        exact = ((1.0 / p - 1.0) - r2) / n**2
        for T in ("one", "max", 0.7):
            assert theory.spatial_mse(1.0, r2, n, p, T, slots=n) == pytest.approx(
                exact, rel=1e-12, abs=1e-14 / p / n**2
            )


@pytest.mark.parametrize("where", [0.0, 0.5, 0.9, 0.99, -0.5])
@pytest.mark.parametrize(("n", "N", "p"), [(10, 10, 0.25), (7, 10, 0.3), (30, 40, 0.13)])
def test_the_ratio_is_still_the_best_weighting(n, N, p, where):
    ratio = where * (n - 1) if where > 0.0 else where
    best = theory.spatial_mse(1.0, ratio, n, p, ratio, slots=N)
    rng = np.random.default_rng(3)
    for size in (1e-3, 0.1, 1.0):
        other = theory.weights(ratio, n) * np.exp(size * rng.standard_normal(n))
        assert theory.spatial_mse(1.0, ratio, n, p, other, slots=N) >= best * (1.0 - 1e-12)


def exact_law(n: int, N: int, p: Fraction, sent: int) -> dict[int, Fraction]:
    """P(M = m | so many given nodes sent), times P(they send)/p^sent."""
    low, found = math.floor(N * p), dict[int, Fraction]()
    for s, chance in ((low, 1 - (N * p - low)), (low + 1, N * p - low)):
        all_send = chance * Fraction(math.perm(s, sent), math.perm(N, sent)) / p**sent
        for m in range(max(sent, n + s - N), min(n, s) + 1):
            ways = math.comb(s - sent, m - sent) * math.comb(N - s, n - m)
            found[m] = found.get(m, Fraction(0)) + all_send * Fraction(ways, math.comb(N - sent, n - sent))
    return found


@pytest.mark.parametrize("T", ["max", "avg", Fraction(-1, 2), Fraction(7, 10)], ids=str)
@pytest.mark.parametrize(
    ("n", "N", "p"),
    [
        (1000, 1000, Fraction(1, 8)),
        (900, 1000, Fraction(1, 8)),
        (1000, 1000, Fraction(1, 3)),
        (150, 1000, Fraction(617, 5000)),
        (200, 200, Fraction(3, 1000)),
    ],
    ids=str,
)
def test_many_nodes_in_fractions(n, N, p, T):
    values = exact_T(T, n)
    sent, pair, count = (exact_law(n, N, p, given) for given in (1, 2, 0))
    scale = sum(v / values[m - 1] for m, v in sent.items())
    own = sum(v / values[m - 1] ** 2 for m, v in sent.items()) / scale**2 / p - 1
    cross = sum(v / values[m - 1] ** 2 for m, v in pair.items()) / scale**2 - 1
    equal = sum(v * ((m / values[m - 1] if m else 0) / scale / n / p - 1) ** 2 for m, v in count.items())
    share = float(p)
    a1, a2 = theory.error_coefficients(given(T), n, share, slots=N)
    assert a1 == pytest.approx(float(own), rel=1e-12)
    assert a2 == pytest.approx(float(cross), rel=1e-12, abs=4e-16)
    assert theory.feedback_factor(given(T), n, share, slots=N) == pytest.approx(float(equal), rel=1e-11, abs=1e-30)
    for ratio in (Fraction(-1), Fraction(-1, 2), Fraction(n, 3), Fraction(n - 1)):
        shared = ratio / (n - 1)
        exact = (own * (1 - shared) + n * equal * shared) / n**2
        assert theory.spatial_mse(1.0, float(ratio), n, share, given(T), slots=N) == pytest.approx(
            float(exact), rel=1e-11, abs=1e-30
        )


@pytest.mark.parametrize("T", ["one", "max", "avg", -1, -0.999999, 0.5, 1e6])
@pytest.mark.parametrize(("n", "N"), [(1, 1), (1, 5), (2, 2), (3, 50), (50, 50), (1000, 1001)])
@pytest.mark.parametrize("p", [1e-300, 1e-20, 1e-5, 0.02, 0.5, 1 - 1e-16, 1.0])
def test_no_nan_and_no_warning(T, n, N, p):
    gains = theory.gains(T, n, p, slots=N)
    assert np.isfinite(gains).all()
    assert (gains >= 0.0).all()
    numbers = [*theory.error_coefficients(T, n, p, slots=N), theory.feedback_factor(T, n, p, slots=N)]
    numbers += theory.within_coefficients(T, CountLaw(n, p, N)) or ()
    for ratio in (-1.0, 0.0, (n - 1) / 2, n - 1.0):
        numbers.append(theory.spatial_mse(2.0, 2.0 * ratio, n, p, T, slots=N))
        assert numbers[-1] >= 0.0
    assert not any(math.isnan(number) for number in numbers)
    if p == 1.0:
        assert not any(numbers)


def test_ratio_minus_one_is_the_limit_where_all_may_send():
    """Two or three of three senders are planned: all weight goes to the coordinates that everybody sent."""
    law = CountLaw(3, 0.9, 3)
    assert theory.gains(-1, 3, 0.9, slots=3) == pytest.approx([0.0, 0.0, 0.0, 1.0 / law.given_sent[3]], rel=1e-15)
    assert theory.gains(-1 + 1e-13, 3, 0.9, slots=3) == pytest.approx(theory.gains(-1, 3, 0.9, slots=3), abs=1e-8)
    assert theory.error_coefficients(-1, 3, 0.9, slots=3) == pytest.approx([1.0 / law.count[3] - 1.0] * 2, rel=1e-12)
    assert theory.spatial_mse(1.0, -1.0, 3, 0.9, -1, slots=3) == 0.0


def test_ratio_minus_one_is_the_plain_formula_where_all_never_send():
    gains = theory.gains(-1, 4, 0.6, slots=4)  # two or three of four
    assert gains[:4] == pytest.approx(theory.gains(-1 + 1e-13, 4, 0.6, slots=4)[:4], rel=1e-11)
    found = theory.spatial_mse(1.0, -1.0, 4, 0.6, -1, slots=4)
    assert found == pytest.approx(theory.spatial_mse(1.0, -1.0, 4, 0.6, -1 + 1e-13, slots=4), rel=1e-11)
    assert found > 0.01


def gain_over_independent(n: int, p: float, where: float, slots: int) -> float:
    """Error of Spatial(Opt) with independent draws over that of a balanced draw, ρ known to both."""
    ratio = where * (n - 1)
    return theory.spatial_mse(1.0, ratio, n, p, ratio) / theory.spatial_mse(1.0, ratio, n, p, ratio, slots=slots)


@pytest.mark.parametrize(
    ("n", "slots", "p", "where", "gain"),
    [
        (10, 10, 0.1, 0.0, 1.0),
        (10, 10, 0.1, 0.5, 1.7),
        (10, 10, 0.1, 0.9, 6.6),
        (10, 10, 0.1, 0.97, 20.0),
        (10, 10, 0.1, 0.99, 60.0),
        (10, 10, 0.3, 0.5, 1.4),
        (10, 10, 0.3, 0.9, 2.5),
        (10, 10, 0.3, 0.99, 13.7),
        (9, 10, 0.3, 0.9, 2.7),
        (7, 10, 0.3, 0.9, 2.7),
        (5, 10, 0.3, 0.9, 1.75),
        (100, 100, 0.05, 0.99, 4.4),
    ],
)
def test_the_gain_over_independent_draws(n, slots, p, where, gain):
    assert gain_over_independent(n, p, where, slots) == pytest.approx(gain, rel=0.025)


def test_weights_are_needed_where_np_is_not_whole():
    ratio = 0.99 * 9
    assert theory.spatial_mse(1.0, ratio, 10, 0.25, "one", slots=10) / ((1 + ratio) / 100) == pytest.approx(
        0.043, rel=0.02
    )
    assert theory.spatial_mse(1.0, ratio, 10, 0.25, ratio, slots=10) / ((1 + ratio) / 100) == pytest.approx(
        0.0032, rel=0.02
    )


@pytest.mark.parametrize("n", [2, 3, 10])
@pytest.mark.parametrize("where", [0.0, 0.6, 1.0])
def test_the_share_for_an_error_is_the_smallest_one(n, where):
    r2 = where * (n - 1.0)
    shares = np.linspace(0.002, 1.0, 500)
    errors = np.array([theory.spatial_mse(1.0, r2, n, share, "one", slots=n) for share in shares])
    for wanted in (0.0, 1e-6, 0.01, 0.1, 0.7, 30.0):
        found = theory.share_for_error(wanted, 1.0, r2, n, slots=n)
        assert theory.spatial_mse(1.0, r2, n, found, "one", slots=n) <= wanted
        assert not np.any((errors <= wanted) & (shares < found * (1.0 - 1e-9)))


def test_the_share_for_an_error_meets_it_with_nodes_absent_and_any_weighting():
    for T in ("max", "avg", -0.5, 3.0):
        for wanted in (1e-4, 0.003, 0.2):
            found = theory.share_for_error(wanted, 1.0, 3.0, 8, T, slots=11)
            assert theory.spatial_mse(1.0, 3.0, 8, found, T, slots=11) <= wanted


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.gains("one", 3, 0.5, slots=2),
        lambda: theory.spatial_mse(1.0, 0.0, 3, 0.5, "one", slots=2),
        lambda: theory.share_for_error(0.1, 1.0, 0.0, 3, slots=2),
        lambda: theory.mixed_gains("one", [3], [0.5], slots=[2]),
    ],
)
def test_fewer_slots_than_nodes_are_refused(call):
    with pytest.raises(InvalidInput, match="slots must be at least the 3 nodes"):
        call()


def test_where_no_two_nodes_meet_the_correlation_is_unknown():
    moments = Moments.of([[2.0, 0.0], [0.0, 2.0]])
    assert theory.shrunk_correlation(moments, 4.0, 2, 0.5, pair_factor=0.0) == 0.0
    assert all(map(math.isnan, theory.estimated_error(moments, 0.5, (1.0, -1.0), 2.0, 2, 2, pair_factor=0.0)))
    for wrong in (-1.0, math.nan, math.inf):
        with pytest.raises(InvalidInput, match="pair_factor"):
            theory.estimated_r1_r2(moments, 0.5, wrong)


def test_the_shrunk_correlation_is_that_of_r2_over_kappa():
    moments, kappa = Moments.of([[2.0, 0.0, 1.0], [2.0, 2.0, 0.0], [1.0, 3.0, 2.0]]), 0.8
    plain = theory.shrunk_correlation(moments, 60.0, 3, 0.5)
    assert theory.shrunk_correlation(moments, 60.0, 3, 0.5, pair_factor=kappa) == pytest.approx(plain / kappa)


def test_estimates_of_blocks_may_have_factors_of_their_own():
    parts = [Moments.of([[2.0, 1.0], [2.0, 3.0]]), Moments.of([[1.0, 0.0], [0.0, 1.0]])]
    both = Moments(*(np.array(pair) for pair in zip(*(vars(part).values() for part in parts), strict=True)))
    found, _ = theory.estimated_error(both, 0.5, (1.0, -0.3), 2.0, 2, 4, pair_factor=np.array([0.5, 2.0]))
    each = [
        theory.estimated_error(part, 0.5, (1.0, -0.3), 2.0, 2, 4, pair_factor=kappa)[0]
        for part, kappa in zip(parts, (0.5, 2.0), strict=True)
    ]
    assert found == pytest.approx(sum(each), rel=1e-13)
    bound = theory.error_bound(both, 0.5, 1.0, np.array([2.0, 0.0]))
    assert bound == theory.error_bound(parts[0], 0.5, 1.0, 2.0)
