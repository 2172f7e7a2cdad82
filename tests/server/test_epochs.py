"""Epochs through the server: unbiased given the past, with the error it states; plans that are refused; bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import ValueName
from sparsemean._types import Doubles
from sparsemean.evaluation import exact_error
from sparsemean.kernels.sample import Sample, drawn
from sparsemean.sampling import Plan, clock, epoch_samples
from sparsemean.server.terms import Terms
from sparsemean.simulation import play_round

DIM, NODES = 40, 5
Z = 4.5


def terms_of(server: sm.Server) -> Terms:
    """Of the round that was closed last."""
    return server._rounds.roster._closed_terms


def plan_of(server: sm.Server, node: str) -> Plan:
    return codec.unpack_plan(server.run, node, server.round, server.plan(node))


def scheduled(run: sm.Run, node: str, choice: int, plan: Plan) -> Any:
    """Which coordinates of a node are in S before the round of this plan, as its payloads so far tell it."""
    found, k = np.zeros(run.dim, bool), run.layouts[choice][0].count
    began = clock(run.dim, k, plan.ratios).began
    for number in range(began, len(plan.ratios)):
        now = Plan(plan.slot, plan.slots, plan.epoch, plan.ratios[:number])
        found[_where(epoch_samples(run.key(node, 10**6), run.dim, k, now)[0].where)] = True
    return found


def _where(where: Any) -> Any:
    return drawn(where) if isinstance(where, Sample) else where


def later_error(server: sm.Server, clients: Sequence[sm.Client], x: Doubles, w: Doubles) -> float | None:
    """Σ_i Σ_c (1/π_c − 1) w_i² ‖x_i − b_i‖²_c / W²; None where a node is in its first draw."""
    run, total = server.run, 0.0
    for client, vector, weight in zip(clients, x, w, strict=True):
        plan = plan_of(server, client.node)
        now = clock(run.dim, run.layouts[client.choice][0].count, plan.ratios)
        if not now.scheduled:
            return None
        residual = (vector - server.expected(client.node)) ** 2
        done = scheduled(run, client.node, client.choice, plan)
        assert done.sum() == run.dim - now.unscheduled
        (a, u), (b, s) = now.probabilities
        total += weight**2 * ((u / a - 1) * residual[~done].sum() + (s / b - 1) * residual[done].sum())
    return float(total / w.sum() ** 2)


@pytest.mark.parametrize(
    ("k", "memory", "values", "weights"),
    [
        (8, sm.PerNode(), "int8", (1, 2, 0.5, 1, 3)),
        ((12, 5), sm.Hybrid(), "float64", (1, 2, 0.5, 1, 3)),
        (2, sm.PerNode(), "float64", None),
    ],
)
def test_it_is_unbiased_and_states_its_error_whatever_the_past_was(
    k: Any, memory: sm.Memory, values: ValueName, weights: Any
) -> None:
    """Vectors follow what was estimated before, so that they depend on the past; rounds 2 to 4 of an epoch."""
    draw, sizes = sm.Epochs(ratio=2.5, restart=False), k if isinstance(k, tuple) else (k,)
    made = [sm.RandK(size, draw=draw) for size in sizes]
    encoder: Any = sm.OneOf(tuple(made)) if len(made) > 1 else made[0]
    w = np.ones(NODES) if weights is None else np.array(weights)
    base = np.random.default_rng(1).normal(size=(NODES, DIM)) + 1.0
    trials, rounds = 100, 4
    off: list[list[Any]] = [[] for _ in range(rounds)]
    said, actual, exact, squared = ([list[Any]() for _ in range(rounds)] for _ in range(4))
    directions = np.random.default_rng(2).normal(size=(8, DIM))
    for seed in range(trials):
        run = sm.Run(sm.Scheme(encoder, memory=memory, values=values), DIM, seed=seed)
        server = sm.Server(run)
        clients = [sm.Client(run, str(i), run.encoders[i % len(made)]) for i in range(NODES)]
        x = base
        for round in range(rounds):
            server.plans([client.node for client in clients])
            classes = np.array([client.choice for client in clients])
            true = exact_error(server, [client.node for client in clients], x, w, classes)
            later = later_error(server, clients, x, w)
            assert (later is None) == (round == 0)
            assert later is None or true == pytest.approx(later)
            estimate = play_round(server, clients, x, w)
            error = estimate.mean - w @ x / w.sum()
            off[round].append(directions @ error)
            assert true is not None
            said[round].append(None if estimate.error_is_bound else estimate.error)
            actual[round].append(error @ error)
            exact[round].append(true + (estimate.rounding or 0.0))
            if round:
                assert estimate.error_se is not None
                squared[round].append(estimate.error_se**2)
                assert not estimate.error_is_bound
            x = base + 0.3 * np.sign(estimate.mean) * (1 + np.arange(NODES)[:, None] / NODES)
    for round in range(rounds):
        z = np.mean(off[round], axis=0) / (np.std(off[round], axis=0) / math.sqrt(trials))
        assert np.abs(z).max() < Z, (round, z)
        for of in (said, actual):
            if None not in of[round]:
                gap = np.array(of[round]) - np.array(exact[round])
                assert abs(gap.mean()) < Z * gap.std() / math.sqrt(trials) + 1e-9, round
        if round:
            spread = np.std(np.array(actual[round]) - np.array(exact[round])) / math.sqrt(trials)
            assert spread < 0.1 * np.mean(exact[round])  # so that a wrong formula would show
            # Of 100 trials, and of systematic samples of few values.
            assert 0.5 < np.mean(squared[round]) / np.var(np.array(said[round]) - np.array(exact[round])) < 2.0


def epochs_run(dim: int = DIM, k: Any = 8, **settings: Any) -> sm.Run:
    return sm.Run(
        sm.Scheme(sm.RandK(k, draw=sm.Epochs(**settings)), memory=sm.PerNode(), values="float64"), dim, seed=3
    )


def test_after_an_epoch_of_vectors_that_stay_the_mean_is_exact_and_said_to_be() -> None:
    server = sm.Server(epochs_run(restart=False))
    clients = [sm.Client(server.run, str(i)) for i in range(NODES)]
    x = np.random.default_rng(0).normal(size=(NODES, DIM))
    rounds = 0
    while rounds == 0 or terms_of(server).epoch == 0:
        estimate = play_round(server, clients, x, np.ones(NODES))
        rounds += 1
    assert rounds < 20
    np.testing.assert_allclose(estimate.mean, x.mean(axis=0), atol=1e-12)
    assert estimate.error == pytest.approx(0.0, abs=1e-20)
    assert terms_of(server).ratios == b""  # the first round of the next


def test_slots_are_those_of_the_epochs_beginning_and_who_comes_later_has_none() -> None:
    server = sm.Server(epochs_run(restart=False))
    for round, cohort in enumerate((["a", "b"], ["c", "a"], ["b"])):
        plans = {node: codec.unpack_plan(server.run, node, round, blob) for node, blob in server.plans(cohort).items()}
        for node in cohort:
            slot = {"a": 0, "b": 1}.get(node)
            assert plans[node] == Plan(slot, 0 if slot is None else 2, 0, plans[node].ratios)
            assert len(plans[node].ratios) == round
            server.accept(node, sm.Client(server.run, node).encode(np.ones(DIM), round, server.plan(node)))
        server.close_round()


def test_nodes_of_each_encoder_have_slots_of_their_own_and_one_that_changes_its_encoder_begins_an_epoch() -> None:
    encoders = tuple(sm.RandK(k, draw=sm.Epochs(restart=False)) for k in (16, 8))
    run = sm.Run(sm.Scheme(sm.OneOf(encoders), memory=sm.Hybrid()), DIM, seed=3)
    server, x = sm.Server(run), np.random.default_rng(0).normal(size=(NODES, DIM))
    uses = {str(i): run.encoders[i % 2] for i in range(NODES)}
    for _ in range(3):
        plans = {node: codec.unpack_plan(run, node, server.round, plan) for node, plan in server.plans(uses).items()}
        assert [plans[str(i)].slot for i in range(NODES)] == [0, 0, 1, 1, 2]
        assert {plan.slots for node, plan in plans.items()} == {3, 2}
        play_round(server, [sm.Client(run, node, encoder) for node, encoder in uses.items()], x, np.ones(NODES))
    assert terms_of(server).epoch == 0
    assert len(terms_of(server).ratios) == 2
    uses["0"] = run.encoders[1]
    plan = server.plans(uses)["0"]
    assert codec.unpack_plan(run, "0", 3, plan) == Plan(0, 3, 3)
    server.accept("0", sm.Client(run, "0", run.encoders[1]).encode(x[0], 3, plan))
    with pytest.raises(sm.WrongPlan, match="another encoder"):
        server.accept("2", sm.Client(run, "2", run.encoders[1]).encode(x[2], 3, server.plan("2")))


def test_a_round_of_which_nothing_came_has_used_up_its_ratio_and_one_that_nobody_asked_for_has_not() -> None:
    server = sm.Server(epochs_run(ratio=2.0, restart=False))
    server.plans(["a", "b"])
    server.skip_round()
    server.skip_round()  # nobody asked
    assert plan_of(server, "a") == Plan(0, 2, 0, bytes([32]))
    server.skip_round()
    assert plan_of(server, "b") == Plan(1, 2, 0, bytes([32, 32]))


def test_forged_replayed_and_swapped_plans_are_refused_and_change_nothing() -> None:
    server = sm.Server(epochs_run(restart=False))
    run, x = server.run, np.arange(DIM) * 1.0
    for round in range(2):
        told = server.plans(["a", "b"])
        for node in "ab":
            server.accept(node, sm.Client(run, node).encode(x, round, told[node]))
        server.close_round()
    told = server.plans(["a", "b"])
    digest, right = server.digest(), plan_of(server, "a")
    for plan in (
        Plan(1, 2, 0, right.ratios),  # of the other node
        Plan(0, 2, 0, right.ratios[:-1]),  # of the round before
        Plan(0, 2, 1, right.ratios[:-1]),
        Plan(None, 0, 0, right.ratios),
        Plan(0, 2, 2),
        Plan(0, 2, 0, right.ratios[:-1] + bytes([right.ratios[-1] ^ 1])),
    ):
        forged = codec.pack_plan(run, "a", 2, plan)
        with pytest.raises(sm.WrongPlan, match="another plan"):
            server.accept("a", sm.Client(run, "a").encode(x, 2, forged))
        assert server.digest() == digest
    with pytest.raises(sm.InvalidInput, match="another run, node or round"):
        sm.Client(run, "a").encode(x, 2, told["b"])
    with pytest.raises(sm.InvalidInput, match="needs a plan"):
        sm.Client(run, "a").encode(x, 2)
    assert server.accept("a", sm.Client(run, "a").encode(x, 2, told["a"])).round == 2


def test_without_plans_every_round_begins_an_epoch() -> None:
    run = sm.Run(sm.named("rand-k-epochs-hybrid", k=8), DIM, seed=3, nodes=["a", "b"])
    server = sm.Server(run)
    for round in range(3):
        for node in "ab":
            server.accept(node, sm.Client(run, node).encode(np.ones(DIM), round))
        server.close_round()
        assert (terms_of(server).epoch, terms_of(server).ratios) == (round, b"")


def test_the_ratio_is_learnt_where_what_waited_longest_is_known_least() -> None:
    """Vectors that stay: residuals are 0 where a node was heard, and the ratio goes to its end."""
    server = sm.Server(epochs_run(dim=400, k=80))
    clients = [sm.Client(server.run, str(i)) for i in range(NODES)]
    x = np.random.default_rng(0).normal(size=(NODES, 400))
    for _ in range(3):
        play_round(server, clients, x, np.ones(NODES))
    assert plan_of(server, "0").ratios[-1] == 160
    noisy = sm.Server(sm.Run(sm.Scheme(sm.RandK(80, draw=sm.Epochs(restart=False))), 400, seed=3))
    for seed in range(4):  # without a memory both classes are alike
        x = np.random.default_rng(seed).normal(size=(NODES, 400))
        play_round(noisy, [sm.Client(noisy.run, str(i)) for i in range(NODES)], x, np.ones(NODES))
    assert plan_of(noisy, "0").ratios[-1] < 24


@pytest.mark.parametrize("alike", [True, False])
def test_an_epoch_is_left_where_residuals_are_alike_and_only_there(alike: bool) -> None:
    """Vectors that are equal and new in every round; and independent ones that stay, which a memory learns."""
    server, rng = sm.Server(epochs_run(dim=400, k=80)), np.random.default_rng(0)
    clients, began = [sm.Client(server.run, str(i)) for i in range(10)], set()
    x = rng.normal(size=(10, 400))
    for _ in range(7):
        x = np.tile(rng.normal(size=400), (10, 1)) if alike else x
        play_round(server, clients, x, np.ones(10))
        began.add(terms_of(server).epoch)
    assert len(began) == (7 if alike else 1)


def test_one_node_moves_the_mean_no_further_than_is_said() -> None:
    clip = sm.Clip(norm=1.0)
    run = sm.Run(sm.Scheme(sm.RandK(8, draw=sm.Epochs(ratio=10.0, restart=False)), values="float64"), DIM, seed=3)
    bound, servers, largest = clip.bound(run, NODES), [sm.Server(run, clip=clip) for _ in range(2)], 0.0
    for _ in range(12):
        means = []
        for server, value in zip(servers, (1e6, -1e6), strict=True):
            x = np.ones((NODES, DIM))
            x[0] = value
            means.append(play_round(server, [sm.Client(run, str(i)) for i in range(NODES)], x, np.ones(NODES)).mean)
        largest = max(largest, float(np.linalg.norm(means[0] - means[1])))
    assert 0.05 * bound.length < largest <= bound.length


def test_what_does_not_go_with_epochs_is_refused_with_the_remedy() -> None:
    encoder = sm.RandK(8, draw=sm.Epochs())
    with pytest.raises(sm.IncompatibleScheme, match=r"decode with Mean, or draw with Balanced\(\)"):
        sm.Scheme(encoder, sm.Spatial("avg"))
    for wrapped in (sm.ErrorFeedback, sm.Difference, lambda inner: sm.Lazy(inner, 0.1)):
        with pytest.raises(sm.IncompatibleScheme, match=r"use Balanced\(\) inside"):
            wrapped(encoder)
    with pytest.raises(sm.IncompatibleScheme, match="same coordinates"):
        sm.RandK(8, shared=True, draw=sm.Epochs())
    with pytest.raises(sm.InvalidInput, match="one draw"):
        sm.Run(sm.Scheme(sm.OneOf((encoder, sm.RandK(4, draw=sm.Epochs(2.0))))), DIM)
