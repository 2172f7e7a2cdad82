"""Sizes in proportion to weights, and the correlation of values that meet where nodes send different shares."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean import theory
from sparsemean.errors import InvalidInput

WEIGHTS = st.lists(st.floats(0.0, 1e6), min_size=1, max_size=60).filter(lambda weights: max(weights) > 0)


@given(WEIGHTS, st.integers(1, 500), st.integers(1, 16), st.data())
def test_sizes_keep_to_budget_levels_and_order(
    weights: list[float], dim: int, levels: int, data: st.DataObject
) -> None:
    k = data.draw(st.floats(1.0, dim))
    sizes = theory.sizes_for_weights(weights, k, dim, levels=levels)
    assert len(sizes) == len(weights)
    assert 1 <= min(sizes) <= max(sizes) <= dim
    assert np.mean(sizes) <= k
    assert len(set(sizes)) <= levels
    by_weight = [size for _, size in sorted(zip(weights, sizes, strict=True))]
    assert by_weight == sorted(by_weight)


def test_sizes_are_in_proportion_and_use_the_budget() -> None:
    weights = np.random.default_rng(0).lognormal(size=30)
    sizes = np.array(theory.sizes_for_weights(weights, 800, 4000))
    assert 0.99 * 800 < sizes.mean() <= 800
    free = sizes < 4000
    relative = weights[free] / sizes[free]
    assert relative.max() / relative.min() < 2**0.35, "within a step of a quarter octave, and roundings"
    assert len(set(sizes)) <= 16 < len(set(theory.sizes_for_weights(weights, 800, 4000, levels=30)))
    assert theory.sizes_for_weights([1.0] * 5, 7.9, 20) == [7] * 5
    assert theory.sizes_for_weights([1.0, 1e-300, 0.0], 10, 20) == [20, 1, 1]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (([], 1, 5), "one finite number for each node"),
        (([1.0, -1.0], 1, 5), "none negative"),
        (([0.0, 0.0], 1, 5), "not all 0"),
        (([1.0, float("nan")], 1, 5), "finite"),
        (([[1.0]], 1, 5), "for each node"),
        (([1.0], 0.5, 5), "between 1 and dim = 5"),
        (([1.0], 6, 5), "between 1 and dim = 5"),
    ],
)
def test_what_has_no_sizes_is_refused(arguments: tuple[Any, ...], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        theory.sizes_for_weights(*arguments)


def test_pairs_that_meet_are_those_of_the_definition() -> None:
    shares, nodes = (Fraction(1, 2), Fraction(1, 5), Fraction(1)), (3, 1, 2)
    members = [(s, p) for s, p in enumerate(shares) for _ in range(nodes[s])]
    exact = np.zeros((3, 3))
    for i, (s, p) in enumerate(members):
        for l, (t, q) in enumerate(members):  # noqa: E741
            exact[s, t] += float(p * q) * (i != l)
    found = theory.meeting_shares(nodes, [float(p) for p in shares])
    np.testing.assert_allclose(found, exact, rtol=1e-14, atol=1e-16)
    np.testing.assert_array_equal(theory.meeting_shares(np.array([nodes, nodes]).T, [0.5, 0.2, 1.0])[..., 1], found)


def correlation(y: np.ndarray, shares: np.ndarray) -> float:
    """κ of values y (n, d) with these shares."""
    r2 = float(np.sum(y.sum(axis=0) ** 2) - np.sum(y**2))
    energy = float(np.sum(y**2 / shares[:, None]))
    return r2 / float(shares.sum() ** 2 - np.sum(shares**2)) / (energy / float(shares.sum()))


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("similar", [0.1, 0.9, 1.0])
@pytest.mark.parametrize("case", ["thin links", "in proportion"])
def test_its_weights_are_nearly_the_best_of_their_kind(case: str, similar: float, slots: bool) -> None:
    """Against the least exact error over a grid of T = 1 + κ(m − 1), and against κ = (R2/R1)/(n − 1) of the vectors."""
    rng, n = np.random.default_rng(3), 24
    x = np.sqrt(similar) * rng.normal(size=300) + np.sqrt(1 - similar) * rng.normal(size=(n, 300))
    shares, weights = np.where(np.arange(n) % 2, 0.2, 0.02), np.ones(n)
    if case == "in proportion":
        weights = rng.lognormal(size=n)
        shares = np.array(theory.sizes_for_weights(weights, 40, 200, levels=6)) / 200
    p, label = np.unique(shares, return_inverse=True)
    y = (n * weights / weights.sum())[:, None] * x
    nodes, (r1, r2) = np.bincount(label).tolist(), theory.mixed_correlation(y, label, len(p))

    def error(kappa: float) -> float:
        return theory.mixed_mse(r1, r2, nodes, p.tolist(), kappa * (n - 1), slots=nodes if slots else None)

    best = min(error(kappa) for kappa in np.linspace(0.0, 1.0, 101))
    found, whole = error(correlation(y, shares)), theory.correlation(y)
    plain = error(whole[1] / whole[0] / (n - 1))
    assert found < (1.06 if slots else 1.02) * best
    assert found < (0.9 if case == "in proportion" and similar > 0.5 and not slots else 1.06) * plain
