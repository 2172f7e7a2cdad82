"""Top-k within chunks keeps the largest of each; with error feedback and two bits, what it leaves arrives later."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean import checks
from sparsemean.payload import Part
from sparsemean.sampling import Key


def part_of(encoder: sm.Encoder, vector) -> Part:
    payload = encoder.encode(np.asarray(vector), Key(0, 0, "a"), {})
    assert payload is not None
    (part,) = payload.parts
    assert np.array_equal(part.values, np.asarray(vector)[part.coordinates])
    return part


@given(st.integers(1, 60), st.integers(1, 70), st.data())
def test_each_chunk_has_its_part_of_k_and_that_is_what_sorting_would_keep(dim, chunk, data):
    k = data.draw(st.integers(1, dim))
    encoder, vector = sm.ChunkedTopK(k, chunk), np.random.default_rng(dim).normal(size=dim)
    part = part_of(encoder, vector)
    assert part.coordinates.size == k
    for start in range(0, dim, chunk):
        here = np.arange(start, min(start + chunk, dim))
        kept = np.intersect1d(here, part.coordinates)
        assert abs(kept.size - k * here.size / dim) < 1
        assert set(kept) == set(here[np.argsort(-np.abs(vector[here]))[: kept.size]])


def test_one_chunk_is_top_k_and_a_share_gives_each_chunk_the_same():
    vector = np.random.default_rng(0).normal(size=8192)
    assert np.array_equal(
        part_of(sm.ChunkedTopK(99, 8192), vector).coordinates, part_of(sm.TopK(99), vector).coordinates
    )
    part = part_of(sm.ChunkedTopK(64 / 4096), vector)
    assert np.histogram(part.coordinates, [0, 4096, 8192])[0].tolist() == [64, 64]


def test_zeros_travel_too_and_payloads_have_one_size():
    run = sm.Run(sm.Scheme(sm.ChunkedTopK(5, 4), values="2-bit"), 20)
    assert run.payload_fixed
    for vector in (np.zeros(20), np.ones(20), np.eye(20)[3]):
        assert len(sm.Client(run, "a").encode(vector, 0)) == run.payload_bytes == 64 + 3 + 2 + 2
    assert not np.any(sm.estimate_mean(np.zeros((2, 20)), run.scheme).mean)


@pytest.mark.parametrize("chunk", [0, -1, 1.5, True, None])
def test_a_chunk_is_a_number_of_entries(chunk):
    with pytest.raises(sm.InvalidInput, match="chunk"):
        sm.ChunkedTopK(3, chunk)


@pytest.mark.parametrize(
    "scheme",
    [
        sm.Scheme(sm.ChunkedTopK(0.3, 7), values="float64"),
        sm.Scheme(sm.ChunkedTopK(0.3, 7), sm.Spatial("avg"), values="int8"),
        sm.Scheme(sm.ChunkedTopK(0.3, 7), memory=sm.PerNode()),
        sm.Scheme(sm.Induced(sm.ChunkedTopK(4, 7), sm.RandK(6))),
        sm.Scheme(sm.ErrorFeedback(sm.ChunkedTopK(0.3, 7)), values="2-bit"),
    ],
)
def test_it_combines_as_top_k_does(scheme):
    checks.check_scheme(scheme, trials=400)
    assert scheme.unbiased == isinstance(scheme.encoder, sm.Induced)
    run = sm.Run(scheme, 40)
    assert sm.Run.from_json(run.to_json()) == run


@pytest.mark.parametrize("values", ["float32", "2-bit"])
def test_with_error_feedback_the_running_mean_comes_to_the_truth(values):
    """SparseLoCo's setting, 64 of 4,096 with two bits: what is not sent is kept, so that the sum of means follows."""
    rng, rounds = np.random.default_rng(3), 200
    vectors = rng.normal(size=(3, 4096)) * rng.exponential(size=4096)
    run = sm.Run(sm.named("error-feedback-chunked-top-k", 64 / 4096, values=values), 4096, seed=1)
    means = [each.mean for each in sm.simulate(run, np.broadcast_to(vectors, (rounds, 3, 4096)))]
    truth = vectors.mean(axis=0)
    early, late = (
        np.sum((np.mean(means[:until], axis=0) - truth) ** 2) / np.sum(truth**2) for until in (rounds // 8, rounds)
    )
    assert late < 0.05
    assert late < early / 4
