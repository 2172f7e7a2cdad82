"""What the server says of its own error through whole rounds: expected and actual, and where nothing can be said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean._names import ValueName
from sparsemean._types import Doubles
from sparsemean.decoding.by_count import ByCount
from sparsemean.decoding.moment_sample import moment_sample
from sparsemean.decoding.quality import Quality, innovation_correlation, quality
from sparsemean.decoding.summary import Summary
from sparsemean.decoding.totals import RoundTotals
from sparsemean.lab.weather import load_weather
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks

INDEPENDENT = sm.Independent()


def similar(n: int, dim: int, correlation: float, seed: int = 0) -> Doubles:
    """Gaussian vectors whose entries at a coordinate have this correlation."""
    rng = np.random.default_rng(seed)
    common, own = rng.normal(size=dim), rng.normal(size=(n, dim))
    return np.asarray(math.sqrt(correlation) * common + math.sqrt(1.0 - correlation) * own)


def said(vectors: Doubles, scheme: sm.Scheme, rounds: int) -> tuple[Doubles, ...]:
    """``error``, ``error_se``, the actual error, its prediction and interval; rounds differ in the draw alone."""
    run, mean = sm.Run(scheme, vectors.shape[1], seed=1), vectors.mean(axis=0)
    rows = []
    for each in sm.simulate(run, np.broadcast_to(vectors, (rounds, *vectors.shape))):
        assert each.actual_error_interval is not None
        happened = np.sum((each.mean - mean) ** 2)
        rows.append((each.error, each.error_se, happened, each.actual_error, *each.actual_error_interval))
    return tuple(np.array(rows, float).T)


def spatial(T: str | float, k: int, values: ValueName = "float64", draw: sm.Draw = INDEPENDENT) -> sm.Scheme:
    return sm.Scheme(sm.RandK(k, draw=draw), sm.Spatial(T), values=values)


WEATHER = load_weather().vectors.astype(float)[20]
GROUPS = np.array([[4.0]] * 3 + [[0.0]] * 3)  # of nodes, which differ by the same in all coordinates
APART = 0.1 * similar(10, 300, 0.0) + np.repeat(np.eye(10), 30, axis=1)  # another node in each part of the vector
CASES: dict[str, tuple[Doubles, sm.Scheme]] = {
    "very similar": (similar(40, 300, 0.995), spatial("max", 45)),
    "unlike": (similar(10, 400, 0.0), spatial("avg", 120)),
    "two nodes": (similar(2, 300, 0.5), spatial("max", 150)),
    "one node": (similar(1, 800, 0.0), spatial("one", 200)),
    "skewed": (np.exp(similar(10, 400, 0.5)), spatial("one", 120)),
    "weather": (WEATHER, spatial("max", 9)),
    "balanced": (similar(20, 400, 0.9), spatial("one", 80, draw=sm.Balanced())),
    "balanced, counts vary": (similar(20, 400, 0.9), spatial("max", 90, draw=sm.Balanced())),
    "balanced, two groups": (
        similar(6, 300, 0.0) + GROUPS * similar(1, 300, 0.0, seed=5),
        spatial("max", 150, draw=sm.Balanced()),
    ),
    "balanced, one apart": (APART, spatial("max", 90, draw=sm.Balanced())),
    "8 bit": (similar(10, 400, 0.9), spatial("max", 120, "int8")),
    "1 bit": (similar(10, 400, 0.9), spatial("max", 120, "1-bit")),
    "1 bit of everything": (similar(10, 100, 0.9), spatial("one", 100, "1-bit")),
}


@pytest.mark.parametrize("name", CASES)
def test_errors_standard_errors_and_intervals_are_right(name: str) -> None:
    """100 rounds: |z| < 4.5 for both errors; se² within what so many rounds tell; 95 % intervals cover 90 to 100 %.

    Of few nodes intervals are as long as they need be: the standard deviation that the length tells is 0.7 to 1.5 times
    that of predicted less actual.
    """
    vectors, scheme = CASES[name]
    rounds = 100
    error, se, happened, predicted, low, high = said(vectors, scheme, rounds)
    for off in (error - happened, predicted - happened):
        assert abs(off.mean()) < 4.5 * off.std(ddof=1) / math.sqrt(rounds)
    if scheme.values != "1-bit":  # whose step depends on what is sent, and the expected error with it
        # The relative standard deviation of a variance is √((κ + 2)/rounds), here at most √(4/100) = 0.2.
        assert 0.6 < np.mean(se**2) / error.var(ddof=1) < 1.6
    assert np.mean((low <= happened) & (happened <= high)) >= 0.90
    if name in ("balanced, two groups", "balanced, one apart"):
        told = np.sqrt(np.mean((predicted * np.log(high / low) / (2.0 * 1.96)) ** 2))
        assert 0.7 < told / np.std(predicted - happened) < 1.5


def test_where_nodes_are_alike_the_error_is_known_to_a_few_percent() -> None:
    """From R1 and R2 alone it would be uncertain by several times itself."""
    vectors, scheme = CASES["very similar"]
    n, share = len(vectors), 0.15
    error, se, *_ = said(vectors, scheme, 40)
    own, cross = sm.theory.error_coefficients("max", n, share)
    r1, r2 = sm.theory.correlation(vectors)
    assert error.std() < 0.05 * error.mean()
    assert abs(own * r1) > 10 * abs(own * r1 + cross * r2)  # which cancel
    assert np.all(np.abs(se / error.std() - 1.0) < 0.5)


@pytest.mark.parametrize(("n", "k"), [(1, 2), (3, 2), (5, 3)])
def test_the_standard_error_holds_where_few_values_are_sent(n: int, k: int) -> None:
    """400 rounds of T = 1, which needs no pairs: the mean of se² within 0.75 to 1.3 of the variance."""
    vectors = similar(n, 40, 0.3, seed=n)
    run = sm.Run(spatial("one", k), 40)
    told = sm.simulate(run, np.broadcast_to(vectors, (400, *vectors.shape)))
    error, se = np.array([(each.error, each.error_se) for each in told], float).T
    assert 0.75 < np.mean(se**2) / error.var(ddof=1) < 1.3


def test_a_single_value_does_not_tell_how_certain_it_is() -> None:
    estimate = sm.estimate_mean(similar(1, 20, 0.0), sm.named("rand-k", k=1))
    assert estimate.error is not None
    assert (estimate.error_se, estimate.actual_error_interval) == (None, None)


def test_no_interval_is_stated_where_hardly_two_nodes_meet() -> None:
    vectors = similar(3, 1000, 0.5)
    few = sm.estimate_mean(vectors, sm.named("rand-k", k=10))
    assert few.error_se is not None
    assert few.actual_error is not None
    assert few.actual_error_interval is None
    assert sm.estimate_mean(vectors, sm.named("rand-k", k=100)).actual_error_interval is not None
    assert sm.estimate_mean(vectors[:1], sm.named("rand-k", k=10)).actual_error_interval is not None


def test_nor_where_all_is_rounding() -> None:
    estimate = sm.estimate_mean(similar(3, 50, 0.5), sm.named("rand-k", k=50))
    assert (estimate.error, estimate.error_se, estimate.actual_error) == (0.0, 0.0, 0.0)
    assert estimate.actual_error_interval is None
    alike = np.tile(similar(1, 50, 0.0), (100, 1))
    estimate = sm.estimate_mean(alike, sm.named("rand-k-spatial-max", k=40))
    assert estimate.counts.min() > 0
    assert estimate.actual_error_interval is None


def test_nor_of_nodes_with_several_k_nor_of_bounds() -> None:
    encoders = sm.OneOf((sm.RandK(10), sm.RandK(20)))
    run = sm.Run(sm.Scheme(encoders, sm.Spatial("avg")), 60)
    server, vectors = sm.Server(run), similar(6, 60, 0.5)
    for i, vector in enumerate(vectors):
        server.accept(str(i), sm.Client(run, str(i), run.encoders[i % 2]).encode(vector, 0))
    mixed = server.close_round()
    assert mixed.error is not None
    assert mixed.relative_error is not None
    bound = sm.estimate_mean(vectors, sm.Scheme(sm.RandK(5, draw=sm.Balanced())))
    assert bound.error_is_bound
    assert bound.relative_error is None
    for each in (mixed, bound):
        assert (each.actual_error, each.actual_error_interval) == (None, None)


def test_of_one_k_with_several_to_choose_from_the_error_is_that_of_one() -> None:
    """Where all choose alike, they are one class."""
    vectors, one = similar(6, 60, 0.5), sm.RandK(20)
    run = sm.Run(sm.Scheme(sm.OneOf((sm.RandK(10), one)), sm.Spatial("avg")), 60)
    server = sm.Server(run)
    for i, vector in enumerate(vectors):
        server.accept(str(i), sm.Client(run, str(i), one).encode(vector, 0))
    assert server.close_round().actual_error_interval is not None


# --- relative_error -------------------------------------------------------------------------------


def test_the_relative_error_is_near_the_true_one() -> None:
    vectors = similar(10, 2000, 0.9)
    truth = vectors.mean(axis=0) @ vectors.mean(axis=0)
    r1, r2 = sm.theory.correlation(vectors)
    exact = sm.theory.spatial_mse(r1, r2, 10, 0.3, "max") / truth
    found = [sm.estimate_mean(vectors, spatial("max", 600), seed).relative_error for seed in range(20)]
    assert np.array(found, float) == pytest.approx(exact, rel=0.1)


def test_of_vectors_that_may_as_well_be_0_no_relative_error_is_stated() -> None:
    assert sm.estimate_mean(np.zeros((3, 10)), sm.named("rand-k", k=5)).relative_error is None
    estimate = sm.estimate_mean(similar(3, 10, 0.0), sm.named("rand-k", k=5))
    assert replace(estimate, mean=np.zeros(10)).relative_error is None
    assert replace(estimate, error=-1.0).relative_error == 0.0
    assert replace(estimate, error=None).relative_error is None


# --- laws -----------------------------------------------------------------------------------------

WEIRD = st.sampled_from([0.0, 1.0, -1.0, 1e-30, 1e30, -1e30, 3e-160, 1e-300, 1e100])


@st.composite
def rounds(draw: st.DrawFn) -> tuple[sm.Run, Doubles, Doubles]:
    n, dim = draw(st.integers(1, 6)), draw(st.integers(1, 40))
    choices: list[str | float] = ["one", "max", "avg", -0.9, -1, 5.0, "learned", "estimated"]
    T = draw(st.sampled_from(choices))
    kinds: list[ValueName] = ["float64", "float64", "int8", "1-bit"]
    values, first = draw(st.sampled_from(kinds)), draw(st.integers(1, dim))
    seed = draw(st.integers(0, 2**32))
    run = sm.Run(
        sm.Scheme(sm.RandK(draw(st.integers(1, dim))), sm.Spatial(T), values=values),
        dim,
        seed,
        blocks=(first, dim - first) if first < dim else None,
    )
    rng = np.random.default_rng(seed)
    size, common, own = draw(WEIRD), draw(WEIRD), draw(WEIRD)
    if values != "float64":
        size, common, own = np.clip([size, common, own], -1e15, 1e15)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        vectors = size * (common * rng.normal(size=dim) + own * rng.normal(size=(n, dim)))
    if draw(st.booleans()):
        vectors *= rng.random(vectors.shape) < 0.1
    limit = 1e100 if values == "float64" else 1e30
    weights = rng.choice([0.0, 1.0, 1e-20, 7.0], size=(n, len(run.blocks)))
    weights[0] = 1.0
    return run, np.clip(np.nan_to_num(vectors), -limit, limit), weights


@settings(max_examples=150, deadline=None)
@given(rounds())
def test_whatever_comes_nothing_is_nan_and_nothing_negative(case: tuple[sm.Run, Doubles, Doubles]) -> None:
    """``error`` alone may be negative, as it is unbiased."""
    run, vectors, weights = case
    for estimate in sm.simulate(run, np.array([vectors, vectors]), weights=weights):
        low, high = estimate.actual_error_interval or (None, None)
        numbers = (estimate.error_se, estimate.actual_error, low, high, estimate.relative_error, estimate.rounding)
        assert estimate.error is None or math.isfinite(estimate.error)
        assert all(each is None or 0.0 <= each < math.inf for each in numbers)
        if low is not None and high is not None:
            assert low <= high


LAYERS = Blocks((5_000, 249_000, 46_000))
CUTS = (0, 4096, 36_864, 45_056, 45_056, 200_704, 300_000)


def part_of_round(lo: int, hi: int) -> Summary:
    """Six nodes of one class, with noise, cut to a range."""
    random = np.random.default_rng(3)
    common = random.normal(size=LAYERS.dim)
    totals = RoundTotals(LAYERS.within(lo, hi), True, 1, moment_sample(LAYERS, lo, hi))
    for _ in range(6):
        at = np.sort(random.choice(LAYERS.dim, 75_000, replace=False))
        values = common[at] + random.normal(size=at.size)
        here = (at >= lo) & (at < hi)
        totals.add(np.array([1.0, 2.0, 3.0]), [Part(at[here] - lo, values[here], 4.0, 0.01)])
    return Summary.of(totals, np.zeros((0, 3)))


def judged(summary: Summary, before: Sequence[float | None] = (None, 0.3, 0.5)) -> Quality:
    return quality(summary, (0.25,), ["max", "one", 2.0], before, summary.weight, LAYERS.dim)


def test_ranges_tell_together_what_the_whole_tells() -> None:
    """Error, standard error, prediction, interval and correlation, of three blocks over six ranges."""
    whole, parts = part_of_round(0, LAYERS.dim), [part_of_round(lo, hi) for lo, hi in pairwise(CUTS)]
    one, other = judged(whole), judged(reduce(add, parts))
    assert one.interval is not None
    assert other.interval is not None
    assert other.interval == pytest.approx(one.interval, rel=1e-10)
    for name in ("error", "error_se", "actual", "rounding"):
        assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-10), name


def test_a_summary_from_before_there_were_sums_by_count_tells_what_it_did() -> None:
    """Of a journal that an earlier version wrote: the error from R1 and R2, without an interval."""
    summary = part_of_round(0, LAYERS.dim)
    tree = summary.tree()
    assert isinstance(tree, dict)
    earlier = Summary.of_tree({name: value for name, value in tree.items() if name != "by_count"})
    assert earlier.by_count.counts.size == ByCount.empty(3).counts.size
    now, then = judged(summary), judged(earlier)
    assert then.error == pytest.approx(now.error, rel=0.1)
    assert (then.interval, then.bound) == (None, False)
    shown, before = (innovation_correlation(each, (0.25,)) for each in (summary, earlier))
    assert shown is not None
    assert before is not None
    np.testing.assert_allclose(before, shown, rtol=0.1)
