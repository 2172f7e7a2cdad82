"""The error from the spread within coordinates: unbiased in every tiny round, for any T and attendance."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from sparsemean import theory
from sparsemean.theory import CountLaw, within_coefficients

from .truth import MEMBERS, SHARES, Outcomes, balanced, error, factors, given, independent, mean, vector


def expected(outcomes: Outcomes, x: list[Fraction]) -> tuple[float, float]:
    """E[W] and E[Z] of one coordinate."""

    def sums(sent: tuple[int, ...]) -> tuple[Fraction, Fraction]:
        here = [v for v, xi in zip(x, sent, strict=True) if xi]
        if not here:
            return Fraction(0), Fraction(0)
        s, q = sum(here, Fraction(0)), sum((v * v for v in here), Fraction(0))
        return q - s * s / len(here), (s / len(here)) ** 2

    return float(mean(outcomes, lambda sent: sums(sent)[0])), float(mean(outcomes, lambda sent: sums(sent)[1]))


@pytest.mark.parametrize("p", SHARES, ids=str)
@pytest.mark.parametrize("N", [None, 1, 2, 3, 4, 5, 6])
def test_unbiased(N, p):
    for n in range(1, (N or 4) + 1):
        outcomes = independent(n, p) if N is None else balanced(N, p, tuple(range(n)))
        vectors = [vector(n), vector(n, 1), [Fraction(1)] * n]
        sums = [expected(outcomes, x) for x in vectors]
        for T in MEMBERS:
            found = within_coefficients(given(T), CountLaw(n, float(p), N))
            if not any(sum(sent) > 1 and chance for sent, chance in outcomes.items()):
                assert found is None
                continue
            assert found is not None
            factor = factors(outcomes, n, T)
            for x, (w, z) in zip(vectors, sums, strict=True):
                exact = float(error(outcomes, factor, x))
                sizes = abs(found[0]) * w + found[1] * z
                assert found[0] * w + found[1] * z == pytest.approx(exact, rel=1e-12, abs=1e-14 * sizes + 1e-16)


@pytest.mark.parametrize("T", ["one", "max", MEMBERS[-1]], ids=str)
@pytest.mark.parametrize(("N", "n", "p"), [(3, 3, Fraction(1, 2)), (4, 3, Fraction(1, 2)), (3, 2, Fraction(3, 4))])
def test_independent_noise_adds_its_variance_over_n_squared(N, n, p, T):
    outcomes, x, noise = balanced(N, p, tuple(range(n))), vector(n), [Fraction(i + 1, 4) for i in range(n)]
    found = within_coefficients(given(T), CountLaw(n, float(p), N))
    assert found is not None
    stated = 0.0
    for signs in product((-1, 1), repeat=n):
        seen = [v + sign * sigma for v, sign, sigma in zip(x, signs, noise, strict=True)]
        stated += float(np.dot(found, expected(outcomes, seen))) / 2**n
    variance = float(sum((sigma * sigma for sigma in noise), Fraction(0)))
    exact = error(outcomes, factors(outcomes, n, T), x, noise)
    assert stated + variance / n**2 == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("slots", [None, 100, 130])
def test_sharper_than_the_plug_in_where_nodes_are_alike(slots):
    n, d, k, rounds, rng = 100, 500, 50, 200, np.random.default_rng(5)
    p, law = k / d, CountLaw(n, k / d, slots)
    x = rng.standard_normal(d) + 0.03 * rng.standard_normal((n, d))
    found, coefficients = within_coefficients("max", law), theory.error_coefficients("max", n, p, slots=slots)
    assert found is not None
    stated, plug_in = [], []
    for _ in range(rounds):
        sent = drawn(rng, n, d, k, slots)
        count = sent.sum(axis=0)
        s, q, m = (sent * x).sum(axis=0), (sent * x * x).sum(axis=0), np.maximum(count, 1)
        stated.append(found[0] * np.sum(q - s * s / m) + found[1] * np.sum((s / m) ** 2))
        moments = theory.Moments.of(sent * x / p)
        plug_in.append(theory.estimated_error(moments, p, coefficients, n, n, d, pair_factor=law.pair_factor)[0])
    exact = theory.spatial_mse(*theory.correlation(x), n, p, "max", slots=slots)
    assert abs(np.mean(stated) - exact) < 4.5 * np.std(stated) / math.sqrt(rounds)
    assert abs(np.mean(plug_in) - exact) < 4.5 * np.std(plug_in) / math.sqrt(rounds)
    if slots == n:  # M cannot vary: the two are the same
        assert stated == pytest.approx(plug_in, rel=1e-10)
    else:
        assert np.std(stated) < 0.1 * np.std(plug_in)


def drawn(rng: np.random.Generator, n: int, d: int, k: int, slots: int | None) -> np.ndarray:
    """Who sends what, (n, d): own samples, or runs of one permutation in a random order of the slots."""
    if slots is None:
        return np.asarray(np.argsort(rng.random((n, d)), axis=1) < k)
    place = np.argsort(rng.permutation(d))
    start = rng.permutation(slots)[:n] * k
    return np.asarray((place[None, :] - start[:, None]) % d < k)


def test_what_no_two_nodes_send_says_nothing():
    assert within_coefficients("avg", CountLaw(1, 0.5)) is None
    assert within_coefficients("avg", CountLaw(5, 0.2, 5)) is None
    assert within_coefficients("avg", CountLaw(5, 1.0)) == (0.0, 0.0)
    assert within_coefficients(-1, CountLaw(5000, 0.1)) == (math.inf, math.inf)
