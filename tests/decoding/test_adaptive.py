"""Decoders that take the correlation from what arrives: last round's without bias, this round's with a little."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import checks, theory
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.evaluation import exact_error

Z = 4.5


def vectors_with_ratio(n: int, dim: int, ratio: float, seed: int = 0) -> Doubles:
    """Vectors c + z_i with Σ z_i = 0 and R2/R1 = ratio; R1 = n²."""
    rng = np.random.default_rng(seed)
    common, own = rng.normal(size=dim), rng.normal(size=(n, dim))
    own -= own.mean(axis=0)
    common *= math.sqrt((ratio + 1) / np.sum(common**2))
    return common + own * math.sqrt(n * (n - 1 - ratio) / np.sum(own**2))


def send(server: sm.Server, vectors: Doubles, weights: Doubles | None = None) -> sm.Estimate:
    for i, vector in enumerate(vectors):
        weight = 1.0 if weights is None else weights[i]
        server.accept(f"node-{i}", sm.Client(server.run, f"node-{i}").encode(vector, server.round), weight)
    return server.close_round()


def adaptive(
    weighting: str | float,
    dim: int,
    k: float = 0.2,
    seed: int = 0,
    blocks: tuple[int, ...] | None = None,
    memory: sm.Memory | None = None,
) -> sm.Server:
    scheme = sm.Scheme(sm.RandK(k), sm.Spatial(weighting), memory, "float64")
    return sm.Server(sm.Run(scheme, dim, seed, blocks))


def shrunk(estimate: sm.Estimate) -> float:
    """(R2/R1) · R2²/(R2² + V) of what the estimate says."""
    found = estimate.correlation
    assert found is not None
    return found.ratio * found.r2**2 / (found.r2**2 + found.r2_se**2)


def test_what_is_declared() -> None:
    assert sm.Spatial("learned").unbiased
    assert not sm.Spatial("estimated").unbiased
    assert sm.named("rand-k-spatial-adaptive-unbiased", k=0.1) == sm.Scheme(sm.RandK(0.1), sm.Spatial("learned"))
    assert sm.named("rand-k-spatial-adaptive", k=0.1) == sm.Scheme(sm.RandK(0.1), sm.Spatial("estimated"))
    assert not sm.named("rand-k-spatial-adaptive", k=0.1).unbiased
    assert sm.named("rand-k-spatial-adaptive-unbiased", k=0.1).unbiased


@pytest.mark.parametrize("weighting", ["estimated", "learned"])
@pytest.mark.parametrize(
    "encoder", [sm.TopK(3), sm.RTopK(3), sm.RandK(3, shared=True), sm.Wangni(3), sm.Induced(sm.TopK(1), sm.RandK(2))]
)
def test_nodes_that_do_not_sample_uniformly_are_refused(encoder: sm.Encoder, weighting: str) -> None:
    with pytest.raises(sm.IncompatibleScheme, match=r"Spatial needs|uniformly"):
        sm.Scheme(encoder, sm.Spatial(weighting))


@pytest.mark.parametrize("blocks", [None, (10, 30)])
@pytest.mark.parametrize(("n", "ratio"), [(8, 4.0), (5, 2.5), (3, 0.375), (1, 0.125)])
def test_learned_begins_as_avg_and_more_carefully_with_few_nodes(
    n: int, ratio: float, blocks: tuple[int, ...] | None
) -> None:
    vectors = vectors_with_ratio(8, 40, 5.0)[:n]
    fixed = adaptive(ratio, 40, blocks=blocks)
    assert np.array_equal(send(adaptive("learned", 40, blocks=blocks), vectors).mean, send(fixed, vectors).mean)


@pytest.mark.parametrize("memory", [None, sm.PerNode(), sm.SharedStable(), sm.Hybrid()], ids=repr)
def test_learned_goes_by_the_shrunk_ratio_of_the_round_before(memory: sm.Memory | None) -> None:
    """Round by round it equals Spatial(ρ) of the last round's innovations, bit for bit, with and without a memory."""
    server = adaptive("learned", 60, memory=memory)
    ratio = 4.0
    for t in range(6):
        vectors = vectors_with_ratio(8, 60, [5.0, 0.0, -0.5, 7.0, 2.0, 6.0][t], seed=t)
        twin = adaptive(ratio, 60, memory=memory)
        for past in range(t):
            send(twin, vectors_with_ratio(8, 60, [5.0, 0.0, -0.5, 7.0, 2.0, 6.0][past], seed=past))
        assert server.run.scheme.decoder.T(server.beliefs()[0], 8) == pytest.approx(ratio, abs=1e-12)
        estimate, other = send(server, vectors), send(twin, vectors)
        np.testing.assert_allclose(estimate.mean, other.mean, rtol=1e-9, atol=1e-12)
        assert estimate.error == pytest.approx(other.error, rel=1e-9)
        ratio = min(max(shrunk(estimate), -0.5), 7.0)


