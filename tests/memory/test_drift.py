"""Running sums do not drift from what they are sums of."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import sampling

NODES, DIM, K, ROUNDS = 4, 16, 4, 400


@pytest.mark.parametrize("memory", [sm.PerNode(), sm.PerNode(forget_after=7)])
def test_hundreds_of_rounds_of_coming_and_going_leave_no_drift(memory: sm.Memory) -> None:
    """Attendance and weights change every round, so the sums are corrected some 2,000 times."""
    rng = np.random.default_rng(3)
    run = sm.Run(sm.Scheme(sm.RandK(K), memory=memory, values="float64"), DIM, seed=2)
    server = sm.Server(run)
    clients = [sm.Client(run, str(i)) for i in range(NODES)]
    last, heard = np.zeros((NODES, DIM)), np.full((NODES, DIM), -(10**9))
    forget_after = getattr(memory, "forget_after", None) or 10**9
    worst = 0.0
    for t in range(ROUNDS):
        here = np.flatnonzero(rng.random(NODES) < 0.7)
        here = here if here.size else np.array([0])
        vectors, weights = rng.normal(size=(NODES, DIM)), rng.uniform(0.1, 3.0, NODES)
        sent = np.zeros((NODES, DIM), bool)
        for i in here:
            server.accept(str(i), clients[i].encode(vectors[i], t), weights[i])
            sent[i, sampling.coordinates(run.key(str(i), t), DIM, K)] = True
        expected = np.where(t - heard <= forget_after, last, 0.0)
        corrected = expected + sent * (vectors - expected) * DIM / K
        truth = np.average(corrected[here], axis=0, weights=weights[here])
        worst = max(worst, float(np.abs(server.close_round().mean - truth).max()))
        last, heard = np.where(sent, vectors, last), np.where(sent, t, heard)
    assert worst < 1e-9


@pytest.mark.parametrize("giant", [1e9, 1e15, 1e60])
@pytest.mark.parametrize("memory", [sm.PerNode(), sm.Window(1)])
def test_a_far_larger_value_that_left_takes_no_digits_with_it(memory: sm.Memory, giant: float) -> None:
    """In a plain running sum giant + 1.1 − giant is not 1.1."""
    run = sm.Run(sm.Scheme(sm.Identity(), memory=memory, values="float64"), dim=3)
    clients = {node: sm.Client(run, node) for node in "abc"}
    server = sm.Server(run)

    def mean_of(**values: float) -> float:
        for node, value in values.items():
            server.accept(node, clients[node].encode(np.full(3, value), server.round))
        (mean,) = set(server.close_round().mean.tolist())
        return float(mean)

    mean_of(a=giant, b=1.1, c=1.2)
    assert mean_of(b=1.1, c=1.2) == pytest.approx(1.15, rel=1e-14), "the node is absent"
    mean_of(a=giant, b=1.1, c=1.2)
    mean_of(a=1.3, b=1.1, c=1.2)
    assert mean_of(a=1.3, b=1.1, c=1.2) == pytest.approx(1.2, rel=1e-14), "the value was replaced"
    mean_of(a=giant, b=1.1, c=1.2)
    server.forget("a")
    assert mean_of(b=1.1, c=1.2) == pytest.approx(1.15, rel=1e-14), "the node was forgotten"


def test_where_most_nodes_left_the_sums_are_of_the_others_alone() -> None:
    """What is subtracted leaves its rounding behind: to the bit only sums begun anew are the rows of who stayed."""
    run = sm.Run(sm.Scheme(sm.RandK(4), memory=sm.PerNode(), values="float64"), 400)
    server, rng = sm.Server(run), np.random.default_rng(0)
    for _ in range(20):
        for node in map(str, range(9)):
            server.accept(node, sm.Client(run, node).encode(rng.normal(size=400), server.round))
        server.close_round()
    remembered, sent = server.expected("0"), sampling.coordinates(run.key("0", server.round), 400, 4)
    server.accept("0", sm.Client(run, "0").encode(np.ones(400), server.round))
    mean = server.close_round().mean
    np.testing.assert_array_equal(np.delete(mean, sent), np.delete(remembered, sent))
