"""Stream: given vectors, and the error of what was made of them."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean import InvalidInput, named
from sparsemean.lab.tasks import StreamTask
from sparsemean.lab.trace import play

VECTORS = np.random.default_rng(0).normal(size=(4, 5, 6))


@pytest.mark.parametrize("weights", [None, np.array([1.0, 2.0, 0.0, 4.0, 0.5])])
def test_the_objective_is_the_squared_error_of_the_last_estimate(weights: np.ndarray | None) -> None:
    trace = play(StreamTask(VECTORS, weights), named("rand-k", k=0.5), 4)
    np.testing.assert_allclose(trace.objective, trace.mse, rtol=1e-12)
    assert trace.start == pytest.approx(np.sum(np.average(VECTORS[0], axis=0, weights=weights) ** 2))
    assert play(StreamTask(VECTORS, weights), None, 4).objective == pytest.approx(np.zeros(4), abs=1e-30)


def test_the_stream_ends() -> None:
    with pytest.raises(InvalidInput, match="4 rounds"):
        play(StreamTask(VECTORS), None, 5)


def test_whole_numbers_are_taken_too() -> None:
    assert play(StreamTask([[[1, 2]], [[3, 4]]]), None, 2).objective.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("weights", [[1.0], [[1.0] * 5], [0.0] * 5, [1.0, 1.0, 1.0, 1.0, -1.0], [np.nan] * 5])
def test_weights_are_one_number_per_node(weights: list[float]) -> None:
    with pytest.raises(InvalidInput, match="5 nodes"):
        StreamTask(VECTORS, weights)


def test_vectors_have_three_axes() -> None:
    with pytest.raises(InvalidInput, match="shape"):
        StreamTask(VECTORS[0])