def test_estimated_goes_by_the_shrunk_ratio_of_the_round_itself() -> None:
    for seed in range(5):
        vectors = vectors_with_ratio(8, 60, 4.0, seed)
        estimate = send(adaptive("estimated", 60, seed=seed), vectors)
        ratio = min(max(shrunk(estimate), -0.5), 7.0)
        other = send(adaptive(ratio, 60, seed=seed), vectors)
        np.testing.assert_allclose(estimate.mean, other.mean, rtol=1e-10, atol=1e-12)
        assert estimate.error == pytest.approx(other.error, rel=1e-9)


def test_when_the_number_of_nodes_changes_the_ratio_over_n_minus_1_is_kept() -> None:
    """Five equal vectors have ratio 4, nine have 8: what carries over is that all are alike."""
    vectors = np.tile(np.random.default_rng(0).normal(size=80), (9, 1))
    server = adaptive("learned", 80, k=0.5)
    first = send(server, vectors[:5])
    kept = min(shrunk(first), 4.0) / 4
    decoder = server.run.scheme.decoder
    assert [belief.before for belief in server.beliefs()] == pytest.approx([kept], rel=1e-12)
    assert decoder.T(server.beliefs()[0], 9) == pytest.approx(8 * kept, rel=1e-12)
    twin = sm.Server(sm.Run(sm.Scheme(sm.RandK(0.5), sm.Spatial(8 * kept), values="float64"), 80), round=1)
    np.testing.assert_allclose(send(server, vectors).mean, send(twin, vectors).mean, rtol=1e-10)


@pytest.mark.parametrize("weighting", ["estimated", "learned"])
def test_one_node_alone_tells_nothing_and_changes_nothing(weighting: str) -> None:
    server = adaptive(weighting, 60)
    send(server, vectors_with_ratio(8, 60, 6.0))
    before = server.beliefs()
    assert (before[0].before or 0.0) > 0.1
    alone = np.random.default_rng(0).normal(size=(1, 60))
    plain = sm.Server(sm.Run(sm.Scheme(sm.RandK(0.2), values="float64"), 60), round=1)
    assert np.array_equal(send(server, alone).mean, send(plain, alone).mean)
    assert server.beliefs() == before
    server.skip_round()
    assert server.beliefs() == before, "nobody came"


def test_blocks_have_beliefs_of_their_own() -> None:
    """Equal in the first block, opposed in the second, weightless in the third."""
    sizes, n = (50, 60, 40), 6
    alike = np.tile(np.random.default_rng(0).normal(size=50), (n, 1))
    vectors = np.concatenate([alike, vectors_with_ratio(n, 60, -1.0), vectors_with_ratio(n, 40, 3.0)], axis=1)
    weights = np.tile([1.0, 1.0, 0.0], (n, 1))
    server = adaptive("learned", 150, k=0.5, blocks=sizes)
    send(server, vectors, weights)
    first, second, third = (belief.before for belief in server.beliefs())
    assert first is not None
    assert second is not None
    assert first > 0.7
    assert -0.5 / (n - 1) <= second < -0.05
    assert third is None, "it has shown nothing"
    ratios = [(n - 1) * first, (n - 1) * second]
    estimate = send(server, vectors, weights)
    for block, (start, stop) in enumerate([(0, 50), (50, 110)]):
        twin = sm.Server(sm.Run(sm.Scheme(sm.RandK(0.5), sm.Spatial(ratios[block]), values="float64"), 150), round=1)
        for i, vector in enumerate(vectors):  # the run's digest knows its blocks, so the payloads are made anew
            twin.accept(f"node-{i}", sm.Client(twin.run, f"node-{i}").encode(vector, 1))
        expected = twin.close_round().mean[start:stop]
        np.testing.assert_allclose(estimate.mean[start:stop], expected, rtol=1e-10, atol=1e-12)
    assert np.all(estimate.mean[110:] == 0.0)


