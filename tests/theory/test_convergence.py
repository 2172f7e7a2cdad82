"""Theorem 4 on its own case study."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.theory import distance_bound, learning_rate_limit


def test_limit():
    assert learning_rate_limit(15, 0.1) == 0.05
    assert learning_rate_limit(1, 0.1) == pytest.approx(1 / 73)
    assert learning_rate_limit(10, 1.0) == 0.5


def test_the_bound_holds_where_it_is_proved():
    rng, n, d, k, rounds = np.random.default_rng(3), 15, 100, 10, 200
    targets, rate = rng.standard_normal((n, d)), learning_rate_limit(15, 0.1)
    best = targets.mean(axis=0)
    w, memory, distances = np.zeros(d), np.zeros((n, d)), []
    for _ in range(rounds + 1):
        distances.append(np.sum((w - best) ** 2))
        sent = np.argsort(rng.random((n, d)), axis=1) < k
        gradients = w - targets
        w = w - rate * (memory + sent * (gradients - memory) / (k / d)).mean(axis=0)
        memory = np.where(sent, gradients, memory)
    bound = distance_bound(rate, np.arange(rounds + 1), distances[0], np.sum((best - targets) ** 2) / n)
    assert np.all(distances <= bound)
    assert distances[-1] < 1e-3 * distances[0]


def test_shapes_and_refusals():
    assert float(distance_bound(0.1, 0, 1.0, 2.0)) == 3.0
    assert distance_bound(1.0, [0, 1], 1.0, 2.0).tolist() == [3.0, 0.0]
    assert float(distance_bound(0.5, 10**6, 1.0, 1.0)) == 0.0
    for rate, rounds, start in ((0.0, 1, 1.0), (1.5, 1, 1.0), (0.1, -1, 1.0), (0.1, np.nan, 1.0), (0.1, 1, -1.0)):
        with pytest.raises(InvalidInput):
            distance_bound(rate, rounds, start, 1.0)
