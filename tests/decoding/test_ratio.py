"""The ratio decoder: at each coordinate the weighted mean of those who sent it."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName
from sparsemean._types import Doubles
from sparsemean.decoding import Ratio
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.totals import RoundTotals
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks

DIM, BLOCKS = 60, (20, 40)


def twin(run: sm.Run, sent: dict[str, tuple[Doubles, Doubles, int]], round: int = 0) -> Doubles:
    """Coordinate by coordinate, from the coordinates that each node (vector, weights, choice) draws."""
    block_of = np.repeat(np.arange(len(run.blocks)), run.blocks)
    above, below = np.zeros(run.dim), np.zeros(run.dim)
    for node, (vector, weights, choice) in sent.items():
        for j in run.coordinates(node, round, choice=choice)[0]:
            weight = weights[block_of[j]] / run.shares[choice]
            above[j] += weight * vector[j]
            below[j] += weight
    return np.array([a / b if b else 0.0 for a, b in zip(above, below, strict=True)])


@pytest.mark.parametrize("name", ["rand-k-ratio", "rand-k-balanced-ratio"])
@pytest.mark.parametrize("k", [12, (12, 4)], ids=str)
def test_each_coordinate_is_the_weighted_mean_of_its_senders(name: SchemeName, k: int | tuple[int, int]) -> None:
    nodes = list("abcde")
    run = sm.Run(sm.named(name, k=k, values="float64"), DIM, 3, BLOCKS, nodes if "balanced" in name else None)
    rng, server, sent = np.random.default_rng(0), sm.Server(run), {}
    for i, node in enumerate(nodes):
        choice = i % len(run.encoders)
        vector, weights = rng.normal(size=DIM), np.array([rng.lognormal(), 0.0 if node == "b" else rng.lognormal()])
        sent[node] = vector, weights, choice
        server.accept(node, sm.Client(run, node, run.encoders[choice]).encode(vector, 0), weights)
    estimate = server.close_round()
    expected = twin(run, sent)
    np.testing.assert_allclose(estimate.mean, expected, rtol=1e-12)
    assert DIM / 2 < np.count_nonzero(expected) < DIM, "some coordinates nobody sent"
    assert (estimate.error, estimate.error_se, estimate.correlation) == (None, None, None)


def test_one_node_at_a_time_and_merged_totals_are_the_same() -> None:
    rng, whole = np.random.default_rng(1), RoundTotals(Blocks(BLOCKS), False, weighs=True)
    halves = [RoundTotals(Blocks(BLOCKS), False, weighs=True) for _ in range(2)]
    for i in range(6):
        chosen, weights = np.sort(rng.permutation(DIM)[:15]), rng.lognormal(size=2)
        part = Part(chosen, rng.normal(size=15), scale=4.0)
        for totals in (whole, halves[i % 2]):
            totals.add(weights, [part])
    halves[0].merge(halves[1])
    means = [Ratio().innovation(totals, (0.25,), (Belief(),) * 2) for totals in (whole, halves[0])]
    np.testing.assert_allclose(means[0], means[1], rtol=1e-12)
    assert whole.sent_weight.sum() == pytest.approx(halves[0].sent_weight.sum())


def test_equal_vectors_are_exact_wherever_anybody_sent() -> None:
    run = sm.Run(sm.named("rand-k-ratio", k=0.3, values="float64"), DIM, seed=2)
    vector, weights = np.random.default_rng(0).normal(size=DIM), np.array([100.0, 1.0, 0.01, 1.0])
    (estimate,) = sm.simulate(run, np.broadcast_to(vector, (1, 4, DIM)), weights)
    np.testing.assert_allclose(estimate.mean, np.where(estimate.counts > 0, vector, 0.0), rtol=1e-12)


def test_its_expectation_is_that_of_all_draws_and_not_the_mean() -> None:
    """Two nodes, two coordinates, k = 1, weights 3 and 1: the four draws by hand, and through the bytes."""
    x, weights = ((2, -1), (5, 4)), (3, 1)
    expected = [Fraction(0), Fraction(0)]
    for draw, j in itertools.product(itertools.product(range(2), repeat=2), range(2)):
        senders = [i for i in range(2) if draw[i] == j]
        if senders:
            total, weight = sum(weights[i] * x[i][j] for i in senders), sum(weights[i] for i in senders)
            expected[j] += Fraction(total, 4 * weight)
    assert expected[0] == Fraction(39, 16), "where the mean is 11/4"
    scheme, vectors, rounds = sm.named("rand-k-ratio", k=1), np.array(x, np.float64), 2000
    played = sm.simulate(sm.Run(scheme, 2), np.broadcast_to(vectors, (rounds, 2, 2)), np.array(weights))
    means = [estimate.mean for estimate in played]
    off, spread = np.mean(means, axis=0) - np.array(expected, np.float64), np.std(means, axis=0) / np.sqrt(rounds)
    assert np.all(np.abs(off) < 4.5 * spread)
    assert np.any(np.abs(np.mean(means, axis=0) - np.average(x, axis=0, weights=weights)) > 4.5 * spread)
    assert not scheme.unbiased


def test_it_acts_on_residuals_and_absent_nodes_are_carried() -> None:
    """x̂ = Σ w b / Σ w + (w of those who came / w of all) · ratio of their residuals."""
    scheme = sm.Scheme(sm.RandK(30), Ratio(), sm.PerNode(), "float64")
    run = sm.Run(scheme, DIM, 3)
    assert sm.Run.from_json(run.to_json()) == run
    rng, server = np.random.default_rng(0), sm.Server(run, missing="carry")
    weights = dict(zip("abc", (5.0, 1.0, 0.2), strict=True))
    for node, weight in weights.items():
        server.accept(node, sm.Client(run, node).encode(rng.normal(size=DIM), 0), weight)
    server.close_round()
    expected = {node: server.expected(node) for node in weights}
    vectors = {node: rng.normal(size=DIM) for node in "ab"}
    for node, vector in vectors.items():
        server.accept(node, sm.Client(run, node).encode(vector, 1), weights[node])
    residuals = {node: (x - expected[node], np.array([weights[node]]), 0) for node, x in vectors.items()}
    base = sum(weights[node] * expected[node] for node in weights) / 6.2
    np.testing.assert_allclose(server.close_round().mean, base + 6.0 / 6.2 * twin(run, residuals, 1), atol=1e-12)


@pytest.mark.parametrize("name", ["rand-k-ratio", "rand-k-balanced-ratio"])
def test_unequal_weights_cost_little_where_nodes_are_similar(name: SchemeName) -> None:
    """Lognormal weights of σ = 1, (R2/R1)/(n − 1) = 0.99: at most twice the error of Opt with equal weights."""
    n, dim, share, similar = 30, 4000, 0.2, 0.99
    rng = np.random.default_rng(0)
    vectors = np.sqrt(similar) * rng.normal(size=dim) + np.sqrt(1 - similar) * rng.normal(size=(n, dim))
    ratio = similar * (n - 1)
    errors: dict[str, list[float]] = {"equal": [], "spatial": [], name: []}
    for seed in range(4):
        weights = rng.lognormal(size=n)
        opt = sm.named("rand-k-spatial-opt", k=share, ratio=ratio)
        played = (("equal", opt, np.ones(n)), ("spatial", opt, weights), (name, sm.named(name, k=share), weights))
        for what, scheme, given in played:
            mean = sm.estimate_mean(vectors, scheme, seed, given).mean
            errors[what].append(float(np.sum((mean - given @ vectors / given.sum()) ** 2)))
    assert np.mean(errors[name]) < 2 * np.mean(errors["equal"]) < 0.1 * np.mean(errors["spatial"])
