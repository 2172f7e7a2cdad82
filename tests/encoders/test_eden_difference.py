"""Nodes that keep state, with values of few bits after a rotation: the step allows for the noise of both."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import theory
from sparsemean._names import ValueName

DIM, N = 1024, 5


def run_of(encoder: sm.Difference, values: ValueName = "eden-1", dim: int = DIM) -> sm.Run:
    return sm.Run(sm.Scheme(encoder, memory=sm.Offset(), values=values), dim, seed=2)


@pytest.mark.parametrize(
    ("encoder", "values", "dim", "step"),
    [
        (sm.Difference(sm.Identity()), "eden-1", DIM, 2 / np.pi),  # ω = π/2 − 1
        (sm.Difference(sm.Identity()), "eden-3", DIM, 1 / (1 + theory.eden_error(3))),
        (sm.Difference(sm.RandK(0.5)), "eden-1", 2 * DIM, 0.5 * 2 / np.pi),
        (sm.Difference(sm.RandK(0.25)), "eden-1", DIM, 0.25),  # 256 values are not rotated
        (sm.Difference(sm.Identity(), step=0.9), "eden-1", DIM, 0.9),
        (sm.Difference(sm.RandK(0.5)), "int8", DIM, 0.5),
    ],
)
def test_the_step(encoder, values, dim, step):
    run = run_of(encoder, values, dim)
    (settled,) = run.encoders
    assert isinstance(settled, sm.Difference)
    assert settled.step_in(dim) == pytest.approx(step, rel=1e-3)
    assert sm.Run.from_json(run.to_json()) == run
    assert run.scheme.encoder == encoder


def test_what_is_no_receipt_is_refused():
    client = sm.Client(run_of(sm.Difference(sm.Identity())), "a")
    client.encode(np.ones(DIM), 0)
    with pytest.raises(sm.InvalidInput, match=r"takes the Receipt that server\.accept returned"):
        client.delivered(None)  # type: ignore[arg-type]


def test_vectors_that_rest_are_known_to_the_last_digit_in_forty_rounds_of_one_bit(tmp_path: Path):
    """Each round leaves ω/(1 + ω) = 0.36 of ‖x − h‖²; a node that lost its state, and a new server, change nothing."""
    run = run_of(sm.Difference(sm.Identity()))
    x = np.random.default_rng(0).normal(size=(N, DIM))
    clients, errors = [sm.Client(run, str(i)) for i in range(N)], []
    for round in range(40):
        with sm.Server(run, journal=tmp_path) as server:
            for i, client in enumerate(clients):
                if (round, i) == (20, 0):
                    clients[0] = client = sm.Client.restore(run, "0", client.save())
                client.delivered(server.accept(client.node, client.encode(x[i], round)))
            estimate = server.close_round()
        errors.append(float(np.sum((estimate.mean - x.mean(axis=0)) ** 2)))
        assert estimate.error is not None
    assert errors[0] < DIM
    assert errors[10] < 1e-4 * errors[0]
    assert errors[39] < 1e-15 * errors[0]