@pytest.mark.parametrize("weighting", ["estimated", "learned"])
@pytest.mark.parametrize("sizes", [(2, 2, 2), (10, 10, 10), (2, 10, 3), (3, 50, 2)])
def test_opposed_vectors_keep_the_ratio_above_minus_1(weighting: str, sizes: tuple[int, ...]) -> None:
    """At −1 only coordinates that everybody sent would count, and with many nodes there are none.

    Two opposed nodes leave ρ/(n − 1) = −1, which would be ρ = −9 for ten.
    """
    server = adaptive(weighting, 60, k=0.5)
    for t, n in enumerate(sizes):
        before = server.beliefs()[0].before
        estimate = send(server, vectors_with_ratio(n, 60, -1.0, seed=t))
        T = server.run.scheme.decoder.T(Belief(before, server.beliefs()[0].before), n)
        assert isinstance(T, float)
        assert T > -1.0
        assert np.all(np.isfinite(estimate.mean))
        assert np.any(estimate.mean), "what was sent counts for something"
        assert estimate.error is not None


EDGES = {
    "zeros": np.zeros((4, 30)),
    "one node that is not 0": np.eye(1, 4).T * np.arange(1.0, 31.0),
    "tiny": 1e-90 * np.random.default_rng(0).normal(size=(4, 30)),
    "huge": 1e99 * np.random.default_rng(0).normal(size=(4, 30)),
    "equal": np.ones((4, 30)),
    "opposed": np.outer([1.0, -1.0, 1.0, -1.0], np.ones(30)),
}


@pytest.mark.parametrize("k", [1, 15, 30])
@pytest.mark.parametrize("kind", EDGES)
@pytest.mark.parametrize("weighting", ["estimated", "learned"])
def test_nothing_becomes_infinite_or_nan(weighting: str, kind: str, k: int) -> None:
    server = adaptive(weighting, 30, k=k)
    for _ in range(3):
        estimate = send(server, EDGES[kind])
        assert np.all(np.isfinite(estimate.mean))
        assert estimate.error is None or math.isfinite(estimate.error)
        shown = [belief.before for belief in server.beliefs() if belief.before is not None]
        assert all(math.isfinite(ratio) and abs(ratio) <= 1 for ratio in shown)
        if k == 30:
            np.testing.assert_allclose(estimate.mean, EDGES[kind].mean(axis=0), rtol=1e-12)


N, DIM, SHARE, SEEDS = 10, 200, 0.2, 60


@cache
def squared_errors(weighting: str | float, ratio: float) -> Doubles:
    """Of one round, for each seed; "learned" knows the round before, of other vectors with the same ratio."""
    vectors, errors = vectors_with_ratio(N, DIM, ratio), []
    for seed in range(SEEDS):
        server = adaptive(weighting, DIM, SHARE, seed)
        if weighting == "learned":
            send(server, vectors_with_ratio(N, DIM, ratio, seed=seed + 1))
        else:
            server.skip_round()
        errors.append(np.sum((send(server, vectors).mean - vectors.mean(axis=0)) ** 2))
    return np.array(errors)


def each_ratio(*ratios: float) -> pytest.MarkDecorator:
    """In one process, where they are computed once."""
    marked = [pytest.param(ratio, marks=pytest.mark.xdist_group(f"ratio {ratio}")) for ratio in ratios]
    return pytest.mark.parametrize("ratio", marked)


