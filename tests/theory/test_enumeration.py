"""All samples of tiny rounds, one by one: the estimate is unbiased and its error is the formula's."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from sparsemean.theory import (
    beta_bar,
    correlation,
    error_coefficients,
    estimated_error,
    feedback_factor,
    gains,
    rand_k_mse,
    shared_sample_mse,
    spatial_mse,
    temporal_mse,
    weights,
)
from sparsemean.theory.binomial import pmf
from sparsemean.theory.estimated import Moments

SIZES = [(2, 3, 1), (2, 3, 2), (2, 4, 2), (2, 4, 3), (3, 3, 1), (3, 3, 2), (3, 4, 2), (1, 4, 1), (3, 3, 3)]
RNG = np.random.default_rng(11)
MEMBERS = ["one", "max", "avg", -1, -0.8, 0.4, 1.7, RNG.uniform(0.2, 4.0, 3), RNG.uniform(0.2, 4.0, 3)]


def samples(n: int, d: int, k: int) -> np.ndarray:
    """Every way n nodes can choose k of d coordinates, as 0/1 of shape (ways, n, d)."""
    subsets = [np.isin(np.arange(d), chosen) for chosen in combinations(range(d), k)]
    return np.array(list(product(subsets, repeat=n)), dtype=float)


def decode(x: np.ndarray, sent: np.ndarray, gain: np.ndarray, p: float) -> np.ndarray:
    return np.asarray(gain[sent.sum(axis=1).astype(int)] * (sent * x).mean(axis=1) / p)


def vectors(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(100 * n + d).standard_normal((n, d)) + 0.5


@pytest.mark.parametrize(("n", "d", "k"), SIZES)
@pytest.mark.parametrize("T", MEMBERS, ids=str)
def test_unbiased_with_the_error_of_theorem_1(n, d, k, T):
    x, sent, p = vectors(n, d), samples(n, d, k), k / d
    estimates = decode(x, sent, gains(T, n, p), p)
    assert estimates.mean(axis=0) == pytest.approx(x.mean(axis=0), rel=1e-12, abs=1e-12)
    error = ((estimates - x.mean(axis=0)) ** 2).sum(axis=1).mean()
    r1, r2 = correlation(x)
    assert spatial_mse(r1, r2, n, p, T) == pytest.approx(error, rel=1e-12, abs=1e-24)
    a1, a2 = error_coefficients(T, n, p)
    assert (a1 * r1 + a2 * r2) / n**2 == pytest.approx(error, rel=1e-11, abs=1e-24)


@pytest.mark.parametrize(("n", "d", "k"), SIZES)
@pytest.mark.parametrize("T", MEMBERS, ids=str)
def test_error_estimate_is_unbiased(n, d, k, T):
    x, p = vectors(n, d), k / d
    coefficients = error_coefficients(T, n, p)
    found = [estimated_error(Moments.of(s * x / p), p, coefficients, float(n), n, d)[0] for s in samples(n, d, k)]
    assert np.mean(found) == pytest.approx(spatial_mse(*correlation(x), n, p, T), rel=1e-11, abs=1e-24)


@pytest.mark.parametrize(("n", "d", "k"), [(2, 3, 1), (3, 3, 1), (3, 4, 2)])
@pytest.mark.parametrize("T", ["max", "avg", 1.7])
def test_the_zero_truncated_reading_of_beta_bar_is_biased(n, d, k, T):
    """E over M | M ≥ 1, read literally, is a binomial without its zero; the estimate is then biased."""
    x, sent, p = vectors(n, d), samples(n, d, k), k / d
    inverse = np.concatenate(([0.0], 1.0 / weights(T, n)))
    right = beta_bar(T, n, p)
    truncated = pmf(n, p)[1:] / (1.0 - (1.0 - p) ** n)
    literal = 1.0 / (p * np.sum(truncated * inverse[1:]))
    assert decode(x, sent, right * p * inverse, p).mean(axis=0) == pytest.approx(x.mean(axis=0), rel=1e-12, abs=1e-12)
    off = decode(x, sent, literal * p * inverse, p).mean(axis=0) / x.mean(axis=0)
    assert off == pytest.approx(literal / right)
    assert abs(literal / right - 1.0) > 0.01


@pytest.mark.parametrize(("n", "d", "k"), SIZES)
@pytest.mark.parametrize("T", MEMBERS, ids=str)
def test_temporal_and_combined(n, d, k, T):
    x, sent, p = vectors(n, d), samples(n, d, k), k / d
    expected = x + 0.3 * np.random.default_rng(1).standard_normal((n, d))
    estimates = expected.mean(axis=0) + decode(x - expected, sent, gains(T, n, p), p)
    error = ((estimates - x.mean(axis=0)) ** 2).sum(axis=1).mean()
    assert estimates.mean(axis=0) == pytest.approx(x.mean(axis=0), rel=1e-12, abs=1e-12)
    assert spatial_mse(*correlation(x - expected), n, p, T) == pytest.approx(error, rel=1e-12, abs=1e-24)
    if isinstance(T, str) and T == "one":
        assert temporal_mse(((x - expected) ** 2).sum(), n, p) == pytest.approx(error, rel=1e-12, abs=1e-24)
        assert rand_k_mse(((x - expected) ** 2).sum(), n, p) == pytest.approx(error, rel=1e-12, abs=1e-24)


@pytest.mark.parametrize(("n", "d", "k"), SIZES)
@pytest.mark.parametrize("T", MEMBERS, ids=str)
def test_feedback_factor_is_the_relative_error_on_equal_vectors(n, d, k, T):
    x, sent, p = np.tile(vectors(1, d), (n, 1)), samples(n, d, k), k / d
    error = ((decode(x, sent, gains(T, n, p), p) - x[0]) ** 2).sum(axis=1).mean()
    assert feedback_factor(T, n, p) * (x[0] ** 2).sum() == pytest.approx(error, rel=1e-12, abs=1e-24)


@pytest.mark.parametrize(("n", "d", "k"), SIZES)
def test_shared_sample(n, d, k):
    mean, sent, p = vectors(n, d).mean(axis=0), samples(1, d, k)[:, 0], k / d
    error = ((sent * mean / p - mean) ** 2).sum(axis=1).mean()
    assert shared_sample_mse((mean**2).sum(), p) == pytest.approx(error, rel=1e-12, abs=1e-24)
