"""Rand-k: every coordinate with probability k/d, scaled by d/k; the values are x itself."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.encoders.size import Half
from sparsemean.payload import Payload
from sparsemean.sampling import Key

KEY = Key(0, 0, "a")


def encode(encoder: sm.Encoder, vector, key: Key = KEY) -> Payload:
    payload = encoder.encode(vector, key, {})
    assert payload is not None
    return payload


@pytest.mark.parametrize("k", [1, 2, 4, 5])
def test_over_all_samples_it_is_unbiased_with_the_declared_variance(all_samples, k: int) -> None:
    vector = np.random.default_rng(k).normal(size=5)
    chances, vectors = all_samples(sm.RandK(k), vector, k)
    np.testing.assert_allclose(chances @ vectors, vector, rtol=0, atol=1e-14)
    variance = chances @ np.sum((vectors - vector) ** 2, axis=1)
    assert variance == pytest.approx(sm.RandK(k).omega(5) * np.sum(vector**2), abs=1e-13)


@pytest.mark.parametrize(("d", "k"), [(10, 1), (37, 5), (64, 32), (100, 99)])
def test_every_coordinate_is_sent_equally_often_and_carries_its_value(d: int, k: int) -> None:
    """Inclusion counts of 2,000 keys: |z| < 4.5 for each of at most 100 coordinates (Bonferroni 7e-4)."""
    trials, vector, sent = 2_000, np.arange(1.0, d + 1), np.zeros(d)
    for trial in range(trials):
        (part,) = encode(sm.RandK(k), vector, Key(3, trial, "a")).parts
        assert part.scale == d / k
        assert np.array_equal(part.values, vector[part.coordinates])
        assert np.unique(part.coordinates).size == part.coordinates.size == k
        sent[part.coordinates] += 1
    p = k / d
    assert np.abs(sent - trials * p).max() < 4.5 * math.sqrt(trials * p * (1 - p))


def test_seed_round_and_node_each_change_the_sample_and_the_vector_does_not() -> None:
    rng = np.random.default_rng(0)

    def sample(key: Key) -> list[int]:
        (part,) = encode(sm.RandK(20), rng.normal(size=200), key).parts
        return sorted(part.coordinates.tolist())

    keys = [Key(0, 0, "a"), Key(1, 0, "a"), Key(0, 1, "a"), Key(0, 0, "b")]
    samples = [sample(key) for key in keys]
    assert samples == [sample(key) for key in keys]
    assert len({tuple(chosen) for chosen in samples}) == len(keys)


def test_shared_samples_are_the_same_at_every_node_and_change_with_the_round() -> None:
    vector = np.arange(200.0)
    encoder = sm.RandK(20, shared=True)
    first, other_node, other_round = (
        encode(encoder, vector, key).parts[0].coordinates.tolist()
        for key in (Key(0, 0, "a"), Key(0, 0, "b"), Key(0, 1, "a"))
    )
    assert first == other_node != other_round
    assert not encoder.facts.uniform


def test_the_error_of_shared_samples_is_that_of_one_node_that_holds_the_mean() -> None:
    """(1/p − 1)‖x̄‖², whatever the number of nodes; 700 rounds, |z| < 4."""
    vectors = np.random.default_rng(1).normal(size=(3, 12))
    mean = vectors.mean(axis=0)
    run = sm.Run(sm.Scheme(sm.RandK(4, shared=True), values="float64"), dim=12)
    estimates = sm.simulate(run, np.broadcast_to(vectors, (700, 3, 12)))
    errors = np.array([np.sum((estimate.mean - mean) ** 2) for estimate in estimates])
    exact = sm.theory.shared_sample_mse(float(mean @ mean), 4 / 12)
    assert abs(errors.mean() - exact) < 4 * errors.std() / math.sqrt(errors.size)
    assert all(estimate.error is None for estimate in estimates), "the formula of independent samples does not hold"


def test_values_keep_their_type() -> None:
    assert encode(sm.RandK(2), np.ones(5, np.float32)).parts[0].values.dtype == np.float32


@pytest.mark.parametrize("encoder", [sm.RandK(Half(1)), sm.Wangni(Half(1)), sm.RTopK(Half(1))])
def test_the_smaller_half_of_one_is_no_sample(encoder: sm.Encoder) -> None:
    with pytest.raises(sm.InvalidInput, match="larger k"):
        sm.Run(sm.Scheme(encoder), dim=10)


def test_identity_sends_everything() -> None:
    vector = np.arange(4.0)
    (part,) = encode(sm.Identity(), vector).parts
    assert np.array_equal(part.coordinates, np.arange(4))
    assert np.array_equal(part.values, vector)
    assert (part.scale, sm.Identity().omega(4)) == (1.0, 0.0)
