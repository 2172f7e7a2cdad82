"""Nodes that keep what the server remembers of them: differences to it travel, and both sides stay in step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import ValueName
from sparsemean.checks import check_scheme
from sparsemean.encoders import Encoder
from sparsemean.payload import Part, Payload
from sparsemean.server.local import LocalRounds
from sparsemean.simulation import play_round

DIM, N = 600, 6
NODES = [f"n{i}" for i in range(N)]
REST = np.random.default_rng(99).normal(size=(N, DIM))


def run_of(encoder: Encoder | None = None, values: ValueName = "float32", **options: Any) -> sm.Run:
    remembered = sm.Remembered(encoder or sm.Identity(), **options)
    return sm.Run(sm.Scheme(remembered, memory=sm.Hybrid(), values=values), DIM, seed=5)


def clients_of(run: sm.Run) -> dict[str, sm.Client]:
    return {node: sm.Client(run, node) for node in NODES}


def error(estimate: sm.Estimate, vectors: np.ndarray) -> float:
    return float(np.sum((estimate.mean - vectors.mean(axis=0)) ** 2) / np.mean(np.sum(vectors**2, axis=1)))


def remembered_of(server: sm.Server, node: str) -> np.ndarray:
    rounds = server._rounds
    assert isinstance(rounds, LocalRounds)
    return rounds.estimator.memory.last_heard(node, np.arange(server.run.dim))[1]


def test_at_rest_the_error_falls_by_the_factor_of_the_formula():
    """ω q/n with q ← q·ω/(1 + ω); 600 rotated values of a node vary by less than a quarter around it."""
    run = run_of(values="eden-1")
    omega = run.value_kind.omega(DIM)
    server, clients = sm.Server(run), list(clients_of(run).values())
    for t in range(12):
        expected = omega / N * (omega / (1.0 + omega)) ** t
        assert error(play_round(server, clients, REST, np.ones(N)), REST) == pytest.approx(expected, rel=0.25)


def test_whole_vectors_are_those_of_a_difference_to_rounding():
    twin = sm.Run(sm.Scheme(sm.Difference(sm.Identity()), memory=sm.Offset(), values="eden-2"), DIM, seed=5)
    ours, theirs = sm.Server(run_of(values="eden-2")), sm.Server(twin)
    mine, others = list(clients_of(ours.run).values()), list(clients_of(twin).values())
    for t in range(5):
        vectors = REST + 0.1 * np.random.default_rng(t).normal(size=REST.shape)
        one, other = (play_round(*each, vectors, np.ones(N)) for each in ((ours, mine), (theirs, others)))
        np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-5)


@pytest.mark.parametrize("encoder", [sm.RandK(200), sm.RandK(200, draw=sm.Balanced()), sm.RandK(200, draw=sm.Epochs())])
def test_of_exact_values_the_memory_sees_what_it_would_of_the_encoder_alone(encoder):
    ours = sm.Server(run_of(encoder))
    plain = sm.Server(sm.Run(sm.Scheme(encoder, memory=sm.Hybrid()), DIM, seed=5))
    mine, theirs = list(clients_of(ours.run).values()), list(clients_of(plain.run).values())
    for t in range(6):
        vectors = REST + 0.1 * np.random.default_rng(t).normal(size=REST.shape)
        one, other = (play_round(*each, vectors, np.ones(N)) for each in ((ours, mine), (plain, theirs)))
        np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-5)


@pytest.mark.parametrize("factor", [0, 1])
def test_node_and_server_remember_the_same_to_the_bit_whatever_the_weight(factor):
    run = run_of(sm.RandK(550), "eden-1.5", factor=factor)
    server, clients = sm.Server(run), clients_of(run)
    for t in range(4):
        for i, (node, client) in enumerate(clients.items()):
            if (t + i) % 3:
                client.delivered(server.accept(node, client.encode(REST[i], t), weight=float(i)))  # the first has 0
        server.skip_round() if t == 2 else server.close_round()
        for node, client in clients.items():
            np.testing.assert_array_equal(client._state["last"], remembered_of(server, node))


def test_a_lost_receipt_is_told_from_a_lost_payload():
    run = run_of(values="eden-2")
    server, clients = sm.Server(run), clients_of(run)
    play_round(server, list(clients.values()), REST, np.ones(N))
    a, b = clients["n0"], clients["n1"]
    a.encode(REST[0], 1)  # which is lost: the node goes on from what was delivered
    lost = b.encode(REST[1], 1)
    server.accept("n1", lost)  # whose receipt is lost
    server.close_round()
    server.accept("n0", a.encode(REST[0], 2))
    before = server.digest()
    with pytest.raises(sm.OutOfStep, match=r"reset\(\) its client"):
        server.accept("n1", b.encode(REST[1], 2))
    assert server.digest() == before
    assert b.encode(REST[1], 1) == lost
    b.delivered(server.accept("n1", lost))  # of the last round, whose receipt is given again
    server.accept("n1", b.encode(REST[1], 2))


def test_a_node_that_is_reset_or_forgotten_begins_afresh():
    run = run_of(values="float32")
    server, clients = sm.Server(run), clients_of(run)
    play_round(server, list(clients.values()), REST, np.ones(N))
    clients["n0"].reset()
    server.forget("n1")
    with pytest.raises(sm.OutOfStep):
        server.accept("n1", clients["n1"].encode(REST[1], 1))
    clients["n1"].reset()
    for i, (node, client) in enumerate(clients.items()):
        client.delivered(server.accept(node, client.encode(REST[i], 1)))
    assert error(server.close_round(), REST) < 1e-12


def test_a_node_that_begins_afresh_changes_nothing_for_those_who_came_before_or_after():
    run, alike, means = run_of(sm.RandK(200)), REST + 3.0, []
    for order in (["n0", "n1", "n2"], ["n1", "n2", "n0"]):
        server, clients = sm.Server(run), clients_of(run)
        for t in range(2):
            play_round(server, list(clients.values()), (1.0 + t) * alike, np.ones(N))
        clients["n1"].reset()
        for node in order:
            server.accept(node, clients[node].encode(alike[NODES.index(node)], 2))
            server.digest()  # which folds what waits
        means.append(server.close_round().mean)
    np.testing.assert_allclose(means[0], means[1], rtol=0, atol=1e-9)


def test_a_saved_client_and_a_killed_server_go_on_to_the_bit(tmp_path: Path):
    run = run_of(sm.RandK(300), "eden-2")
    plain, clients, saved = sm.Server(run), clients_of(run), dict[str, bytes]()
    for t in range(4):
        vectors = REST + 0.05 * np.random.default_rng(t).normal(size=REST.shape)
        blobs = {node: client.encode(vectors[i], t) for i, (node, client) in enumerate(clients.items())}
        with sm.Server(run, journal=tmp_path / "j") as server:
            for node in NODES[:3]:
                server.accept(node, blobs[node])
        with sm.Server(run, journal=tmp_path / "j") as server:
            for node, client in clients.items():
                again = sm.Client.restore(run, node, saved[node]) if t else client
                assert again.encode(vectors[NODES.index(node)], t) == blobs[node]
                plain.accept(node, blobs[node])
                client.delivered(server.accept(node, blobs[node]))
                saved[node] = client.save()
            assert server.close_round().mean.tolist() == plain.close_round().mean.tolist()
            assert server.digest() == plain.digest()


def test_absurd_values_stay_finite_and_in_step():
    run = run_of()
    server, basis = sm.Server(run), 0
    for t in range(4):
        forged = Payload((Part(np.arange(DIM), np.full(DIM, 3e38, np.float32)),))
        blob = codec.pack(run, "a", t, forged, basis)
        server.accept("a", blob)
        basis = codec.next_basis(basis, blob)
        assert np.isfinite(server.close_round().mean).all()
    assert np.isfinite(remembered_of(server, "a")).all()


@pytest.mark.parametrize(
    "scheme",
    [
        sm.Scheme(sm.Remembered(sm.Identity()), memory=sm.Hybrid(), values="1-bit"),
        sm.Scheme(sm.Remembered(sm.RandK(0.3)), sm.Spatial("learned"), sm.Hybrid(), values="int4"),
        sm.Scheme(sm.Remembered(sm.RandK(0.4, draw=sm.Balanced()), factor=0), memory=sm.Hybrid(), values="int8"),
        sm.Scheme(sm.Remembered(sm.RandK(0.4), step=0.5), memory=sm.Hybrid(), values="eden-2"),
    ],
    ids=["identity", "rand-k", "balanced", "step"],
)
def test_it_passes_the_conformance_checks(scheme):
    check_scheme(scheme, dim=20, trials=150)
    run = sm.Run(scheme, 20)
    assert sm.Run.from_json(run.to_json()) == run


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: sm.Remembered(sm.Wangni(0.1)), "sends values of x"),
        (lambda: sm.Remembered(sm.Remembered(sm.RandK(0.1))), "wraps a stateless encoder"),
        (lambda: sm.Remembered(sm.Relative(sm.RandK(0.1))), "Relative stands outermost"),
        (lambda: sm.Scheme(sm.Remembered(sm.RandK(0.1)), memory=sm.PerNode()), "memory=Hybrid"),
        (lambda: sm.Scheme(sm.Remembered(sm.RandK(0.1)), memory=sm.Hybrid(forget_after=3)), "memory=Hybrid"),
        (lambda: sm.Scheme(sm.Remembered(sm.RandK(0.1)), memory=sm.Hybrid(), values="float64"), "use float32"),
        (lambda: sm.Remembered(sm.RandK(0.1), factor=2), "factor is 0 or 1"),
        (lambda: sm.Remembered(sm.RandK(0.1), step=0.0), "step lies in"),
        (lambda: sm.Server(run_of(), clip=sm.Clip(norm=1.0)), "cannot be clipped"),
    ],
)
def test_what_cannot_be_right_is_refused(wrong, says):
    with pytest.raises((sm.IncompatibleScheme, sm.InvalidInput), match=says):
        wrong()
