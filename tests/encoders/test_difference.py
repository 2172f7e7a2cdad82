"""Difference: the state both sides keep comes ever nearer to a vector that stays."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import ValueName
from sparsemean._types import Doubles

DIM, K, NODES = 20, 4, 3


def distances(encoder: sm.Difference, rounds: int, values: ValueName = "float64") -> Doubles:
    """‖estimate − mean‖²/‖mean‖² of constant vectors, and before it max_i ‖x_i − h_i‖²/‖x_i‖²: shape (rounds, 2)."""
    vectors = np.random.default_rng(6).normal(size=(NODES, DIM))
    mean = vectors.mean(axis=0)
    run = sm.Run(sm.Scheme(encoder, memory=sm.Offset(), values=values), DIM, seed=5)
    server, clients = sm.Server(run), [sm.Client(run, str(i)) for i in range(NODES)]
    out = []
    for t in range(rounds):
        for client, vector in zip(clients, vectors, strict=True):
            client.delivered(server.accept(client.node, client.encode(vector, t)))
        off = np.sum((server.close_round().mean - mean) ** 2) / np.sum(mean**2)
        left = max(np.sum((x - c._state["h"]) ** 2) / np.sum(x**2) for x, c in zip(vectors, clients, strict=True))
        out.append((left, off))
    return np.array(out)


@pytest.mark.parametrize(
    "inner", [sm.RandK(K), sm.Wangni(K), sm.Induced(sm.TopK(2), sm.RandK(2)), sm.Induced(sm.TopK(2), sm.Wangni(2))]
)
def test_unbiased_differences_converge_on_constant_vectors(inner: sm.Encoder) -> None:
    """E‖x − h‖² falls by 1 − 1/(1 + ω) a round, at least; 10⁴ times the expectation is never reached by chance."""
    encoder = sm.Difference(inner)
    rate = 1 - encoder.step_in(DIM)
    assert encoder.step_in(DIM) == pytest.approx(1 / (1 + (inner.omega(DIM) or 0.0)))
    left = distances(encoder, 150)
    assert np.all(left[:, 0] <= 1e4 * rate ** np.arange(1, 151) + 1e-28)
    assert left[-1].max() < 1e-9


@pytest.mark.parametrize("inner", [sm.TopK(K), sm.TopK(1), sm.RTopK(K)])
def test_a_biased_encoder_takes_whole_steps_and_converges_too(inner: sm.Encoder) -> None:
    encoder = sm.Difference(inner)
    assert encoder.step_in(DIM) == 1.0
    assert distances(encoder, 80)[-1].max() < 1e-28


@pytest.mark.parametrize("k", [1, 4, 7])
def test_ef21_is_a_contraction_and_done_when_every_coordinate_was_sent(k: int) -> None:
    left = distances(sm.Difference(sm.TopK(k)), 25)
    assert np.all(left[:, 0] <= (1 - k / DIM) ** np.arange(1, 26) + 1e-28)
    assert left[-(-DIM // k) - 1].max() < 1e-28
    assert k == 7 or left[-(-DIM // k) - 2].max() > 1e-6


def test_float32_values_do_not_floor_it() -> None:
    """What float32 rounds off is part of the next difference."""
    assert distances(sm.Difference(sm.TopK(K)), 30, values="float32")[-1].max() < 1e-25


def test_without_the_difference_the_error_stays() -> None:
    vectors = np.random.default_rng(6).normal(size=(NODES, DIM))
    run = sm.Run(sm.named("wangni", k=K, values="float64"), DIM, seed=5)
    last = sm.simulate(run, np.broadcast_to(vectors, (30, NODES, DIM)))[-1]
    assert np.sum((last.mean - vectors.mean(axis=0)) ** 2) > 0.01


def test_node_and_server_hold_the_same_state_to_the_bit() -> None:
    rng = np.random.default_rng(1)
    run = sm.Run(sm.named("diana", k=K), DIM)
    server, client = sm.Server(run), sm.Client(run, "a")
    for t in range(40):
        client.delivered(server.accept("a", client.encode(rng.normal(size=DIM), t)))
        server.close_round()
    # With one node the next estimate of an unchanged state is h itself, so a payload of zeros reveals it.
    h = client._state["h"]
    client.delivered(server.accept("a", client.encode(h, 40)))
    assert np.array_equal(server.close_round().mean, h)


@pytest.mark.parametrize("step", [0.0, -0.1, 1.5, float("nan")])
def test_a_step_outside_the_unit_interval_is_refused(step: float) -> None:
    with pytest.raises(sm.InvalidInput, match="step"):
        sm.Difference(sm.RandK(K), step=step)
