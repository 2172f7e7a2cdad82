"""Balanced draws over the nodes of each encoder, and nodes that send in proportion to their weight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import SchemeName
from sparsemean.evaluation import exact_error
from sparsemean.sampling import Plan
from sparsemean.simulation import play_round

DIM, SIZES = 40, (20, 8)
RUN = sm.Run(sm.named("rand-k-balanced", k=SIZES, values="float64"), DIM, seed=3)
USES = {"a": sm.RandK(20), "b": sm.RandK(8), "c": sm.RandK(8), "d": None, "e": sm.RandK(8), "f": RUN.encoders[1]}


def client(node: str, run: sm.Run = RUN) -> sm.Client:
    return sm.Client(run, node, USES[node])


def terms(plans: dict[str, bytes], run: sm.Run = RUN, round: int = 0) -> dict[str, Plan]:
    return {node: codec.unpack_plan(run, node, round, plan) for node, plan in plans.items()}


def test_nodes_of_each_encoder_share_slots_of_their_own() -> None:
    server = sm.Server(RUN)
    plans = server.plans(USES)
    first, second = ("a", "d"), ("b", "c", "e", "f")
    assert terms(plans) == {
        **{node: Plan(slot, 2) for slot, node in enumerate(first)},
        **{node: Plan(slot, 4) for slot, node in enumerate(second)},
    }
    assert server.plans(USES) == plans
    assert server.plan("c") == plans["c"]
    for group, k in ((first, 20), (second, 8)):
        drawn = [RUN.coordinates(node, 0, choice=SIZES.index(k), plan=terms(plans)[node])[0] for node in group]
        counts = np.bincount(np.concatenate(drawn), minlength=DIM)
        assert set(counts) <= {len(group) * k // DIM, -(-len(group) * k // DIM)}


def test_names_alone_share_all_slots_as_ever() -> None:
    assert {plan.slots for plan in terms(sm.Server(RUN).plans(list(USES))).values()} == {6}
    vectors = dict.fromkeys(USES, np.ones(DIM))
    assert {plan.slots for plan in terms(sm.Server(RUN).plans(vectors)).values()} == {6}, "whatever the names stand for"
    one = sm.Run(sm.named("rand-k-balanced", k=8), DIM)
    assert {plan.slots for plan in terms(sm.Server(one).plans(dict.fromkeys("ab", one.encoders[0])), one).values()} == {
        2
    }


def test_an_encoder_that_the_run_has_not_is_refused() -> None:
    with pytest.raises(sm.InvalidInput, match="none of the run's encoders"):
        sm.Server(RUN).plans({"a": sm.RandK(5)})


def test_a_payload_by_another_encoder_than_was_planned_is_refused() -> None:
    server = sm.Server(RUN)
    plans = server.plans(USES)
    digest = server.digest()
    with pytest.raises(sm.WrongPlan, match=r"tell server\.plans"):
        server.accept("b", sm.Client(RUN, "b", sm.RandK(20)).encode(np.ones(DIM), 0, plans["b"]))
    assert server.digest() == digest
    server.accept("b", client("b").encode(np.ones(DIM), 0, plans["b"]))
    server.accept("z", sm.Client(RUN, "z", sm.RandK(20)).encode(np.ones(DIM), 0, server.plan("z")))  # it has no slot


def test_the_journal_has_the_slots_of_each_encoder(tmp_path: Path) -> None:
    # Whole numbers: with several encoders, how sums are rounded depends on which payloads are folded at once.
    vectors, alone = np.random.default_rng(0).integers(-9, 10, size=(6, DIM)), sm.Server(RUN)
    for round in range(2):
        alone.plans(USES)
        for number, (node, vector) in enumerate(zip(USES, vectors, strict=True)):
            with sm.Server(RUN, journal=tmp_path) as server:  # a new process for everything
                plans = server.plans(USES) if not number else {each: server.plan(each) for each in USES}
                assert plans == alone.plans(USES)
                blob = client(node).encode(vector, round, plans[node])
                assert server.accept(node, blob) == alone.accept(node, blob)
                assert server.digest() == alone.digest()
        with sm.Server(RUN, journal=tmp_path) as server:
            np.testing.assert_array_equal(server.close_round().mean, alone.close_round().mean)
        with sm.Server(RUN, journal=tmp_path) as server:
            assert server.digest() == alone.digest()
            assert server.accept(node, blob) == alone.accept(node, blob), "that of the round before, again"


@pytest.mark.parametrize(("weighting", "trials"), [("learned", 250), ("max", 250)])
def test_it_is_unbiased_with_the_error_of_the_formula(weighting: str, trials: int) -> None:
    """Sizes in proportion to weights, one node absent; |z| below 4.5."""
    rng, n = np.random.default_rng(5), 9
    weights = rng.lognormal(size=n)
    sizes = sm.theory.sizes_for_weights(weights, 6, 24, levels=3)
    encoders = tuple(sm.RandK(k, draw=sm.Balanced()) for k in sorted(set(sizes), reverse=True))
    assert len(encoders) == 3
    vectors = rng.normal(size=24) + 0.3 * rng.normal(size=(n, 24))
    came = np.arange(n) != 4
    truth = weights[came] @ vectors[came] / weights[came].sum()
    means, off, told = [], [], []
    for seed in range(trials):
        run = sm.Run(sm.Scheme(sm.OneOf(encoders), sm.Spatial(weighting)), 24, seed)
        server, clients = sm.Server(run), [sm.Client(run, str(i), sm.RandK(k)) for i, k in enumerate(sizes)]
        if weighting == "learned":
            play_round(server, clients, vectors, weights)
        plans = server.plans({each.node: each.encoder for each in clients})
        choices = np.array([each.choice for each in clients])
        exact = exact_error(server, [each.node for each in clients], vectors, weights * came, choices)
        for each, vector, weight, here in zip(clients, vectors, weights, came, strict=True):
            if here:
                server.accept(each.node, each.encode(vector, server.round, plans[each.node]), float(weight))
        estimate = server.close_round()
        assert exact is not None
        assert estimate.error is not None
        means.append(estimate.mean)
        off.append(float(np.sum((estimate.mean - truth) ** 2)) - exact)
        told.append((estimate.error - exact, estimate.error_is_bound))
    z = (np.mean(means, axis=0) - truth) / (np.std(means, axis=0) / np.sqrt(trials))
    assert np.abs(z).max() < 4.5
    assert abs(np.mean(off)) < 4.5 * np.std(off) / np.sqrt(trials)
    gaps, bounds = np.array(told).T
    assert bounds.all(), "some class is so small that its nodes never meet"
    assert gaps.mean() > -4.5 * gaps.std() / np.sqrt(trials)


@pytest.mark.parametrize("name", ["rand-k-spatial-adaptive-unbiased", "rand-k-balanced"])
def test_sizes_in_proportion_to_weights_cost_no_more_than_equal_weights(name: SchemeName) -> None:
    """Lognormal weights of σ = 1, as many bytes: at most 1.1 × the error of Opt with equal weights."""
    n, dim, share, similar = 30, 4000, 0.2, 0.99
    rng = np.random.default_rng(0)
    opt = sm.named("rand-k-spatial-opt", k=share, ratio=similar * (n - 1))
    errors: dict[str, list[float]] = {"equal": [], "one k": [], "in proportion": []}
    for seed in range(4):
        weights = rng.lognormal(size=n)
        vectors = np.sqrt(similar) * rng.normal(size=dim) + np.sqrt(1 - similar) * rng.normal(size=(n, dim))
        sizes = sm.theory.sizes_for_weights(weights, share * dim, dim)
        scheme = sm.named(name, k=sorted(set(sizes), reverse=True))
        played = (
            ("equal", opt, np.ones(n), None),
            ("one k", opt, weights, None),
            ("in proportion", scheme, weights, [sm.RandK(k) for k in sizes]),
        )
        for what, each, given, encoders in played:
            last = sm.simulate(sm.Run(each, dim, seed), np.stack([vectors] * 2), given, encoders)[1]
            errors[what].append(float(np.sum((last.mean - given @ vectors / given.sum()) ** 2)))
            assert last.bytes <= 1.001 * n * (64 + 4 * share * dim)
    assert np.mean(errors["in proportion"]) < 1.1 * np.mean(errors["equal"]) < 0.05 * np.mean(errors["one k"])
