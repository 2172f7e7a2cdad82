"""Linear regression: descent with exact means ends at least squares."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean._types import Doubles
from sparsemean.lab.tasks import LinearRegression
from sparsemean.lab.tasks.descent import Model
from sparsemean.lab.trace import play

SIZES = (30, 50, 40)


def measured(seed: int = 0) -> tuple[Doubles, Doubles]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(sum(SIZES), 4))
    return x, x @ [1.0, -2.0, 0.5, 0.0] + 3.0 + 0.1 * rng.normal(size=len(x))


def make(rate: float = 0.5, batch: int | None = None) -> LinearRegression:
    x, y = measured()
    cuts = np.cumsum(SIZES)[:-1]
    return LinearRegression(np.split(x, cuts), np.split(y, cuts), test=measured(seed=1), rate=rate, batch=batch)


def test_exact_means_end_at_least_squares_over_all_rows() -> None:
    x, y = measured()
    with_bias = np.column_stack([x, np.ones(len(x))])
    best, squares, *_ = np.linalg.lstsq(with_bias, y)
    task = make()
    trace = play(task, None, 100)
    assert trace.objective[-1] == pytest.approx(squares[0] / len(x) / 2, rel=1e-9)
    assert trace.metrics["test_rmse"][-1] == pytest.approx(0.1, rel=0.3)
    at_best = Model(best.astype(np.float64), 0)
    np.testing.assert_allclose(
        np.average(task.vectors(at_best, 0), axis=0, weights=task.weights(at_best)), np.zeros(5), atol=1e-12
    )


def test_the_mean_gradient_is_that_of_the_objective() -> None:
    task = make()
    point = np.random.default_rng(2).normal(size=task.dim)
    mean = np.average(task.vectors(Model(point, 0), 0), axis=0, weights=task.weights(Model(point, 0)))
    step = 1e-4 * np.eye(task.dim)
    slopes = [(task.objective(Model(point + h, 0)) - task.objective(Model(point - h, 0))) / 2e-4 for h in step]
    np.testing.assert_allclose(mean, slopes, atol=1e-9)


def test_mini_batches_come_near_it() -> None:
    exact, drawn = (play(make(0.1, batch), None, 150, seed=5) for batch in (None, 10))
    assert exact.objective[-1] < drawn.objective[-1] < 2 * exact.objective[-1]
