"""Quantisers of other papers in whole rounds: what the server says of its error, and what combines with them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import checks
from sparsemean._names import SchemeName, ValueName

Z = 4.5
KINDS = ["terngrad", "natural", "qsgd-4", "rotated-2"]


@pytest.mark.parametrize("values", KINDS)
@pytest.mark.parametrize("name", ["identity", "rand-k-spatial-avg", "wangni", "error-feedback-top-k"])
def test_named_schemes_keep_what_they_declare(name: SchemeName, values: ValueName) -> None:
    """Unbiased through the bytes, and the error that the server states is the exact one on average."""
    checks.check_scheme(sm.named(name, k=0.5, values=values), dim=40, nodes=3, trials=80)


@pytest.mark.parametrize("values", KINDS)
def test_the_error_tells_what_rounding_adds_with_weights_and_blocks(values: ValueName) -> None:
    """Groups of values that lie in several blocks of other sizes and weights: |z| < 4.5 over 60 seeds."""
    rng, blocks = np.random.default_rng(8), (100, 1400)
    vectors = rng.normal(size=(5, 1500)) * np.repeat([3.0, 1.0], blocks)
    weights = rng.uniform(0.5, 2.0, size=(5, 2))
    w = np.repeat(weights, blocks, axis=1)
    truth = np.sum(w * vectors, axis=0) / w.sum(axis=0)
    off = []
    for seed in range(60):
        run = sm.Run(sm.Scheme(sm.RandK(900), values=values), 1500, seed, blocks)
        (estimate,) = sm.simulate(run, vectors[None], weights)
        assert estimate.error is not None
        assert estimate.rounding
        assert not estimate.error_is_bound
        off.append(estimate.error - np.sum((estimate.mean - truth) ** 2))
    assert abs(np.mean(off)) < Z * np.std(off) / math.sqrt(len(off))


@pytest.mark.parametrize("values", [*KINDS, "qsgd-8", "rotated-8"])
def test_the_error_of_ten_vectors_is_a_tenth_of_that_of_one_and_stated(values: ValueName) -> None:
    """Noise of nodes is independent; within 5 %, of which chance takes 1 %."""
    vectors, scheme = np.random.default_rng(2).normal(size=(10, 32768)), sm.named("identity", values=values)
    alone = [sm.estimate_mean(vector[None], scheme, seed=i).rounding for i, vector in enumerate(vectors)]
    estimate = sm.estimate_mean(vectors, scheme)
    error = np.sum((estimate.mean - vectors.mean(axis=0)) ** 2)
    assert error == pytest.approx(np.mean(np.array(alone, np.float64)) / 10, rel=0.05)
    assert estimate.error == pytest.approx(error, rel=0.05)
    assert estimate.rounding == pytest.approx(estimate.error)


@pytest.mark.parametrize("values", KINDS)
def test_states_stay_in_step_and_differences_come_to_rest(values: ValueName) -> None:
    """DIANA's step is divided by 1 + ω of the values, so that it does not diverge whatever their noise."""
    run = sm.Run(sm.Scheme(sm.Difference(sm.Identity()), memory=sm.Offset(), values=values), 700, seed=2)
    client, server = sm.Client(run, "a"), sm.Server(run)
    vector, left = np.random.default_rng(4).normal(size=700), []
    for _ in range(100):
        client.delivered(server.accept("a", client.encode(vector, server.round)))
        left.append(np.sum((server.close_round().mean - vector) ** 2) / np.sum(vector**2))
    assert left[-1] < 0.05 * left[0]
    assert np.isfinite(left).all()
    again = sm.Client.restore(run, "a", client.save())
    assert client.encode(vector, server.round) == again.encode(vector, server.round)


def test_a_balanced_draw_has_no_common_scale_for_them() -> None:
    run = sm.Run(sm.named("rand-k-balanced", 0.5, values="qsgd-4"), 2000)
    assert not run.common_scale
    (first, second) = sm.simulate(run, np.random.default_rng(0).normal(size=(2, 6, 2000)))
    assert first.bytes == second.bytes == 6 * run.payload_bytes


def test_a_run_is_bound_to_its_kind() -> None:
    run = sm.Run(sm.named("identity", values="qsgd-4"), 50)
    assert sm.Run.from_json(run.to_json()) == run
    other = sm.Run(sm.named("identity", values="rotated-4"), 50)
    with pytest.raises(sm.ForeignPayload):
        sm.Server(run).accept("a", sm.Client(other, "a").encode(np.ones(50), 0))
