"""Modulo values through a server: finer where the memory knows the node, never worse than EDEN's where it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import ValueName
from sparsemean.checks import check_scheme
from sparsemean.encoders import Encoder
from sparsemean.server.reports import RoundReport
from sparsemean.simulation import play_round
from sparsemean.wire.values import value_name
from sparsemean.wire.values.modulo import steps_of_spread

DIM, N = 600, 6
NODES = [str(i) for i in range(N)]
REST = np.random.default_rng(99).normal(size=(N, DIM))


def run_of(values: ValueName = "modulo-3", encoder: Encoder | None = None, **options: Any) -> sm.Run:
    scheme = sm.Scheme(encoder or sm.Identity(), memory=sm.Hybrid(), values=values)
    return sm.Run(scheme, DIM, seed=5, **options)


def error(estimate: sm.Estimate, vectors: np.ndarray) -> float:
    return float(np.sum((estimate.mean - vectors.mean(axis=0)) ** 2) / np.mean(np.sum(vectors**2, axis=1)))


def drifting(rounds: int, jump: int = 0, heavy: bool = False) -> np.ndarray:
    """Vectors that move by a tenth in a round, and begin anew in one of them; with heavy tails in few coordinates."""
    rng, found = np.random.default_rng(3), [REST]
    for t in range(1, rounds):
        step = 0.05 * rng.standard_t(1.5, size=REST.shape) if heavy else 0.1 * rng.normal(size=REST.shape)
        found.append(3.0 * rng.normal(size=REST.shape) if t == jump else found[-1] + step)
    return np.array(found)


def test_at_rest_the_error_falls_by_the_factor_of_the_formula():
    """ω/(1 + ω) in every round once the memory goes by what it heard of each node; 64 numbers tell the spread."""
    run = run_of()
    errors = [error(each, REST) for each in sm.simulate(run, np.stack([REST] * 12))]
    omega = steps_of_spread(3) ** 2 / 12
    assert (errors[-1] / errors[2]) ** (1 / 9) == pytest.approx(omega / (1 + omega), rel=0.15)
    assert errors[-1] < 1e-7


@pytest.mark.parametrize("encoder", [sm.Identity(), sm.RandK(550)], ids=["identity", "rand-k"])
def test_the_stated_error_is_the_measured_one(encoder):
    vectors = drifting(20)
    estimates = sm.simulate(run_of(encoder=encoder), vectors)
    stated = sum(each.error or 0.0 for each in estimates[2:])
    measured = sum(
        float(np.sum((e.mean - x.mean(axis=0)) ** 2)) for e, x in zip(estimates[2:], vectors[2:], strict=True)
    )
    assert stated == pytest.approx(measured, rel=0.15)


@pytest.mark.parametrize("options", [{}, {"jump": 6}, {"heavy": True}], ids=["drift", "jump", "heavy-tails"])
@pytest.mark.parametrize("bits", [2, 3])
def test_no_round_is_worse_than_with_eden_values(options, bits):
    """At most 1.5 times, as single rounds of 600 values vary; and better on the whole."""
    vectors = drifting(14, **options)
    ours, theirs = (sm.simulate(run_of(value_name(f"{values}-{bits}")), vectors) for values in ("modulo", "eden"))
    ratios = [error(a, x) / error(b, x) for a, b, x in zip(ours, theirs, vectors, strict=True)]
    assert max(ratios) < 1.5
    assert np.exp(np.mean(np.log(ratios))) < 0.8


def accept(server: sm.Server, vectors: np.ndarray, sketches: dict[str, bytes] | None = None) -> None:
    for i, node in enumerate(NODES):
        sketch = server.sketch(node) if sketches is None else sketches.get(node, b"")
        server.accept(node, sm.Client(server.run, node).encode(vectors[i], server.round, sketch=sketch))


def test_a_payload_that_cannot_be_resolved_counts_as_expected_and_is_reported():
    reports: list[RoundReport] = []
    server = sm.Server(run_of(), on_round=[reports.append])
    for _ in range(4):
        accept(server, REST)
        server.close_round()
    blobs = {
        node: sm.Client(server.run, node).encode(REST[i], 4, sketch=server.sketch(node)) for i, node in enumerate(NODES)
    }
    server.forget("0")  # after its payload was made
    for node, blob in blobs.items():
        server.accept(node, blob)
    unknown = server.expected("0")
    estimate = server.close_round()
    assert [report.unresolved for report in reports] == [0, 0, 0, 0, 1]
    wanted = (REST[1:].sum(axis=0) + unknown) / N
    np.testing.assert_allclose(estimate.mean, wanted, atol=0.05)
    for _ in range(3):  # and it is known again
        accept(server, REST)
        estimate = server.close_round()
    assert error(estimate, REST) < 1e-3
    assert reports[-1].unresolved == 0


def test_a_node_without_a_sketch_sends_eden_values():
    server = sm.Server(run_of())
    for t in range(4):
        accept(server, REST, {})
        assert error(server.close_round(), REST) == pytest.approx(0.0358 / N, rel=0.3), t


def test_a_killed_server_goes_on_to_the_bit(tmp_path: Path):
    run, plain = run_of(encoder=sm.RandK(520)), sm.Server(run_of(encoder=sm.RandK(520)))
    for t, vectors in enumerate(drifting(5, jump=3)):
        with sm.Server(run, journal=tmp_path / "j") as server:
            sketches = {node: server.sketch(node) for node in NODES}
            assert sketches == {node: plain.sketch(node) for node in NODES}
            clients = {node: sm.Client(run, node) for node in NODES}
            blobs = {n: c.encode(vectors[i], t, sketch=sketches[n]) for i, (n, c) in enumerate(clients.items())}
            if t == 4:
                server.forget("2")  # whose payload then cannot be resolved
                plain.forget("2")
            for node in NODES[:3]:
                server.accept(node, blobs[node])
        with sm.Server(run, journal=tmp_path / "j") as server:
            for node in NODES:
                plain.accept(node, blobs[node])
                server.accept(node, blobs[node])
            assert server.digest() == plain.digest()
            assert server.close_round().mean.tolist() == plain.close_round().mean.tolist()
            assert server.digest() == plain.digest()


def test_how_payloads_are_batched_changes_nothing():
    one, each = (sm.Server(run_of(encoder=sm.RandK(520)), batch_bytes=size) for size in (1 << 20, 1))
    for vectors in drifting(4):
        accept(one, vectors)
        accept(each, vectors)
        assert one.close_round().mean.tolist() == each.close_round().mean.tolist()


def test_blocks_without_weight_are_not_learnt():
    run = run_of(blocks=[100, 500])
    server, clients = sm.Server(run), [sm.Client(run, node) for node in NODES]
    weights = np.ones((N, 2))
    weights[0, 0] = 0.0
    for _ in range(4):
        estimate = play_round(server, clients, REST, weights)
    assert np.abs(estimate.mean[:100] - REST[1:, :100].mean(axis=0)).max() < 0.1
    assert np.abs(server.expected("0")[:100] - REST[0, :100]).mean() > 0.3


@pytest.mark.parametrize("memory", [sm.PerNode(), sm.SharedStable()], ids=["per-node", "shared"])
def test_other_memories_serve_as_well(memory):
    """The shared one expects the mean of all, from which nodes here differ by a tenth of their energy."""
    alike = np.random.default_rng(1).normal(size=DIM) + 0.3 * REST
    last = sm.simulate(sm.Run(sm.Scheme(sm.Identity(), memory=memory, values="modulo-3"), DIM), np.stack([alike] * 4))[
        -1
    ]
    assert error(last, alike) < 0.5 * 0.0358 / N


def test_it_passes_the_conformance_checks():
    scheme = sm.Scheme(sm.RandK(0.9), memory=sm.Hybrid(), values="modulo-3")
    check_scheme(scheme, dim=600, trials=8)
    assert not scheme.unbiased
    run = sm.Run(scheme, 600)
    assert sm.Run.from_json(run.to_json()) == run


def test_runs_that_have_no_use_for_a_sketch_say_so():
    schemes = [
        sm.Scheme(sm.Identity(), values="modulo-3"),
        sm.Scheme(sm.RandK(100), memory=sm.Hybrid(), values="modulo-3"),  # too few
        sm.Scheme(sm.RandK(520, draw=sm.Balanced()), memory=sm.Hybrid(), values="modulo-3"),
        sm.Scheme(sm.Remembered(sm.Identity()), memory=sm.Hybrid(), values="modulo-3"),
        sm.Scheme(sm.Relative(sm.Identity()), memory=sm.Hybrid(), values="modulo-3"),
        sm.Scheme(sm.Identity(), memory=sm.Hybrid(), values="eden-3"),
    ]
    for scheme in schemes:
        run = sm.Run(scheme, DIM)
        assert sm.Server(run).sketch("a") == b""
        assert len(sm.simulate(run, np.stack([REST] * 3))) == 3
        if not run.planned:
            with pytest.raises(sm.InvalidInput, match="no use for a sketch"):
                sm.Client(run, "a").encode(REST[0], 0, sketch=b"x")


def test_what_cannot_be_right_is_refused():
    run, server = run_of(), sm.Server(run_of())
    accept(server, REST)
    server.close_round()
    client = sm.Client(run, "0")
    for wrong in (b"x", server.sketch("0")[:-4], b"\xff" * 256):
        with pytest.raises(sm.InvalidInput, match="no sketch of this run"):
            client.encode(REST[0], 1, sketch=wrong)
    accept(server, REST)
    server.close_round()
    blob = client.encode(REST[0], 2, sketch=server.sketch("0"))
    forgetful = sm.Server(sm.Run(sm.Scheme(sm.Identity(), values="modulo-3"), DIM, seed=5), round=2)
    with pytest.raises(sm.MalformedPayload, match="told of none"):
        forgetful.accept("0", blob)
    with pytest.raises(sm.InvalidInput, match="cannot be clipped"):
        sm.Server(run, clip=sm.Clip(norm=1.0))
