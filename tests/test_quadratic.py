"""The paper's quadratic case study through the bytes: F_i(w) = ½‖w − e_i‖² with e_i ~ N(0, I)."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import theory
from sparsemean._names import SchemeName
from sparsemean._types import Doubles

NODES, DIM, SHARE = 15, 1_000, 0.1


def distances(name: SchemeName, rate: float, rounds: int, seed: int) -> tuple[Doubles, float]:
    """‖w_t − w*‖² for t = 0..rounds of gradient descent from 0, and (1/n) Σ‖∇F_i(w*)‖²; w* is the mean of the e_i."""
    e = np.random.default_rng(seed).normal(size=(NODES, DIM))
    optimum = e.mean(axis=0)
    run = sm.Run(sm.named(name, k=SHARE, values="float64"), DIM, seed)
    server, clients = sm.Server(run), [sm.Client(run, str(i)) for i in range(NODES)]
    w = np.zeros(DIM)
    left = [np.sum((w - optimum) ** 2)]
    for t in range(rounds):
        for client, centre in zip(clients, e, strict=True):
            server.accept(client.node, client.encode(w - centre, t))
        w -= rate * server.close_round().mean
        left.append(np.sum((w - optimum) ** 2))
    return np.array(left), float(np.mean(np.sum((optimum - e) ** 2, axis=1)))


def test_temporal_converges_within_the_bound_of_theorem_4() -> None:
    """η = 0.05 is the largest rate for which it is proved."""
    rate, rounds = 0.05, 200
    assert rate == theory.learning_rate_limit(NODES, SHARE)
    runs = [distances("rand-k-temporal", rate, rounds, seed) for seed in range(2)]
    bounds = [theory.distance_bound(rate, np.arange(rounds + 1), left[0], energy) for left, energy in runs]
    assert np.all(np.mean([left for left, _ in runs], axis=0) < np.mean(bounds, axis=0))
    for left, _ in runs:
        assert left[-1] < 1e-6 * left[0]
        assert 100 < np.argmax(left < 1e-6 * left[0]) < 200


def test_temporal_converges_at_twice_that_rate_too() -> None:
    left, _ = distances("rand-k-temporal", 0.1, 250, seed=0)
    assert left[-1] < 1e-6 * left[0]


@pytest.mark.parametrize(("rate", "low", "high"), [(0.05, 0.1, 0.4), (0.1, 0.25, 0.8)])
def test_rand_k_stalls(rate: float, low: float, high: float) -> None:
    """Its error does not vanish with the distance: what is left is a floor that grows with the rate."""
    left, energy = distances("rand-k", rate, 180, seed=0)
    assert low * left[0] < left[120:].min()
    assert left[120:].max() < high * left[0]
    assert left[-1] > theory.distance_bound(rate, 180, left[0], energy)
