"""What holds for every memory with fitted coefficients: unbiased given the past, and hardly worse than none."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.evaluation import exact_error, truth
from sparsemean.simulation import play_round

FITTED = [sm.Hybrid(), sm.SharedStable()]


@pytest.mark.parametrize(
    ("decoder", "blocks"), [(sm.Mean(), (3,)), (sm.Spatial("max"), (1, 2)), (sm.Spatial("learned"), (1, 2))]
)
@pytest.mark.parametrize("memory", FITTED)
def test_whatever_happened_before_the_next_round_is_exactly_unbiased(
    monkeypatch: pytest.MonkeyPatch, memory: sm.Memory, decoder: sm.Decoder, blocks: tuple[int, ...]
) -> None:
    """Over all samples of all nodes: mean, error, what is said of the error, R1 and R2 are right to 1e-10."""
    run = sm.Run(sm.Scheme(sm.RandK(2), decoder, memory, "float64"), 3, 3, blocks)
    rng = np.random.default_rng(1)
    *past, vectors = rng.normal(size=3) + 0.5 * rng.normal(size=(4, 3, 3))
    weights = rng.uniform(0.5, 2.0, size=(3, len(blocks)))
    nodes = ["node-0", "node-1", "node-2"]

    def send(server: sm.Server, vectors: Doubles) -> sm.Estimate:
        for node, vector, weight in zip(nodes, vectors, weights, strict=True):
            server.accept(node, sm.Client(run, node).encode(vector, server.round), weight)
        return server.close_round()

    found: list[sm.Estimate] = []
    for chosen in itertools.product(itertools.combinations(range(3), 2), repeat=3):
        server = sm.Server(run)
        with monkeypatch.context() as forced:
            for batch in past:
                send(server, batch)
            samples = dict(zip(nodes, map(np.array, chosen), strict=True))
            forced.setattr("sparsemean.sampling.draws.gathered", lambda at, vector: vector[at])
            forced.setattr("sparsemean.sampling.draws.sample_of", lambda key, d, k, at=samples: at[key.node])
            if not found:
                exact = exact_error(server, nodes, vectors, weights)
                expected = np.array([server.expected(node) for node in nodes])
            found.append(send(server, vectors))
    assert np.abs(expected).max() > 0.1, "something is remembered"
    here, innovation = (truth(x, weights, run.ranges) for x in (vectors, vectors - expected))
    means = np.array([estimate.mean for estimate in found])
    np.testing.assert_allclose(means.mean(axis=0), here.mean, rtol=0, atol=1e-12)
    assert np.mean(np.sum((means - here.mean) ** 2, axis=1)) == pytest.approx(exact, rel=1e-10)
    assert np.mean([estimate.error for estimate in found]) == pytest.approx(exact, rel=1e-10)
    r1, r2 = np.mean([(e.correlation.r1, e.correlation.r2) for e in found if e.correlation], axis=0)
    assert (r1, r2) == pytest.approx((innovation.r1.sum(), innovation.r2.sum()), rel=1e-10)


@pytest.mark.parametrize("memory", FITTED)
def test_nodes_that_disagree_make_it_hardly_worse_than_no_memory(memory: sm.Memory) -> None:
    """Vectors without anything in common, with each other or with the past: exact errors of 60 rounds."""
    n, dim, share = 10, 2_000, 0.01
    server = sm.Server(sm.Run(sm.Scheme(sm.RandK(share), memory=memory, values="float64"), dim))
    rng, worse = np.random.default_rng(0), []
    nodes = [f"node-{i}" for i in range(n)]
    for _ in range(60):
        vectors = rng.normal(size=(n, dim))
        exact = exact_error(server, nodes, vectors)
        assert exact is not None
        worse.append(exact / theory.rand_k_mse(theory.correlation(vectors)[0], n, share))
        play_round(server, [sm.Client(server.run, node) for node in nodes], vectors, np.ones(n))
    assert max(worse) < 1.1
    assert np.mean(worse) < 1.02
