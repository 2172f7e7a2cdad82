"""Power iteration: the true eigenvector with exact means, whichever way the products are taken."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean._types import Doubles
from sparsemean.lab.tasks import PowerIteration, power_iteration
from sparsemean.lab.trace import play


def spiked(nodes: int, rows: int, dim: int, seed: int = 0, spike: float = 4.0) -> Doubles:
    """IID rows whose covariance has one large eigenvalue."""
    rng = np.random.default_rng(seed)
    direction = np.abs(rng.normal(size=dim))
    direction /= np.linalg.norm(direction)
    return rng.normal(size=(nodes, rows, dim)) + spike * rng.normal(size=(nodes, rows, 1)) * direction


def test_nodes_that_agree_on_the_eigenvector_find_it_however_unlike_their_data() -> None:
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.normal(size=(9, 9)))[0]
    parts = [np.diag([9.0, *rng.uniform(0, 3, 8)]) @ basis * scale for scale in (1.0, 5.0, 0.1)]
    task = PowerIteration(parts)
    assert abs(task.eigenvector @ basis[0]) == pytest.approx(1, abs=1e-12)
    assert play(task, None, 60).objective[-1] < 1e-12


def test_iid_nodes_come_near_it_and_nearer_with_more_data() -> None:
    left = [play(PowerIteration(spiked(10, rows, 12)), None, 30).objective[-1] for rows in (30, 3_000)]
    assert left[1] < 2e-3 < left[0] < 1e-1


@pytest.mark.parametrize("centre", [False, True])
def test_the_eigenvector_is_that_of_the_pooled_matrix(centre: bool) -> None:
    parts = [part + 1.5 for part in (*spiked(2, 20, 6), spiked(1, 35, 6, seed=3)[0])]
    pooled = np.concatenate(parts)
    if centre:
        pooled = pooled - pooled.mean(axis=0)
    found = PowerIteration(parts, centre).eigenvector
    assert abs(found @ np.linalg.svd(pooled)[2][0]) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("rows", [4, 40])
def test_vectors_are_one_local_iteration_each_of_length_one(rows: int) -> None:
    parts = spiked(3, rows, 10)
    task = PowerIteration(parts)
    w = task.start(seed=2)
    twin = [part.T @ part @ w for part in parts]
    np.testing.assert_allclose(task.vectors(w, 0), [x / np.linalg.norm(x) for x in twin], atol=1e-14)


def test_gram_matrices_and_rows_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = spiked(4, 30, 8)
    with_grams = play(PowerIteration(parts), None, 10)
    monkeypatch.setattr(power_iteration, "GRAM_BYTES", 0)
    np.testing.assert_allclose(play(PowerIteration(parts), None, 10).objective, with_grams.objective, atol=1e-13)


def test_the_start_lies_in_the_positive_orthant_and_the_distance_ignores_the_sign() -> None:
    task = PowerIteration(spiked(3, 5, 7))
    w = task.start(seed=5)
    assert w.min() >= 0
    assert np.linalg.norm(w) == pytest.approx(1)
    assert task.objective(w) == task.objective(-w)
    assert task.objective(-task.eigenvector) == 0


def test_a_zero_mean_leaves_w_and_a_zero_product_is_sent_as_zeros() -> None:
    task = PowerIteration([np.eye(3)[:1], np.eye(3)])
    w = np.array([0.0, 1.0, 0.0])
    np.testing.assert_array_equal(task.vectors(w, 0), [[0, 0, 0], [0, 1, 0]])
    assert task.step(w, np.zeros(3)) is w


def test_nodes_count_by_their_rows() -> None:
    weights = PowerIteration([np.eye(3)[:1], np.eye(3)]).weights(np.ones(3))
    assert weights is not None
    assert weights.tolist() == [1.0, 3.0]
