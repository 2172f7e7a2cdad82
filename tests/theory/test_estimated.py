"""The server's own error estimate: unbiased, with an honest standard error."""

from __future__ import annotations

import math
from dataclasses import fields
from itertools import product

import numpy as np
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.theory import (
    Moments,
    correlation,
    error_coefficients,
    estimated_error,
    estimated_r1_r2,
    gains,
    r2_variance,
    spatial_mse,
)
from sparsemean.theory.estimated import _variance


def independent_samples(n: int, d: int, p: float):
    """Every 0/1 table, with its probability when each entry is 1 with probability p."""
    for bits in product((0.0, 1.0), repeat=n * d):
        sent = np.array(bits).reshape(n, d)
        yield sent, p ** sent.sum() * (1 - p) ** (n * d - sent.sum())


@pytest.mark.parametrize(("n", "d"), [(1, 3), (2, 3), (3, 2), (4, 2)])
@pytest.mark.parametrize("p", [0.2, 0.7])
@pytest.mark.parametrize(("on_q", "on_c"), [(1.0, 0.0), (0.0, 1.0), (0.7, -0.3), (0.4, 2.0)])
def test_variance_is_unbiased_for_independent_coordinates(n, d, p, on_q, on_c):
    z = np.random.default_rng(n * d).standard_normal((n, d)) + 0.5
    first = second = variance = 0.0
    for sent, chance in independent_samples(n, d, p):
        moments = Moments.of(sent * z / p)
        value = on_q * moments.q + on_c * (moments.s2 - moments.q)
        first, second = first + chance * value, second + chance * value**2
        variance += chance * _variance(moments, p, on_q, on_c)
    assert variance == pytest.approx(second - first**2, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("p", [0.2, 0.7])
def test_r1_and_r2_are_unbiased(p):
    z = np.random.default_rng(2).standard_normal((3, 3)) + 0.5
    found = [chance * np.array(estimated_r1_r2(Moments.of(s * z / p), p)) for s, chance in independent_samples(3, 3, p)]
    assert np.sum(found, axis=0) == pytest.approx(correlation(z), rel=1e-11)


def vectors(kind: str, n: int, d: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    return np.ones((n, d)) if kind == "ones" else rng.standard_normal(d) + rng.standard_normal((n, d))


@pytest.mark.parametrize("kind", ["correlated", "ones"])
@pytest.mark.parametrize("T", ["one", "avg", "max"])
def test_standard_error_with_samples_of_fixed_size(kind, T):
    n, d, k, rounds = 10, 200, 40, 1500
    p, z, rng = k / d, vectors(kind, n, d), np.random.default_rng(13)
    coefficients, gain = error_coefficients(T, n, p), gains(T, n, p)
    truth = spatial_mse(*correlation(z), n, p, T)
    stated, losses = [], []
    for _ in range(rounds):
        sent = np.argsort(rng.random((n, d)), axis=1) < k
        y = sent * z / p
        stated.append(estimated_error(Moments.of(y), p, coefficients, float(n), n, d))
        losses.append(np.sum((gain[sent.sum(axis=0)] * y.mean(axis=0) - z.mean(axis=0)) ** 2))
    error, se = np.array(stated).T
    assert abs(np.mean(losses) - truth) < 4 * np.std(losses) / math.sqrt(rounds)
    if kind == "ones" and T == "one":  # nothing varies: every node's energy is k whatever it sends
        assert error == pytest.approx(truth, rel=1e-12)
        assert se.max() < 1e-5 * truth
        return
    assert abs(error.mean() - truth) < 4 * error.std() / math.sqrt(rounds)
    assert 0.85 < np.mean(se**2) / error.var() < 1.6


def test_weights_and_blocks():
    """Two blocks with their own weights and coefficients: errors add, and one block is the plain case."""
    n, d, p, rng = 4, 6, 0.5, np.random.default_rng(1)
    y, w = rng.standard_normal((n, d)), rng.uniform(1.0, 2.0, (n, 2))
    left, right = Moments.of(w[:, :1] * y[:, :2]), Moments.of(w[:, 1:] * y[:, 2:])
    both = Moments(*(np.array([getattr(left, f.name), getattr(right, f.name)]) for f in fields(Moments)))
    one, two = error_coefficients("avg", n, p), error_coefficients("max", n, p)
    own, cross = np.array([one[0], two[0]]), np.array([one[1], two[1]])
    error, se = estimated_error(both, p, (own, cross), w.sum(axis=0), n, d)
    parts = [
        estimated_error(m, p, c, float(total), n, d)
        for m, c, total in ((left, one, w[:, 0].sum()), (right, two, w[:, 1].sum()))
    ]
    assert error == pytest.approx(parts[0][0] + parts[1][0], rel=1e-12)
    assert se > 0.0
    assert r2_variance(both, p) == pytest.approx([r2_variance(left, p), r2_variance(right, p)])
    assert estimated_r1_r2(both, p)[1] == pytest.approx([left.s2 - left.q, right.s2 - right.q])
    assert both.where(np.array([False, True])).q.tolist() == [right.q]  # type: ignore[union-attr]
    even = estimated_error(both, p, one, 4.0, n, d)
    assert even == pytest.approx(estimated_error(left + right, p, one, 4.0, n, d), rel=1e-10)


def test_moments_add_over_coordinates():
    y = np.random.default_rng(4).standard_normal((3, 8))
    whole, parts = Moments.of(y), Moments.of(y[:, :3]) + Moments.of(y[:, 3:])
    assert list(vars(parts).values()) == pytest.approx(list(vars(whole).values()), rel=1e-12)


def test_corners():
    nothing, some = Moments.of(np.zeros((2, 3))), Moments.of(np.eye(2, 3))
    assert estimated_error(some, 1.0, (0.0, 0.0), 2.0, 2, 3) == (0.0, 0.0)
    assert estimated_error(nothing, 0.5, (1.0, 0.5), 2.0, 2, 3) == (0.0, 0.0)
    assert estimated_error(some, 0.5, (math.inf, math.inf), 2.0, 2, 3) == (math.inf, math.inf)
    assert estimated_error(some, 0.5, (0.0, 0.0), 2.0, 2, 3) == (0.0, 0.0)
    assert all(map(math.isfinite, estimated_error(some, 0.5, (1e290, 1e290), 2.0, 2, 3)))
    assert estimated_error(nothing, 0.5, (1.0, 0.5), 0.0, 2, 3) == (0.0, 0.0)
    assert r2_variance(nothing, 0.5) == 0.0
    with pytest.raises(InvalidInput, match="dim"):
        estimated_error(some, 0.5, (1.0, 0.0), 2.0, 2, 0)
