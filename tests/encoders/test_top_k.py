"""Top-k keeps the largest magnitudes; rTop-k a random part of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean.payload import Part
from sparsemean.sampling import Key

FEW = st.lists(st.sampled_from([-2.0, -1.0, -0.0, 0.0, 0.5, 1.0, 2.0, 1e-300, 1e99]), min_size=1, max_size=12)


def part_of(encoder: sm.Encoder, vector, trial: int = 0) -> Part:
    payload = encoder.encode(np.asarray(vector), Key(0, trial, "a"), {})
    assert payload is not None
    (part,) = payload.parts
    assert np.array_equal(part.values, np.asarray(vector)[part.coordinates])
    assert part.scale == 1.0
    assert np.all(np.diff(part.coordinates) > 0), "the wire lists coordinates in order"
    return part


@given(FEW, st.data())
def test_what_top_k_keeps_is_what_sorting_would_keep(vector: list[float], data) -> None:
    k = data.draw(st.integers(1, len(vector)))
    part = part_of(sm.TopK(k), vector)
    sorted_twin = np.sort(np.abs(vector))[::-1][:k]
    assert part.values.size == k
    assert np.array_equal(np.sort(np.abs(part.values))[::-1], sorted_twin), "ties may fall either way, sizes may not"
    assert np.array_equal(part.coordinates, part_of(sm.TopK(k), vector, trial=1).coordinates), "nothing is drawn"


def test_without_ties_the_coordinates_are_those_of_argsort() -> None:
    rng = np.random.default_rng(0)
    for k in (1, 7, 99, 100):
        vector = rng.normal(size=100)
        assert np.array_equal(part_of(sm.TopK(k), vector).coordinates, np.sort(np.argsort(-np.abs(vector))[:k]))


def test_all_equal_all_zero_and_everything() -> None:
    assert part_of(sm.TopK(3), np.ones(8)).values.tolist() == [1.0] * 3
    assert part_of(sm.TopK(3), np.zeros(8)).values.tolist() == [0.0] * 3
    assert part_of(sm.TopK(8), np.arange(8.0)).coordinates.tolist() == list(range(8))


@pytest.mark.parametrize(("k", "over", "r"), [(3, 2.0, 6), (4, 1.0, 4), (5, 1.5, 8), (2, 100.0, 20)])
def test_rtop_k_draws_uniformly_from_the_r_largest_and_from_nothing_else(k: int, over: float, r: int) -> None:
    """1,500 keys; each candidate's count has |z| < 4.5."""
    encoder, trials = sm.RTopK(k, over), 1_500
    assert encoder.candidates(20) == r
    vector = np.random.default_rng(r).normal(size=20)
    top = np.argsort(-np.abs(vector))[:r]
    sent = np.zeros(20)
    for trial in range(trials):
        part = part_of(encoder, vector, trial)
        assert part.values.size == k
        sent[part.coordinates] += 1
    assert sent[np.setdiff1d(np.arange(20), top)].sum() == 0
    p = k / r
    assert np.all(sent[top] > 0)
    assert np.abs(sent[top] - trials * p).max() <= 4.5 * math.sqrt(trials * p * (1 - p))


def test_the_share_it_keeps_is_at_least_k_of_d() -> None:
    """What Induced's ω relies on: E‖x − B(x)‖² ≤ (1 − k/d)‖x‖²; equal magnitudes attain it."""
    vector = np.random.default_rng(4).normal(size=20)
    for encoder in (sm.TopK(5), sm.RTopK(5, over=3.0)):
        left = np.mean([np.sum(vector**2) - np.sum(part_of(encoder, vector, t).values ** 2) for t in range(400)])
        assert left < (1 - 5 / 20) * np.sum(vector**2)
        assert np.sum(part_of(encoder, np.ones(20)).values ** 2) == 5.0
