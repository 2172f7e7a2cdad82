"""Rounds by plans with real draws: the error, and what the server says of it, over many rounds; |z| < 4.5."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import theory
from sparsemean.evaluation import exact_error, truth
from sparsemean.sampling import Plan
from sparsemean.theory.estimated import LEAST_RATIO


def test_of_a_thousand_nodes_ten_that_are_asked_are_balanced_as_ten_alone() -> None:
    """Over 250 rounds the error, and what is said of it, are those of ten slots: |z| < 4.5.

    With a slot for each of the thousand the error would be 11 times as large, as is checked too.
    """
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=30) + 0.2 * rng.normal(size=(1000, 30))
    run = sm.Run(sm.Scheme(sm.RandK(3, draw=sm.Balanced()), sm.Spatial("avg"), values="float64"), 30, seed=2)
    assert 10 * run.layouts[0][0].count == run.dim
    server, off, said = sm.Server(run), [], []
    ratio = []
    for _ in range(250):
        cohort = rng.choice(1000, 10, replace=False).tolist()
        plans = server.plans(map(str, cohort))
        exact = exact_error(server, list(map(str, cohort)), vectors[cohort])
        assert exact is not None
        for i in cohort:
            server.accept(str(i), sm.Client(run, str(i)).encode(vectors[i], server.round, plans[str(i)]))
        estimate = server.close_round()
        assert set(estimate.counts.tolist()) == {1}
        assert estimate.error_is_bound
        off.append(np.sum((estimate.mean - vectors[cohort].mean(axis=0)) ** 2) / exact - 1.0)
        found = truth(vectors[cohort], None, run.ranges)
        bound = theory.spatial_mse(found.r1.sum(), -found.r1.sum(), 10, 0.1, "avg", slots=10)
        said.append((estimate.error or 0.0) / bound - 1.0)
        ratio.append(theory.spatial_mse(found.r1.sum(), found.r2.sum(), 10, 0.1, "avg", slots=1000) / exact)
    for found_off in (off, said):
        assert abs(np.mean(found_off)) < 4.5 * np.std(found_off, ddof=1) / np.sqrt(len(found_off))
    assert min(ratio) > 8


@pytest.mark.parametrize("decoder", [sm.Mean(), sm.Spatial("max"), sm.Spatial("learned")], ids=repr)
def test_rounds_of_slotted_and_other_nodes_are_as_good_as_is_said(decoder: sm.Decoder) -> None:
    """Real draws, 200 rounds, six nodes with a slot of which five come, and three without: |z| < 4.5."""
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=20) + 0.5 * rng.normal(size=(9, 20))
    run = sm.Run(sm.Scheme(sm.RandK(5, draw=sm.Balanced()), decoder, values="float64"), 20, seed=8)
    server, names = sm.Server(run), [str(i) for i in range(9)]
    came = np.array([0, 1, 2, 4, 5, 6, 7, 8])
    classes = (came > 5).astype(np.int64)
    by_class = theory.mixed_correlation(vectors[came], classes, 2)
    off, said = [], []
    for _ in range(200):
        plans = {**server.plans(names[:6]), **server.plans(names[6:])}
        T = decoder.T(server.beliefs()[0], 8)
        exact = theory.mixed_mse(*by_class, [5, 3], [0.25, 0.25], T or "one", slots=[6, None])
        for i in came:
            server.accept(names[i], sm.Client(run, names[i]).encode(vectors[i], server.round, plans[names[i]]))
        estimate = server.close_round()
        assert estimate.error is not None
        off.append(np.sum((estimate.mean - vectors[came].mean(axis=0)) ** 2) / exact - 1.0)
        said.append(estimate.error / exact - 1.0)
    for found in (off, said):
        assert abs(np.mean(found)) < 4.5 * np.std(found, ddof=1) / np.sqrt(len(found))


@pytest.mark.parametrize(("k", "slotted"), [(10, 4), (15, 3)])
def test_with_values_of_few_bits_the_error_that_is_said_stays_right(k: int, slotted: int) -> None:
    """Four nodes, of which all or three have a slot, 300 rounds: |z| < 4.5; most of the error is that of rounding."""
    rng = np.random.default_rng(6)
    vectors = rng.normal(size=20) + 0.1 * rng.normal(size=(4, 20))
    draw = sm.Balanced(common_scale=False)
    run = sm.Run(sm.Scheme(sm.RandK(k, draw=draw), sm.Spatial("avg"), values="1-bit"), 20, seed=8)
    server, names, off, rounding, errors = sm.Server(run), list("abcd"), [], [], []
    for _ in range(300):
        plans = {**server.plans(names[:slotted]), **server.plans(names[slotted:])}
        for name, x in zip(names, vectors, strict=True):
            server.accept(name, sm.Client(run, name).encode(x, server.round, plans[name]))
        estimate = server.close_round()
        assert estimate.error is not None
        assert estimate.rounding is not None
        off.append(np.sum((estimate.mean - vectors.mean(axis=0)) ** 2) - estimate.error)
        rounding.append(estimate.rounding)
        errors.append(estimate.error)
    assert abs(np.mean(off)) < 4.5 * np.std(off, ddof=1) / np.sqrt(len(off))
    assert np.mean(rounding) > 0.5 * np.mean(errors)


def test_where_nodes_share_out_their_dither_the_error_is_a_bound() -> None:
    """Six nodes alike, one bit: from the second round on the error is well below what is said, 200 rounds, z > 4.5."""
    rng = np.random.default_rng(6)
    vectors = rng.normal(size=40) + 0.02 * rng.normal(size=(6, 40))
    run = sm.Run(sm.Scheme(sm.RandK(20, draw=sm.Balanced()), values="1-bit"), 40, seed=8)
    said = sm.simulate(run, np.broadcast_to(vectors, (200, *vectors.shape)))
    assert not said[0].error_is_bound
    assert all(each.error_is_bound and (each.error_se, each.actual_error) == (None, None) for each in said[1:])
    off = [np.sum((each.mean - vectors.mean(axis=0)) ** 2) - (each.error or 0.0) for each in said[1:]]
    assert np.mean(off) < -4.5 * np.std(off, ddof=1) / np.sqrt(len(off))


def test_where_rounding_is_a_small_part_of_the_error_it_is_no_bound() -> None:
    vectors = np.random.default_rng(6).normal(size=(2, 6, 40))
    run = sm.Run(sm.Scheme(sm.RandK(20, draw=sm.Balanced()), values="int8"), 40, seed=8)
    _, said = sm.simulate(run, vectors)
    assert not said.error_is_bound
    assert said.error_se is not None
    assert 0.0 < (said.rounding or 0.0) < 0.05 * (said.error or 0.0)


def test_where_no_two_nodes_meet_the_error_is_a_bound_in_long_vectors_too() -> None:
    """Sums of the same squares in other orders differ by rounding, which must not pass for a correlation."""
    for seed, dim in itertools.product(range(5), (150, 3000)):
        vectors = np.random.default_rng(seed).normal(size=(4, dim))
        run = sm.Run(sm.Scheme(sm.RandK(dim // 5, draw=sm.Balanced()), sm.Spatial("learned")), dim, seed)
        (estimate,) = sm.simulate(run, vectors[None])
        assert estimate.error_is_bound
        assert estimate.correlation is None
        assert estimate.error is not None
        assert "error=at most" in repr(estimate)


def test_the_correlation_that_is_learnt_is_compared_with_the_noise_of_what_came() -> None:
    """By the definition: κ R2 came, whose variance is V, and R2²/(R2² + V) of it would be trusted too much."""
    n, k, dim = 4, 12, 20
    vectors = np.random.default_rng(3).normal(size=dim) + np.random.default_rng(4).normal(size=(n, dim))
    run = sm.Run(sm.Scheme(sm.RandK(k, draw=sm.Balanced()), sm.Spatial("learned"), values="float64"), dim, seed=1)
    server, y = sm.Server(run), np.zeros((n, dim))
    plans = server.plans(map(str, range(n)))
    for i, x in enumerate(vectors):
        server.accept(str(i), sm.Client(run, str(i)).encode(x, 0, plans[str(i)]))
        at, _ = run.coordinates(str(i), 0, plan=Plan(i, n))
        y[i, at] = x[at] * dim / k
    server.close_round()
    moments, law = theory.Moments.of(y), theory.CountLaw(n, k / dim, slots=n)
    came, variance = float(moments.r2), float(theory.r2_variance(moments, k / dim))
    ratio = came / law.pair_factor / (k / dim * float(moments.q)) * came**2 / (came**2 + variance)
    assert server.beliefs()[0].before == pytest.approx(max(ratio, LEAST_RATIO) / (n - 1), rel=1e-12)
    assert 0.1 < came**2 / (came**2 + variance) < 0.9  # else this would show nothing


@pytest.mark.parametrize(("n", "k"), [(3, 60), (10, 30)])
def test_the_standard_error_of_r2_is_about_right_where_it_counts(n: int, k: int) -> None:
    """Uncorrelated vectors, 300 seeds: its square within 0.6 to 1.5 times the variance of R2."""
    vectors = np.random.default_rng(0).normal(size=(n, 100))
    found = []
    for seed in range(300):
        run = sm.Run(sm.Scheme(sm.RandK(k, draw=sm.Balanced()), values="float64"), 100, seed)
        (estimate,) = sm.simulate(run, vectors[None])
        assert estimate.correlation is not None
        found.append((estimate.correlation.r2, estimate.correlation.r2_se**2))
    r2, variance = np.array(found).T
    assert 0.6 < variance.mean() / r2.var(ddof=1) < 1.5
