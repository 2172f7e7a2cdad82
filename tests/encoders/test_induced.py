"""Induced: what the biased part leaves is sampled without bias, and both are sent."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.encoders.size import Half, count
from sparsemean.payload import Payload
from sparsemean.sampling import Key


def encode(encoder: sm.Encoder, vector: Doubles, key: Key) -> Payload:
    payload = encoder.encode(vector, key, {})
    assert payload is not None
    return payload


def omega(encoder: sm.Encoder, dim: int) -> float:
    found = encoder.omega(dim)
    assert found is not None
    return found


VECTOR = np.array([3.0, -0.5, 0.0, 1.0, -2.0, 0.25])


@pytest.mark.parametrize("top", [1, 2, 5, 6])
@pytest.mark.parametrize("rand", [1, 3, 6])
def test_over_all_samples_any_split_is_unbiased_with_the_exact_variance(all_samples, top: int, rand: int) -> None:
    encoder = sm.Induced(sm.TopK(top), sm.RandK(rand))
    chances, vectors = all_samples(encoder, VECTOR, rand)
    np.testing.assert_allclose(chances @ vectors, VECTOR, rtol=0, atol=1e-14)
    variance = chances @ np.sum((vectors - VECTOR) ** 2, axis=1)
    left = np.sort(np.abs(VECTOR))[: VECTOR.size - top]
    assert variance == pytest.approx((6 / rand - 1) * np.sum(left**2), abs=1e-13)
    assert variance <= omega(encoder, 6) * np.sum(VECTOR**2) + 1e-13
    assert omega(encoder, 6) == pytest.approx((6 / rand - 1) * (1 - top / 6))


@pytest.mark.parametrize("rand", [1, 2, 4])
def test_with_wangni_as_the_second_part_too(all_starts, rand: int) -> None:
    encoder = sm.Induced(sm.TopK(2), sm.Wangni(rand))
    chances, vectors = all_starts(encoder, VECTOR)
    np.testing.assert_allclose(chances @ vectors, VECTOR, rtol=0, atol=1e-12)
    variance = chances @ np.sum((vectors - VECTOR) ** 2, axis=1)
    assert variance <= omega(encoder, 6) * np.sum(VECTOR**2) + 1e-12


def test_the_bound_is_attained_by_equal_magnitudes(all_samples) -> None:
    encoder, vector = sm.Induced(sm.TopK(2), sm.RandK(3)), np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    chances, vectors = all_samples(encoder, vector, 3)
    variance = chances @ np.sum((vectors - vector) ** 2, axis=1)
    assert variance == pytest.approx(omega(encoder, 6) * 6, rel=1e-14)


def test_an_rtop_k_first_part_keeps_the_bound() -> None:
    """2,000 keys, |z| < 4."""
    encoder = sm.Induced(sm.RTopK(2, over=2.0), sm.RandK(2))
    dense = np.array([encode(encoder, VECTOR, Key(0, t, "a")).dense(6) for t in range(2_000)])
    errors = np.sum((dense - VECTOR) ** 2, axis=1)
    assert errors.mean() <= omega(encoder, 6) * np.sum(VECTOR**2) + 4 * errors.std() / math.sqrt(errors.size)
    z = (dense.mean(axis=0) - VECTOR) / (dense.std(axis=0) / math.sqrt(len(dense)) + 1e-15)
    assert np.abs(z).max() < 4


def test_both_parts_are_sent_and_the_second_is_of_what_the_first_left() -> None:
    encoder = sm.Induced(sm.TopK(2), sm.RandK(4))
    payload = encode(encoder, VECTOR, Key(0, 0, "a"))
    top, rest = payload.parts
    assert top.coordinates.tolist() == [0, 4]
    assert top.values.tolist() == [3.0, -2.0]
    assert (top.scale, rest.scale) == (1.0, 6 / 4)
    left = np.where(np.isin(np.arange(6), [0, 4]), 0.0, VECTOR)
    assert np.array_equal(rest.values, left[rest.coordinates])


def test_the_random_part_draws_other_coordinates_than_plain_rand_k_would() -> None:
    """Parts have keys of their own, so a nested sample is not the same sample again."""
    vector = np.arange(1.0, 101.0)
    plain = encode(sm.RandK(10), vector, Key(0, 0, "a")).parts[0]
    nested = encode(sm.Induced(sm.TopK(1), sm.RandK(10)), vector, Key(0, 0, "a")).parts[1]
    assert sorted(plain.coordinates.tolist()) != sorted(nested.coordinates.tolist())


@pytest.mark.parametrize(("k", "halves"), [(1, (0, 1)), (2, (1, 1)), (5, (2, 3)), (0.1, (5, 5)), (0.05, (2, 3))])
def test_the_named_scheme_splits_k_in_halves_that_sum_to_k(k: int | float, halves: tuple[int, int]) -> None:
    run = sm.Run(sm.named("induced", k=k), dim=100)
    assert tuple(layout.count for layout in run.layout) == halves
    assert (count(Half(k), 100), count(Half(k, larger=True), 100)) == halves


@pytest.mark.parametrize("k", [1, 2, 5, 40])
def test_every_size_goes_through_the_bytes(k: int) -> None:
    vectors = np.random.default_rng(k).normal(size=(3, 40))
    run = sm.Run(sm.named("induced", k=k, values="float64"), dim=40, seed=1)
    estimate = sm.simulate(run, vectors[None])[0]
    twin = [encode(run.scheme.encoder, x, run.key(str(i), 0)).dense(40) for i, x in enumerate(vectors)]
    np.testing.assert_allclose(estimate.mean, np.mean(twin, axis=0), rtol=0, atol=1e-13)
    assert estimate.bytes <= 3 * run.payload_bytes


def test_an_induced_second_part_nests(all_samples) -> None:
    encoder = sm.Induced(sm.TopK(1), sm.Induced(sm.TopK(1), sm.RandK(2)))
    chances, vectors = all_samples(encoder, VECTOR, 2)
    np.testing.assert_allclose(chances @ vectors, VECTOR, rtol=0, atol=1e-14)
    run = sm.Run(sm.Scheme(encoder, values="float64"), dim=6)
    assert [layout.part for layout in run.layout] == [0, 1, 2]


@pytest.mark.parametrize(
    ("first", "second", "remedy"),
    [
        (sm.Wangni(2), sm.RandK(2), "TopK or RTopK"),
        (sm.TopK(2), sm.TopK(2), "RandK or Wangni"),
        (sm.ErrorFeedback(sm.TopK(2)), sm.RandK(2), "stateless"),
        (sm.TopK(2), sm.Difference(sm.RandK(2)), "stateless"),
    ],
)
def test_parts_that_cannot_be_right_are_refused(first: sm.Encoder, second: sm.Encoder, remedy: str) -> None:
    with pytest.raises(sm.IncompatibleScheme, match=remedy):
        sm.Induced(first, second)
