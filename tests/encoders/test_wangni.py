"""Wangni: the probabilities are the best ones for the budget, and the draw has exactly these."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.encoders.wangni import level, systematic
from sparsemean.sampling import Key

VECTORS = {
    "normal": np.random.default_rng(1).normal(size=9),
    "heavy": np.random.default_rng(2).standard_cauchy(size=9),
    "ties": np.array([2.0, -2.0, 1.0, 1.0, -1.0, 1.0, 0.0]),
    "equal": np.full(7, -3.0),
    "one giant": np.array([1e6, 1e-3, -1e-3, 2e-3, 0.0, 1e-3]),
    "sparse": np.array([0.0, 5.0, 0.0, 0.0, -1.0, 0.0]),
    "zero": np.zeros(5),
    "one entry": np.array([4.0]),
    "float32": np.random.default_rng(3).normal(size=8).astype(np.float32),
}
CASES = [(name, k) for name, vector in VECTORS.items() for k in range(1, vector.size + 1)]


def best_chances(vector: Doubles, k: int) -> Doubles:
    """min(1, λ|x|) with Σp = min(k, nnz), λ by bisection."""
    magnitude = np.abs(np.asarray(vector, np.float64))
    if np.count_nonzero(magnitude) <= k:
        return (magnitude > 0).astype(np.float64)
    low, high = 0.0, k / magnitude[magnitude > 0].min()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1.0, middle * magnitude).sum() < k else (low, middle)
    return np.asarray(np.minimum(1.0, high * magnitude))


@pytest.mark.parametrize(("name", "k"), CASES)
def test_integrated_over_the_start_chances_mean_and_variance_are_exact(all_starts, name: str, k: int) -> None:
    vector = VECTORS[name]
    chances, vectors = all_starts(sm.Wangni(k), vector)
    p = best_chances(vector, k)
    scale = max(1.0, float(np.abs(vector).max()))
    np.testing.assert_allclose(chances @ (vectors != 0), p, rtol=0, atol=1e-12)
    assert p.sum() == pytest.approx(min(k, np.count_nonzero(vector)), abs=1e-12)
    np.testing.assert_allclose(chances @ vectors, vector, rtol=0, atol=1e-12 * scale)
    sent = p > 0
    x = vector[sent].astype(np.float64)
    variance = chances @ np.sum((vectors - vector) ** 2, axis=1)
    assert variance == pytest.approx(np.sum(x**2 * (1 / p[sent] - 1)), rel=1e-10, abs=1e-12 * scale**2)
    assert variance <= sm.Wangni(k).omega(vector.size) * np.sum(x**2) * (1 + 1e-12) + 1e-12
    assert np.count_nonzero(vectors, axis=1).max(initial=0) <= k


@pytest.mark.parametrize("name", ["normal", "heavy", "ties", "float32"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_no_other_chances_of_this_budget_give_less_variance(name: str, k: int) -> None:
    """A numeric optimiser, started elsewhere, ends at the same Σ x²/p and never below it."""
    x = np.abs(VECTORS[name].astype(np.float64))
    x = x[x > 0]

    def cost(p: Doubles) -> float:
        return float(np.sum(x**2 / p))

    found = minimize(
        cost,
        np.full(x.size, k / x.size),
        jac=lambda p: -(x**2) / p**2,
        bounds=[(1e-9, 1.0)] * x.size,
        constraints={"type": "eq", "fun": lambda p: p.sum() - k, "jac": lambda p: np.ones_like(p)},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    ours = cost(best_chances(x, k))
    assert found.success
    assert ours <= found.fun * (1 + 1e-7)
    assert found.fun == pytest.approx(ours, rel=1e-5)


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=30), st.data())
def test_level_solves_for_the_budget(vector: list[float], data) -> None:
    k = data.draw(st.integers(1, len(vector)))
    magnitude = np.abs(vector)
    common = level(np.array(vector), k)
    if np.count_nonzero(magnitude) <= k:
        assert common == 0.0
    else:
        assert np.minimum(1.0, magnitude / common).sum() == pytest.approx(k, rel=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0, 1, exclude_max=True))
def test_a_systematic_sample_has_the_rounded_size(chances: list[float], start: float) -> None:
    chosen = systematic(np.array(chances), start)
    total = float(np.cumsum(chances)[-1])
    assert math.floor(total - 1e-9) <= chosen.size <= math.ceil(total + 1e-9)
    assert all(chances[i] > 0 for i in chosen)


def test_a_float32_vector_of_many_small_entries_loses_none_of_them() -> None:
    """A running sum in float32 would be off by percents here; three quarters of the weight lie in the first half."""
    vector = np.ones(200_000, np.float32)
    vector[:100_000] = 3.0
    parts = [sm.Wangni(40).encode(vector, Key(0, trial, "a"), {}).parts[0] for trial in range(100)]
    assert {part.values.size for part in parts} == {40}
    assert {np.count_nonzero(part.coordinates < 100_000) for part in parts} <= {30, 31}


def test_certain_entries_travel_as_they_are_and_the_rest_as_one_magnitude() -> None:
    vector = np.array([10.0, -9.0, 1.0, -1.0, 2.0, 0.5, 0.0, 0.25])
    common = level(vector, 4)
    for trial in range(50):
        (part,) = sm.Wangni(4).encode(vector, Key(0, trial, "a"), {}).parts
        assert part.values[:2].tolist() == [10.0, -9.0]
        np.testing.assert_allclose(part.values[2:], np.copysign(common, vector[part.coordinates[2:]]), rtol=1e-15)


def test_fewer_bytes_than_values_at_places() -> None:
    """Signs instead of numbers is the point of the common magnitude."""
    vector = np.random.default_rng(0).normal(size=1_000)
    run = sm.Run(sm.named("wangni", k=200), dim=1_000)
    assert len(sm.Client(run, "a").encode(vector, 0)) < 64 + 200 * 4
