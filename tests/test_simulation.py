"""simulate and estimate_mean are Client and Server in a loop, and say what is wrong with their arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName
from sparsemean.simulation import play_round

VECTORS = np.random.default_rng(0).normal(size=(4, 5, 12))
OPTIONS: dict[str, dict[str, Any]] = {"rand-k-spatial-opt": {"ratio": 2.0}}


@pytest.mark.filterwarnings("ignore::sparsemean.DivergenceWarning")
@pytest.mark.parametrize("name", sm.names())
def test_simulate_is_what_a_caller_would_write(name: SchemeName) -> None:
    run = sm.Run(sm.named(name, k=4, **OPTIONS.get(name, {})), dim=12, seed=3)
    weights = [1.0, 2.0, 0.5, 0.0, 1.0]
    server, clients = sm.Server(run), [sm.Client(run, str(i)) for i in range(5)]
    for t, estimate in enumerate(sm.simulate(run, VECTORS, weights)):
        plans = server.plans(client.node for client in clients)
        for i, client in enumerate(clients):
            client.delivered(server.accept(str(i), client.encode(VECTORS[t, i], t, plans[str(i)]), weights[i]))
        by_hand = server.close_round()
        assert np.array_equal(estimate.mean, by_hand.mean)
        assert np.array_equal(estimate.counts, by_hand.counts)
        assert estimate.round == t
        assert estimate.nodes == ("0", "1", "2", "3", "4")
        assert (estimate.bytes, estimate.error) == (by_hand.bytes, by_hand.error)


@pytest.mark.parametrize("name", ["rand-k", "wangni", "top-k", "rand-k-spatial-avg"])
def test_estimate_mean_is_the_first_round(name: SchemeName) -> None:
    scheme = sm.named(name, k=4)
    one = sm.estimate_mean(VECTORS[0], scheme, seed=8)
    assert np.array_equal(one.mean, sm.simulate(sm.Run(scheme, 12, 8), VECTORS[:1])[0].mean)


def test_the_seed_decides_everything() -> None:
    scheme = sm.named("rand-k", k=4)
    means = [sm.estimate_mean(VECTORS[0], scheme, seed).mean.tolist() for seed in (1, 1, 2)]
    assert means[0] == means[1] != means[2]


def test_weights_may_differ_by_block() -> None:
    run = sm.Run(sm.named("identity", values="float64"), dim=12, blocks=[5, 7])
    weights = np.random.default_rng(1).uniform(0, 2, size=(5, 2))
    spread = np.repeat(weights, [5, 7], axis=1)
    for batch, estimate in zip(VECTORS, sm.simulate(run, VECTORS, weights), strict=True):
        np.testing.assert_allclose(estimate.mean, (spread * batch).sum(axis=0) / spread.sum(axis=0), rtol=1e-13)


def test_whole_numbers_and_lists_will_do() -> None:
    assert sm.estimate_mean([[1, 2], [3, 5]], sm.named("identity")).mean.tolist() == [2.0, 3.5]
    assert sm.simulate(sm.Run(sm.named("identity"), dim=2), np.empty((0, 3, 2))) == []


def test_play_round_lets_nodes_differ_from_round_to_round() -> None:
    run = sm.Run(sm.named("lag", values="float64"), dim=12)
    server, clients = sm.Server(run), [sm.Client(run, str(i)) for i in range(5)]
    first = play_round(server, clients, VECTORS[0], np.ones(5))
    second = play_round(server, clients[:2], VECTORS[0, :2], np.ones(2))
    assert (first.nodes, second.nodes) == (("0", "1", "2", "3", "4"), ("0", "1"))
    np.testing.assert_allclose(second.mean, VECTORS[0, :2].mean(axis=0), rtol=1e-14)
    assert second.bytes == 2 * 64


@pytest.mark.parametrize("shape", [(3,), (3, 12), (2, 0, 12), (2, 3, 11), (1, 2, 3, 12)])
def test_simulate_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(sm.InvalidInput, match="shape"):
        sm.simulate(sm.Run(sm.named("identity"), dim=12), np.ones(shape))


@pytest.mark.parametrize("shape", [(), (3,), (0, 3), (3, 0), (1, 2, 3)])
def test_estimate_mean_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(sm.InvalidInput, match="shape"):
        sm.estimate_mean(np.ones(shape), sm.named("identity"))


@pytest.mark.parametrize("weights", [2.0, [1.0], [1.0] * 6, [], [[1.0, 2.0]] * 5, [-1.0] * 5, [np.nan] * 5, ["a"] * 5])
def test_weights_that_fit_no_node_are_refused(weights) -> None:
    with pytest.raises(sm.InvalidInput, match="weight"):
        sm.estimate_mean(VECTORS[0], sm.named("identity"), weights=weights)


def test_no_weight_at_all_is_too_few_nodes() -> None:
    with pytest.raises(sm.TooFewNodes, match="weight 0"):
        sm.estimate_mean(VECTORS[0], sm.named("identity"), weights=np.zeros(5))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_vector_with_nan_or_infinity_is_refused(bad: float) -> None:
    vectors = VECTORS[0].copy()
    vectors[2, 3] = bad
    with pytest.raises(sm.InvalidInput, match="NaN"):
        sm.estimate_mean(vectors, sm.named("rand-k", k=4))