@pytest.mark.parametrize("weighting", ["estimated", "learned"])
@each_ratio(8.9, 0.0)
def test_it_beats_the_mid_point_where_that_is_far_off(weighting: str, ratio: float) -> None:
    """Paired differences over 60 seeds, more than 4.5 standard errors below 0."""
    gained = squared_errors("avg", ratio) - squared_errors(weighting, ratio)
    assert gained.mean() > Z * gained.std() / math.sqrt(SEEDS)


@each_ratio(8.9, 4.0, 0.0)
def test_it_is_nearly_as_good_as_knowing_the_ratio(ratio: float) -> None:
    """The exact error of the true ratio, exceeded by 15 % at most, within 4.5 standard errors."""
    r1, r2 = theory.correlation(vectors_with_ratio(N, DIM, ratio))
    best = theory.spatial_mse(r1, r2, N, SHARE, ratio)
    for weighting in ("estimated", "learned"):
        errors = squared_errors(weighting, ratio)
        assert errors.mean() < 1.15 * best + Z * errors.std() / math.sqrt(SEEDS)


@pytest.mark.parametrize(("ratio", "memory"), [(8.0, None), (0.5, None), (4.0, sm.Hybrid()), (4.0, sm.SharedStable())])
def test_what_learned_says_of_its_error_is_right_on_average(ratio: float, memory: sm.Memory | None) -> None:
    """Against the exact error given the past, for 60 seeds; |z| < 4.5."""
    vectors, off, said = vectors_with_ratio(N, DIM, ratio), [], []
    for seed in range(SEEDS):
        server = adaptive("learned", DIM, SHARE, seed, memory=memory)
        send(server, 0.8 * vectors)
        exact = exact_error(server, [f"node-{i}" for i in range(N)], vectors)
        estimate = send(server, vectors)
        assert exact is not None
        assert estimate.error is not None
        off.append(estimate.error - exact)
        said.append(np.sum((estimate.mean - vectors.mean(axis=0)) ** 2) - exact)
    for differences in map(np.array, (off, said)):
        assert abs(differences.mean()) < Z * differences.std() / math.sqrt(SEEDS)


@pytest.mark.parametrize("ratio", [8.9, 4.0, 0.0, -0.5])
def test_what_estimated_says_of_its_error_is_at_most_a_tenth_low(ratio: float) -> None:
    """n·k = 2d; the average of 60 seeds lies within [0.9, 1.05] of what happened, to 4.5 standard errors."""
    vectors, said, happened = vectors_with_ratio(N, DIM, ratio), [], []
    for seed in range(SEEDS):
        estimate = send(adaptive("estimated", DIM, SHARE, seed), vectors)
        assert estimate.error is not None
        said.append(estimate.error)
        happened.append(float(np.sum((estimate.mean - vectors.mean(axis=0)) ** 2)))
    off, real = np.array(said) - np.array(happened), np.mean(happened)
    slack = Z * off.std() / math.sqrt(SEEDS)
    assert -0.1 * real - slack < off.mean() < 0.05 * real + slack


SCHEMES = [
    sm.Scheme(sm.RandK(0.25), sm.Spatial("learned"), sm.PerNode()),
    sm.Scheme(sm.RandK(0.25), sm.Spatial("learned"), sm.Hybrid(forget_after=2), "int8"),
    sm.Scheme(sm.RandK(0.25), sm.Spatial("max"), sm.SharedStable()),
    sm.Scheme(sm.RandK(0.25), sm.Spatial("estimated"), sm.Hybrid()),
]


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_they_keep_what_they_declare(scheme: sm.Scheme) -> None:
    """Two rounds to warm up, then 50 seeds against the exact error given what was learnt."""
    checks.check_scheme(scheme, dim=16, nodes=4, trials=50)


def test_runs_with_them_can_be_written_down() -> None:
    for weighting in ("estimated", "learned"):
        run = sm.Run(sm.Scheme(sm.RandK(2), sm.Spatial(weighting)), 10)
        assert sm.Run.from_json(run.to_json()) == run
