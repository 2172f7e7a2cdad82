"""A network trained by its nodes: steps follow the gradient of the loss, each row counts once an epoch, it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sparsemean import InvalidInput
from sparsemean._types import Doubles, Ints
from sparsemean.lab.tasks import FederatedNetwork
from sparsemean.lab.tasks.gradient_descent import Model
from sparsemean.lab.trace import play

CLASSES, DIM = 3, 4


def labelled(rows: int) -> tuple[Doubles, Ints]:
    """Rows around one centre per class."""
    rng = np.random.default_rng(0)
    labels = np.concatenate([np.arange(CLASSES), rng.integers(CLASSES, size=rows - CLASSES)])
    return 3 * np.eye(CLASSES, DIM)[labels] + rng.normal(size=(rows, DIM)), labels


def make(cut: int = 25, **settings: Any) -> FederatedNetwork:
    x, labels = labelled(40)
    return FederatedNetwork([x[:cut], x[cut:]], [labels[:cut], labels[cut:]], hidden=5, **settings)


def test_with_one_batch_the_mean_change_is_a_step_down_the_gradient_of_the_loss() -> None:
    task = make(batch=None, rate=0.7)
    at = task.start(seed=1)
    mean = np.average(task.vectors(at, 0), axis=0, weights=task.weights(at))
    slopes = [
        (task.objective(Model(at.parameters + h, 1)) - task.objective(Model(at.parameters - h, 1))) / 2e-6
        for h in 1e-6 * np.eye(task.dim)
    ]
    np.testing.assert_allclose(mean, -0.7 * np.array(slopes), atol=1e-7)


def test_an_epoch_of_batches_is_as_many_steps_each_from_where_the_last_one_ended() -> None:
    x, labels = labelled(40)
    task = FederatedNetwork([x], [labels], hidden=5, batch=16, rate=0.5, epochs=2)
    at = task.start(seed=3)
    rng, point = np.random.default_rng((3, 7, 0)), at
    for _ in range(2):
        order = rng.permutation(40)
        for rows in (order[:16], order[16:32], order[32:]):
            assert labels[rows].max() == CLASSES - 1  # or the network of these rows would be smaller
            one = FederatedNetwork([x[rows]], [labels[rows]], hidden=5, batch=None, rate=0.5)
            point = one.step(point, one.vectors(point, 0)[0].astype(np.float64))
    np.testing.assert_allclose(task.vectors(at, 7)[0], point.parameters - at.parameters, atol=1e-12)


def test_it_learns_and_is_the_same_each_time() -> None:
    task = make(batch=8, rate=0.3)
    trace = play(task, None, rounds=15, seed=2)
    assert trace.objective[-1] < 0.2 * trace.start
    again = play(make(batch=8, rate=0.3), None, rounds=15, seed=2)
    np.testing.assert_array_equal(trace.objective, again.objective)
    assert not np.array_equal(trace.objective, play(task, None, rounds=15, seed=3).objective)


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(InvalidInput, match="hidden and epochs"):
        make(epochs=0)
    with pytest.raises(InvalidInput, match="rate is a positive number"):
        make(rate=0.0)
