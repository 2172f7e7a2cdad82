"""Logistic regression: gradients are those of the loss, and descent learns to classify."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsemean import InvalidInput
from sparsemean._types import Doubles, Ints
from sparsemean.lab.tasks import LogisticRegression
from sparsemean.lab.tasks.gradient_descent import Model
from sparsemean.lab.trace import play

CLASSES, DIM = 3, 4


def labelled(rows: int, seed: int = 0) -> tuple[Doubles, Ints]:
    """Rows around one centre per class."""
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(CLASSES), rng.integers(CLASSES, size=rows - CLASSES)])
    return 3 * np.eye(CLASSES, DIM)[labels] + rng.normal(size=(rows, DIM)), labels


def make(rows: int = 40, cut: int = 25, **settings: Any) -> LogisticRegression:
    x, labels = labelled(rows)
    return LogisticRegression([x[:cut], x[cut:]], [labels[:cut], labels[cut:]], **settings)


def test_the_weighted_mean_of_full_gradients_is_the_gradient_of_the_loss() -> None:
    task = make(batch=None)
    point = np.random.default_rng(1).normal(size=task.dim)
    mean = np.average(task.vectors(Model(point, 0), 0), axis=0, weights=task.weights(Model(point, 0)))
    step = 1e-6 * np.eye(task.dim)
    slopes = [(task.objective(Model(point + h, 0)) - task.objective(Model(point - h, 0))) / 2e-6 for h in step]
    np.testing.assert_allclose(mean, slopes, atol=1e-8)


def test_the_loss_is_the_mean_of_minus_log_probability() -> None:
    x, labels = labelled(40)
    task = make()
    point = np.random.default_rng(1).normal(size=task.dim)
    W, b = point.reshape(CLASSES, DIM + 1)[:, :DIM], point.reshape(CLASSES, DIM + 1)[:, DIM]
    powers = [np.exp(W @ row + b) for row in x]
    losses = [-np.log(p[label] / p.sum()) for p, label in zip(powers, labels, strict=True)]
    assert task.objective(Model(point, 0)) == pytest.approx(np.mean(losses), rel=1e-12)


def test_mini_batches_average_to_the_full_gradient_and_follow_seed_and_round() -> None:
    task, full = make(batch=5), make(batch=None)
    at = Model(np.random.default_rng(1).normal(size=task.dim), seed=3)
    drawn = np.array([task.vectors(at, round) for round in range(2_000)])
    spread = drawn.std(axis=0) / np.sqrt(len(drawn))
    assert np.all(np.abs(drawn.mean(axis=0) - full.vectors(at, 0)) < 5 * spread)
    np.testing.assert_array_equal(task.vectors(at, 7), drawn[7])
    assert not np.array_equal(drawn[7], drawn[8])
    assert not np.array_equal(task.vectors(Model(at.parameters, seed=4), 7), drawn[7])


def test_exact_means_learn_the_classes_and_the_accuracy_is_on_the_test_rows() -> None:
    trace = play(make(400, cut=200, rate=0.5, batch=64, test=labelled(300, seed=9)), None, 100)
    assert trace.objective[-1] < 0.2 < trace.start == pytest.approx(np.log(CLASSES))
    assert trace.metrics["test_accuracy"][-1] > 0.9
    assert make().metrics(make().start(0)) == {}


def test_the_loss_may_be_taken_over_evenly_spaced_rows() -> None:
    x, labels = labelled(40)
    at = Model(np.random.default_rng(1).normal(size=CLASSES * (DIM + 1)), 0)
    some = LogisticRegression([x[::4]], [labels[::4]])
    assert make(loss_rows=10).objective(at) == some.objective(at)
    assert make(loss_rows=100).objective(at) == make().objective(at)


def test_huge_parameters_do_not_overflow() -> None:
    task = make()
    at = Model(np.full(task.dim, 1e200) * np.arange(task.dim), 0)
    assert np.isfinite(task.vectors(at, 0)).all()
    assert np.isfinite(task.objective(at))


@pytest.mark.parametrize("labels", [[[0.5, 1.0]], [[-1, 0]], [[True, False]]])
def test_labels_are_whole_numbers_from_0_on(labels: list[list[float]]) -> None:
    with pytest.raises(InvalidInput, match="labels"):
        LogisticRegression([np.ones((2, 1))], labels)


@pytest.mark.parametrize("setting", [{"rate": 0.0}, {"rate": np.nan}, {"batch": 0}])
def test_settings_that_cannot_learn_are_refused(setting: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        make(**setting)
