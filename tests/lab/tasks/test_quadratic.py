"""The quadratic case study: Temporal reaches the optimum within Theorem 4's bound, Rand-k stalls."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean import InvalidInput, named, theory
from sparsemean.lab.tasks import Quadratic
from sparsemean.lab.trace import play


def test_exact_means_shrink_the_distance_by_the_same_factor_each_round() -> None:
    task = Quadratic.normal(nodes=4, dim=6, rate=0.25)
    trace = play(task, None, 40)
    np.testing.assert_allclose(trace.objective, trace.start * 0.75 ** (2 * np.arange(1, 41)), rtol=1e-6)
    assert trace.start == pytest.approx(task.optimum @ task.optimum)


def test_temporal_converges_within_the_bound_and_rand_k_stalls() -> None:
    task = Quadratic.normal(nodes=8, dim=60, rate=0.125, seed=1)
    assert theory.learning_rate_limit(task.nodes, 0.25) == 0.125
    temporal, plain = (play(task, named(name, k=0.25), 90, seed=1) for name in ("rand-k-temporal", "rand-k"))
    assert np.all(temporal.objective <= task.bound(np.arange(1, 91)))
    assert temporal.objective[-1] < 1e-6 * temporal.start
    assert np.all(plain.objective[45:] > 0.1 * plain.start)
    assert temporal.mse[-1] < 1e-6 * temporal.mse[0]
    assert plain.mse[-1] > 0.5 * plain.mse[0]


def test_the_bracket_of_the_bound_is_the_distance_and_the_gradient_energy_at_the_optimum() -> None:
    minima = np.random.default_rng(0).normal(size=(3, 5))
    task = Quadratic(minima, rate=0.5)
    energy = np.mean([np.sum((minima.mean(axis=0) - e) ** 2) for e in minima])
    assert task.gradient_energy == pytest.approx(energy)
    assert task.bound([0, 1]) == pytest.approx(np.array([1, 0.5]) * (np.sum(minima.mean(axis=0) ** 2) + energy))


def test_the_seed_draws_the_minima() -> None:
    same, other = Quadratic.normal(3, 4, seed=2).optimum, Quadratic.normal(3, 4, seed=3).optimum
    np.testing.assert_array_equal(same, Quadratic.normal(3, 4, seed=2).optimum)
    assert not np.array_equal(same, other)


@pytest.mark.parametrize("minima", [[1.0, 2.0], [[]], [[np.inf]]])
def test_minima_are_a_table_of_finite_numbers(minima: list[object]) -> None:
    with pytest.raises(InvalidInput, match="minima"):
        Quadratic(minima)  # type: ignore[arg-type]
