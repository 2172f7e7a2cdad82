"""Schemes that are two names for one thing give the same estimates, through the bytes and over many rounds."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import sampling
from sparsemean._names import Missing, SchemeName, ValueName
from sparsemean._types import Doubles

NODES, DIM, ROUNDS = 7, 30, 25


class Story:
    """Drifting vectors, with nodes that come and go and weights that change; the same for every scheme."""

    def __init__(self, seed: int, attendance: float = 0.7, blocks: tuple[int, ...] = (DIM,)) -> None:
        rng = np.random.default_rng(seed)
        drift = rng.normal(size=(ROUNDS, NODES, DIM)) * 0.3
        self.vectors: Doubles = rng.normal(size=(NODES, DIM)) + np.cumsum(drift, axis=0)
        self.present = rng.random((ROUNDS, NODES)) < attendance
        self.present[np.arange(ROUNDS), rng.integers(0, NODES, ROUNDS)] = True
        self.weights = rng.choice([0.5, 1.0, 3.0], size=(ROUNDS, NODES, len(blocks)))
        self.blocks = blocks

    def estimates(self, scheme: sm.Scheme, missing: Missing = "drop") -> Iterator[sm.Estimate]:
        run = sm.Run(scheme, DIM, seed=9, blocks=self.blocks)
        server = sm.Server(run, missing=missing)
        clients = [sm.Client(run, f"node-{i}") for i in range(NODES)]
        for t in range(ROUNDS):
            for i in np.flatnonzero(self.present[t]):
                blob = clients[i].encode(self.vectors[t, i], server.round)
                clients[i].delivered(server.accept(clients[i].node, blob, self.weights[t, i]))
            yield server.close_round()


def bits(estimate: sm.Estimate) -> tuple[bytes, float | None, float | None, sm.Correlation | None]:
    return estimate.mean.tobytes(), estimate.error, estimate.error_se, estimate.correlation


def assert_same_bits(left: Iterator[sm.Estimate], right: Iterator[sm.Estimate]) -> None:
    for a, b in zip(left, right, strict=True):
        assert bits(a) == bits(b), f"round {a.round}"


@pytest.mark.parametrize(("k", "attendance"), [(1, 0.4), (3, 1.0), (15, 0.4), (15, 1.0), (DIM, 0.4)])
def test_diana_with_rand_k_and_its_default_step_is_rand_k_temporal(k: int, attendance: float) -> None:
    story = Story(seed=k, attendance=attendance)
    temporal = sm.named("rand-k-temporal", k=k, values="float64")
    diana = sm.named("diana", k=k, values="float64")
    for a, b in zip(story.estimates(temporal), story.estimates(diana), strict=True):
        np.testing.assert_allclose(a.mean, b.mean, rtol=0, atol=1e-12)
        assert a.error == pytest.approx(b.error, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("step", [0.05, 0.2])
def test_diana_with_another_step_is_something_else(step: float) -> None:
    story = Story(seed=1)
    temporal = sm.named("rand-k-temporal", k=3, values="float64")
    diana = sm.Scheme(sm.Difference(sm.RandK(3), step=step), memory=sm.Offset(), values="float64")
    pairs = list(zip(story.estimates(temporal), story.estimates(diana), strict=True))
    assert max(float(np.abs(a.mean - b.mean).max()) for a, b in pairs) > 0.1


@pytest.mark.parametrize(
    ("values", "blocks", "memory"),
    [("float32", (DIM,), None), ("float32", (7, 23), sm.PerNode()), ("float64", (7, 23), None)],
)
def test_rand_k_is_spatial_with_constant_t_bit_for_bit(values: ValueName, blocks: tuple[int, ...], memory) -> None:
    story = Story(seed=2, blocks=blocks)
    plain = list(story.estimates(sm.Scheme(sm.RandK(0.2), sm.Mean(), memory, values)))
    for decoder in (sm.Spatial("one"), sm.Spatial(table=(1.0,) * NODES), sm.Spatial(0.0)):
        assert_same_bits(iter(plain), story.estimates(sm.Scheme(sm.RandK(0.2), decoder, memory, values)))


@pytest.mark.parametrize(("missing", "values"), [("drop", "float32"), ("carry", "float64")])
@pytest.mark.parametrize("encoder", [sm.RandK(0.2), sm.TopK(4), sm.Identity()])
def test_a_window_of_one_is_per_node_bit_for_bit(encoder: sm.Encoder, missing: Missing, values: ValueName) -> None:
    story = Story(seed=3, blocks=(7, 23))
    last = sm.Scheme(encoder, memory=sm.PerNode(), values=values)
    window = sm.Scheme(encoder, memory=sm.Window(1), values=values)
    assert_same_bits(story.estimates(last, missing), story.estimates(window, missing))


def test_a_window_of_two_is_not() -> None:
    story = Story(seed=3)
    last = story.estimates(sm.Scheme(sm.RandK(0.2), memory=sm.PerNode()))
    window = story.estimates(sm.Scheme(sm.RandK(0.2), memory=sm.Window(2)))
    assert any(bits(a) != bits(b) for a, b in zip(last, window, strict=True))


def test_forgetting_after_more_rounds_than_there_are_is_never_forgetting() -> None:
    story = Story(seed=4, attendance=0.3)
    never = sm.Scheme(sm.RandK(0.2), memory=sm.PerNode())
    late = sm.Scheme(sm.RandK(0.2), memory=sm.PerNode(forget_after=10**9))
    assert_same_bits(story.estimates(never), story.estimates(late))


def test_forgetting_after_fewer_rounds_is_not() -> None:
    story = Story(seed=4, attendance=0.3)
    never = story.estimates(sm.Scheme(sm.RandK(0.2), memory=sm.PerNode()))
    soon = story.estimates(sm.Scheme(sm.RandK(0.2), memory=sm.PerNode(forget_after=2)))
    assert any(bits(a) != bits(b) for a, b in zip(never, soon, strict=True))


@pytest.mark.parametrize(
    "name", ["rand-k-temporal", "rand-k-temporal-shared", "rand-k-temporal-window", "rand-k-temporal-stale", "diana"]
)
def test_the_first_round_of_a_temporal_scheme_is_rand_k(name: SchemeName) -> None:
    story = Story(seed=5)
    assert bits(next(story.estimates(sm.named(name, k=20)))) == bits(next(story.estimates(sm.named("rand-k", k=20))))


def spatial_twin(vectors: Doubles, sent: Doubles, share: float, T) -> Doubles:
    """(1/n) β̄/T(M_j) Σ_i ξ_ij x_ij with β̄ = 1/(p Σ_m b_m/T(m)), one coordinate after the other."""
    n, d = vectors.shape
    b = [math.comb(n - 1, m - 1) * share ** (m - 1) * (1 - share) ** (n - m) for m in range(1, n + 1)]
    beta = 1.0 / (share * sum(b[m - 1] / T(m, n) for m in range(1, n + 1)))
    estimate = np.zeros(d)
    for j in range(d):
        m = int(sent[:, j].sum())
        if m:
            estimate[j] = beta / T(m, n) * (sent[:, j] @ vectors[:, j]) / n
    return estimate


@pytest.mark.parametrize(
    ("decoder", "T"),
    [
        (sm.Spatial("max"), lambda m, n: m),
        (sm.Spatial("avg"), lambda m, n: 1 + n / 2 * (m - 1) / (n - 1) if n > 1 else 1),
        (sm.Spatial(-0.5), lambda m, n: 1 - 0.5 * (m - 1) / (n - 1) if n > 1 else 1),
        (sm.Spatial(table=(3, 1, 4, 1.5, 9, 2, 6)), lambda m, n: [3, 1, 4, 1.5, 9, 2, 6][m - 1]),
    ],
)
def test_spatial_with_a_memory_is_the_mean_of_the_memory_plus_spatial_of_the_residuals(decoder, T) -> None:
    story, k = Story(seed=6), 6
    last = np.zeros((NODES, DIM))
    for t, estimate in enumerate(story.estimates(sm.Scheme(sm.RandK(k), decoder, sm.PerNode(), "float64"))):
        came = np.flatnonzero(story.present[t])
        sent = np.zeros((NODES, DIM))
        for i in came:
            sent[i, sampling.coordinates(sampling.Key(9, t, f"node-{i}"), DIM, k)] = 1.0
        w = story.weights[t, came] / story.weights[t, came].sum()
        weighted = came.size * w * (story.vectors[t] - last)[came]
        twin = (w * last[came]).sum(axis=0) + spatial_twin(weighted, sent[came], k / DIM, T)
        np.testing.assert_allclose(estimate.mean, twin, rtol=0, atol=1e-11)
        last = np.where(sent > 0, story.vectors[t], last)


def test_everything_at_full_size_is_the_mean() -> None:
    """With k = d every unbiased scheme sends all there is."""
    story = Story(seed=7)
    exact = [
        np.average(story.vectors[t][here], axis=0, weights=story.weights[t, here, 0])
        for t, here in enumerate(story.present)
    ]
    for name in ("identity", "rand-k", "rand-k-spatial-max", "rand-k-temporal", "wangni", "diana", "top-k-spatial"):
        for truth, estimate in zip(exact, story.estimates(sm.named(name, k=DIM, values="float64")), strict=True):
            np.testing.assert_allclose(estimate.mean, truth, rtol=0, atol=1e-12, err_msg=name)
