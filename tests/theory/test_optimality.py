"""T* = 1 + ρ(m − 1)/(n − 1) is the best T (Theorem 2), and only ratios of T matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.theory import (
    error_coefficients,
    feedback_factor,
    fill_gains,
    gains,
    optimal_ratio,
    rand_k_mse,
    spatial_mse,
    weights,
)

nodes = st.integers(2, 12)
shares = st.floats(0.01, 0.99)
seeds = st.integers(0, 2**32 - 1)
inside = st.floats(0.0, 1.0)


@settings(deadline=None)
@given(nodes, shares, inside, seeds, st.sampled_from([1e-3, 0.1, 2.0]))
def test_no_perturbation_lowers_the_error(n, share, where, seed, size):
    ratio = -0.999 + where * (n - 1 + 0.999)
    other = weights(ratio, n) * np.exp(size * np.random.default_rng(seed).standard_normal(n))
    best = spatial_mse(1.0, ratio, n, share, ratio)
    assert spatial_mse(1.0, ratio, n, share, other) >= best * (1 - 1e-12)
    assert best <= rand_k_mse(1.0, n, share) * (1 + 1e-12)


@settings(deadline=None)
@given(nodes, shares, inside)
def test_the_named_members_are_best_at_their_ratio(n, share, where):
    r2 = optimal_ratio(1.0, where * n - 1.0, n)
    for name, ratio in (("one", 0.0), ("max", n - 1.0), ("avg", n / 2)):
        assert gains(name, n, share) == pytest.approx(gains(ratio, n, share), rel=1e-12)
        assert spatial_mse(1.0, r2, n, share, name) == pytest.approx(spatial_mse(1.0, r2, n, share, ratio), rel=1e-11)
    assert feedback_factor("max", n, share) <= feedback_factor("avg", n, share) * (1 + 1e-12)


@settings(deadline=None)
@given(nodes, shares, seeds, st.floats(1e-200, 1e200))
def test_only_ratios_of_T_matter(n, share, seed, scale):
    table = np.random.default_rng(seed).uniform(0.1, 10.0, n)
    assert gains(scale * table, n, share) == pytest.approx(gains(table, n, share), rel=1e-12)
    assert fill_gains(scale * table, n) == pytest.approx(fill_gains(table, n), rel=1e-12)
    found, plain = error_coefficients(scale * table, n, share), error_coefficients(table, n, share)
    assert found == pytest.approx(plain, rel=1e-11, abs=1e-12)


@settings(deadline=None)
@given(nodes, shares, inside, seeds)
def test_the_error_is_never_negative(n, share, where, seed):
    table = np.random.default_rng(seed).uniform(0.01, 100.0, n)
    assert spatial_mse(1.0, optimal_ratio(1.0, where * n - 1.0, n), n, share, table) >= 0.0
