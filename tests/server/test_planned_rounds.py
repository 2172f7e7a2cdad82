"""Rounds by plans: payloads that come again, bounds on values, nodes of several sizes, stand-ins and node state."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._types import Doubles, Ints
from sparsemean.payload import Payload
from sparsemean.sampling import Plan

DIM, K = 24, 6
NODES = ["a", "b", "c", "d"]
VECTORS: dict[str, Doubles] = dict(zip(NODES, np.random.default_rng(2).normal(size=(4, DIM)) + 1.0, strict=True))
SCHEME = sm.named("rand-k-balanced-hybrid", k=K, values="float64")


def payloads(server: sm.Server, nodes: list[str], plans: dict[str, bytes] | None = None) -> dict[str, bytes]:
    told = server.plans(nodes) if plans is None else plans
    return {node: sm.Client(server.run, node).encode(VECTORS[node], server.round, told[node]) for node in nodes}


@pytest.mark.parametrize("listed", [False, True])
def test_a_payload_of_the_round_before_gives_its_receipt_whatever_slots_there_are_now(listed: bool) -> None:
    server = sm.Server(sm.Run(SCHEME, DIM, seed=3, nodes=NODES if listed else None))
    blobs = payloads(server, NODES, dict.fromkeys(NODES) if listed else None)  # type: ignore[arg-type]
    receipts = dict(server.accept_many(blobs))
    server.close_round()
    digest = server.digest()
    assert dict(server.accept_many(blobs)) == receipts
    assert server.digest() == digest
    server.plans(["d", "a"])
    digest = server.digest()
    for node, blob in blobs.items():
        assert server.accept(node, blob) == receipts[node]
    other = sm.Client(server.run, "a").encode(VECTORS["b"], 0, codec.pack_plan(server.run, "a", 0, Plan(0, 4)))
    with pytest.raises(sm.WrongRound, match="round 0 is over"):
        server.accept("a", other)
    assert server.digest() == digest
    server.skip_round()
    with pytest.raises(sm.WrongRound):
        server.accept("a", blobs["a"])


def test_who_was_late_for_a_round_learns_that_it_is_over_and_not_that_the_plan_is_wrong() -> None:
    server = sm.Server(sm.Run(SCHEME, DIM, seed=3))
    blobs = payloads(server, NODES)
    server.accept("a", blobs["a"])
    server.close_round()
    for node in "bcd":
        with pytest.raises(sm.WrongRound, match="round 0 is over"):
            server.accept(node, blobs[node])


@pytest.mark.parametrize("clip", [sm.Clip(norm=1.0), sm.Clip(value=0.5)], ids=repr)
@pytest.mark.parametrize(("k", "came"), [(6, 4), (9, 4), (9, 3)])
def test_one_node_moves_the_mean_no_further_than_is_said(clip: sm.Clip, k: int, came: int) -> None:
    """Four slots, np whole or not, one of them empty or none; in forty rounds the bound is met."""
    run = sm.Run(sm.Scheme(sm.RandK(k, draw=sm.Balanced()), sm.Spatial("avg"), values="float64"), DIM, seed=3)
    servers, largest = [sm.Server(run, clip=clip) for _ in range(2)], [0.0, 0.0]
    bound = clip.bound(run, came, slots=4)
    for _ in range(40):
        means = []
        for server, value in zip(servers, (1e6, -1e6), strict=True):
            plans = server.plans(NODES)
            blobs = payloads(server, NODES[:came], plans)
            blobs["a"] = sm.Client(run, "a").encode(np.full(DIM, value), server.round, plans["a"])
            assert all(isinstance(answer, sm.Receipt) for _, answer in server.accept_many(blobs))
            means.append(server.close_round().mean)
        moved = means[0] - means[1]
        assert np.linalg.norm(moved) <= bound.length * (1 + 1e-12)
        assert np.abs(moved).max() <= bound.coordinate * (1 + 1e-12)
        assert np.count_nonzero(moved) == k
        largest = [max(largest[0], float(np.linalg.norm(moved))), max(largest[1], float(np.abs(moved).max()))]
    if clip.value is not None:
        assert largest[1] == pytest.approx(bound.coordinate)
    if k == 6:
        assert largest[0] == pytest.approx(bound.length)


def test_a_clipped_payload_keeps_its_class_so_that_the_mean_is_as_if_the_node_had_sent_so() -> None:
    """A payload that is cut is a new one: its slots, by which the decoder weighs, must stay."""
    run = sm.Run(sm.Scheme(sm.RandK(9, draw=sm.Balanced()), sm.Spatial("max"), values="float64"), DIM, seed=3)
    clipped, plain = sm.Server(run, clip=sm.Clip(value=0.5)), sm.Server(run)
    for server in (clipped, plain):
        plans = {**server.plans(NODES[:3]), "d": server.plan("d")}
        for node in NODES:
            x = VECTORS[node] if server is clipped else VECTORS[node].clip(-0.5, 0.5)
            server.accept(node, sm.Client(run, node).encode(x, 0, plans[node]))
    one, other = clipped.close_round(), plain.close_round()
    np.testing.assert_allclose(one.mean, other.mean, rtol=1e-13)
    assert one.error == pytest.approx(other.error, rel=1e-12)


def test_nodes_of_several_sizes_are_balanced_among_those_of_their_size() -> None:
    """Eight slots in both draws: of those that send half of all, and of those that send a quarter."""
    run = sm.Run(sm.named("rand-k-balanced", k=(12, 6)), DIM, seed=3)
    nodes = [f"node-{i}" for i in range(8)]
    server = sm.Server(run)
    plans = server.plans(nodes)
    counts = np.zeros((2, DIM), int)
    for i, node in enumerate(nodes):
        client = sm.Client(run, node, run.encoders[i % 2])
        server.accept(node, client.encode(np.ones(DIM), 0, plans[node]))
        at, _ = run.coordinates(node, 0, choice=i % 2, plan=Plan(i, 8))
        counts[i % 2, at] += 1
    estimate = server.close_round()
    assert estimate.counts.tolist() == counts.sum(axis=0).tolist()
    server = sm.Server(run)
    plans = server.plans(nodes)
    for node in nodes:  # all of one size: np = 4 of them send each coordinate
        server.accept(node, sm.Client(run, node, run.encoders[0]).encode(np.ones(DIM), 0, plans[node]))
    assert set(server.close_round().counts.tolist()) == {4}


def test_a_node_may_choose_its_size_after_it_has_its_plan() -> None:
    run = sm.Run(sm.named("rand-k-balanced", k=(12, 6)), DIM, seed=3)
    server = sm.Server(run)
    plan = server.plans(["a", "b"])["a"]
    for encoder in run.encoders:
        blob = sm.Client(run, "a", encoder).encode(VECTORS["a"], 0, plan)
        payload = codec.read_payload(run, "a", *codec.open_frame(run, "a", blob), Plan(0, 2))
        assert isinstance(payload, Payload)
        assert (payload.slots, payload.parts[0].values.size) == (2, encoder.k)  # type: ignore[attr-defined]


def test_absent_nodes_that_memories_stand_in_for_keep_their_slots() -> None:
    """``missing="carry"``: with equal vectors, all told once, the mean is exact whoever comes."""
    run = sm.Run(sm.Scheme(sm.RandK(DIM, draw=sm.Balanced()), memory=sm.PerNode(), values="float64"), DIM, seed=3)
    server = sm.Server(run, missing="carry")
    server.accept_many(payloads(server, NODES))
    server.close_round()
    told = {node: codec.unpack_plan(run, node, 1, server.plan(node)) for node in NODES}
    assert sorted(plan.slot for plan in told.values() if plan.slot is not None) == [0, 1, 2, 3]
    server.accept_many(payloads(server, NODES[:2], {node: server.plan(node) for node in NODES}))
    np.testing.assert_allclose(server.close_round().mean, np.mean(list(VECTORS.values()), axis=0), rtol=1e-12)


# --- node state -----------------------------------------------------------------------------------

DIANA = sm.Scheme(sm.Difference(sm.RandK(K, draw=sm.Balanced())), memory=sm.Offset(), values="float64")
TEMPORAL = sm.Scheme(sm.RandK(K, draw=sm.Balanced()), memory=sm.PerNode(), values="float64")


def test_differences_by_plans_are_what_a_memory_at_the_server_gives() -> None:
    """DIANA with step k/d is per-node Temporal, whatever the draw; one client goes through save and restore."""
    runs = [sm.Run(scheme, DIM, seed=3) for scheme in (DIANA, TEMPORAL)]
    # The two runs have digests of their own but one seed, and so the same coordinates.
    servers = [sm.Server(run) for run in runs]
    clients = [{node: sm.Client(run, node) for node in NODES} for run in runs]
    for round in range(6):
        cohort = NODES[: 2 + round % 3]
        means = []
        for server, mine in zip(servers, clients, strict=True):
            plans = server.plans(cohort)
            for node in cohort:
                client = mine[node]
                blob = client.encode(VECTORS[node] + round / 10, round, plans[node])
                assert client.encode(VECTORS[node] + round / 10, round, plans[node]) == blob
                client.delivered(server.accept(node, blob))
                mine[node] = sm.Client.restore(server.run, node, client.save())
            means.append(server.close_round().mean)
        np.testing.assert_allclose(means[0], means[1], rtol=0, atol=1e-12)


def test_a_round_that_was_not_delivered_is_encoded_anew_by_the_next_plan() -> None:
    server = sm.Server(sm.Run(DIANA, DIM, seed=3))
    client = sm.Client(server.run, "a")
    client.encode(VECTORS["a"], 0, server.plans(NODES)["a"])  # lost on the way
    server.accept("b", sm.Client(server.run, "b").encode(VECTORS["b"], 0, server.plan("b")))
    server.close_round()
    blob = client.encode(VECTORS["a"], 1, server.plans(["a", "c"])["a"])
    client.delivered(server.accept("a", blob))
    np.testing.assert_allclose(
        server.close_round().counts, np.bincount(_sent(server.run, blob, Plan(0, 2)), minlength=DIM)
    )


def _sent(run: sm.Run, blob: bytes, plan: Plan) -> Ints:
    payload = codec.read_payload(run, "a", *codec.open_frame(run, "a", blob), plan)
    assert payload is not None
    return payload.parts[0].coordinates


def test_a_node_that_is_out_of_step_is_told_so_and_begins_afresh_in_its_slot() -> None:
    server = sm.Server(sm.Run(DIANA, DIM, seed=3))
    clients = {node: sm.Client(server.run, node) for node in "ab"}
    for _ in range(2):
        plans = server.plans(["a", "b"])
        for node, client in clients.items():
            client.delivered(server.accept(node, client.encode(VECTORS[node], server.round, plans[node])))
        server.close_round()
    server.forget("a")
    plan = server.plans(["a", "b"])["a"]
    digest = server.digest()
    with pytest.raises(sm.OutOfStep):
        server.accept("a", clients["a"].encode(VECTORS["a"], 2, plan))
    assert server.digest() == digest
    clients["a"].reset()
    clients["a"].delivered(server.accept("a", clients["a"].encode(VECTORS["a"], 2, plan)))
    assert server.close_round().nodes == ("a",)
