"""The server's own error estimate: right on average, its standard error to be believed, and None where unknown."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import sampling, theory
from sparsemean._names import Missing, SchemeName
from sparsemean._types import Doubles

SEEDS = 110


@dataclass(frozen=True)
class Case:
    """Round 1 of drifting nodes; round 0 took place only where something of it is remembered."""

    T: str | float = "one"
    memory: bool = False
    weighted: bool = False
    blocks: tuple[int, ...] = (60,)
    missing: Missing = "drop"
    k: int = 12
    nodes: int = 8
    similar: float = 1.0

    @property
    def scheme(self) -> sm.Scheme:
        return sm.Scheme(sm.RandK(self.k), sm.Spatial(self.T), sm.PerNode() if self.memory else None, "float64")


@dataclass(frozen=True)
class Outcome:
    """One entry a seed: what the server said, the exact error of that round, and what really came of it."""

    said: Doubles
    se: Doubles
    exact: Doubles
    happened: Doubles
    r1: Doubles
    r2: Doubles
    r2_se: Doubles
    exact_r1: Doubles
    exact_r2: Doubles


@cache
def outcome(case: Case) -> Outcome:
    rng = np.random.default_rng(case.nodes)
    dim = sum(case.blocks)
    base = case.similar * rng.normal(size=dim) + rng.normal(size=(case.nodes, dim))
    vectors = np.array([base, base + 0.4 * rng.normal(size=base.shape)])
    weights = np.ones((case.nodes, len(case.blocks)))
    if case.weighted:
        weights = rng.uniform(0.5, 2.0, size=weights.shape)
        weights[0, -1] = 0.0
    here = np.arange(case.nodes) < (case.nodes - 3 if case.missing == "carry" else case.nodes)
    block_of = np.repeat(np.arange(len(case.blocks)), case.blocks)
    w = weights[:, block_of]
    rows = []
    for seed in range(SEEDS):
        run = sm.Run(case.scheme, dim, seed, case.blocks)
        server, b = sm.Server(run, missing=case.missing, round=1 - case.memory), np.zeros(base.shape)
        for t in range(server.round, 2):
            for i in range(case.nodes):
                if t == 0 or here[i]:
                    server.accept(str(i), sm.Client(run, str(i)).encode(vectors[t, i], t), weights[i])
                if t == 0 and case.memory:
                    chosen = sampling.coordinates(run.key(str(i), 0), dim, case.k)
                    b[i, chosen] = vectors[0, i, chosen]
            estimate = server.close_round()
        there = np.where(here[:, None], vectors[1], b)
        truth = (w * there).sum(axis=0) / w.sum(axis=0)
        residual = (w * (there - b))[here]
        exact = exact_r1 = exact_r2 = 0.0
        for block in range(len(case.blocks)):
            inside, present = block_of == block, weights[here, block]
            n = int(np.count_nonzero(present))
            r1, r2 = theory.correlation(residual[:, inside])
            counted = weights[:, block].sum()
            exact += theory.spatial_mse(r1, r2, n, case.k / dim, case.T) * (n / counted) ** 2
            exact_r1 += r1 * (n / present.sum()) ** 2
            exact_r2 += r2 * (n / present.sum()) ** 2
        assert estimate.error is not None
        assert estimate.error_se is not None
        assert estimate.correlation is not None
        said = estimate.correlation
        happened = np.sum((estimate.mean - truth) ** 2)
        rows.append(
            (estimate.error, estimate.error_se, exact, happened, said.r1, said.r2, said.r2_se, exact_r1, exact_r2)
        )
    return Outcome(*np.array(rows, float).T)


# Without memory, weights and blocks, there are more in test_own_error.py.
CASES = {
    "rand-k, few": Case(k=3),
    "rand-k, most": Case(k=48),
    "opposed": Case(-0.5, similar=0.2),
    "one node": Case("max", nodes=1),
    "two nodes": Case("max", nodes=2),
    "twenty nodes": Case("avg", nodes=20, k=4),
    "blocks": Case("avg", weighted=True, blocks=(10, 35, 15)),
    "temporal blocks": Case("max", memory=True, weighted=True, blocks=(10, 35, 15)),
    "carry blocks": Case("avg", memory=True, weighted=True, blocks=(10, 35, 15), missing="carry"),
}
# The outcome of a case serves three tests, in one process.
each_case = pytest.mark.parametrize(
    "case", [pytest.param(case, id=name, marks=pytest.mark.xdist_group(name)) for name, case in CASES.items()]
)


def assert_zero_on_average(differences: Doubles) -> None:
    """|z| < 4; differences of nothing but rounding pass."""
    assert abs(differences.mean()) < 4 * differences.std() / math.sqrt(differences.size) + 1e-12


@each_case
def test_what_the_server_says_of_its_error_is_right_on_average(case: Case) -> None:
    seen = outcome(case)
    assert_zero_on_average(seen.said - seen.exact)
    assert_zero_on_average(seen.happened - seen.exact)


@each_case
def test_its_standard_error_is_calibrated(case: Case) -> None:
    """Variance over mean squared standard error, within what 110 seeds can tell; and coverage of three of them.

    One or two nodes send so few values that the error is skewed; three standard errors then cover less.
    """
    seen = outcome(case)
    off = seen.said - seen.exact
    assert 0.65 < np.mean(off**2) / np.mean(seen.se**2) < 1.4
    assert np.mean(np.abs(off) < 3 * seen.se) >= (0.95 if case.nodes > 2 else 0.9)


@each_case
def test_the_correlation_is_right_on_average(case: Case) -> None:
    seen = outcome(case)
    assert_zero_on_average(seen.r1 - seen.exact_r1)
    assert_zero_on_average(seen.r2 - seen.exact_r2)
    if case.nodes > 1:
        assert 0.5 < np.mean((seen.r2 - seen.exact_r2) ** 2) / np.mean(seen.r2_se**2) < 1.4


@pytest.mark.parametrize("ratio", [-0.9, 0.0, 3.0, 18.0])
def test_the_ratio_of_much_data_is_near_the_true_one(ratio: float) -> None:
    rng = np.random.default_rng(0)
    n, d = 20, 20_000
    own = rng.normal(size=(n, d))
    own -= own.mean(axis=0)
    common = rng.normal(size=d)
    common *= math.sqrt((ratio + 1) / np.sum(common**2))
    vectors = common + own * math.sqrt(n * (n - 1 - ratio) / np.sum(own**2))
    said = sm.estimate_mean(vectors, sm.named("rand-k", k=0.2)).correlation
    assert said is not None
    assert abs(said.ratio - ratio) < 4 * said.ratio_se < 1


UNKNOWN = ["top-k", "top-k-spatial", "top-k-temporal", "rtop-k", "wangni", "induced", "lag"]


@pytest.mark.parametrize("name", [*UNKNOWN, "error-feedback-top-k", "error-feedback-rand-k"])
def test_where_no_formula_holds_nothing_is_said(name: SchemeName) -> None:
    estimate = sm.estimate_mean(np.random.default_rng(0).normal(size=(3, 10)), sm.named(name, k=3))
    assert (estimate.error, estimate.error_se, estimate.correlation) == (None, None, None)


@pytest.mark.parametrize("name", ["identity", "rand-k", "rand-k-spatial-max", "rand-k-temporal", "diana"])
def test_where_everything_is_sent_the_error_is_exactly_zero(name: SchemeName) -> None:
    vectors = np.random.default_rng(0).normal(size=(2, 3, 10))
    for estimate in sm.simulate(sm.Run(sm.named(name, k=10), 10), vectors):
        assert (estimate.error, estimate.error_se) == (0.0, 0.0)


def test_it_may_be_negative() -> None:
    """Where similar nodes follow upon unlike ones, and the blend is for the latter. Clipping at 0 would bias it."""
    assert outcome(CASES["rand-k, most"]).said.min() > 0  # much data
    rng, scheme = np.random.default_rng(0), sm.named("rand-k-spatial-max", k=6)
    vectors = np.array([rng.normal(size=(10, 20)), np.tile(rng.normal(size=20), (10, 1))])
    said = [sm.simulate(sm.Run(scheme, 20, seed), vectors)[1].error for seed in range(100)]
    assert min(error for error in said if error is not None) < 0


@pytest.mark.parametrize("exponent", [-60, 60, 100])
@pytest.mark.parametrize("name", ["rand-k", "rand-k-spatial-avg"])
def test_units_do_not_matter(name: SchemeName, exponent: int) -> None:
    """Powers of two are exact, so the error is c² times the other to the last bit, also where float32 overflows."""
    vectors = np.random.default_rng(0).normal(size=(6, 40))
    one = sm.estimate_mean(vectors, sm.named(name, k=0.2))
    other = sm.estimate_mean(vectors * 2.0**exponent, sm.named(name, k=0.2))
    assert one.error is not None
    assert one.error_se is not None
    assert other.error == one.error * 4.0**exponent
    assert other.error_se == pytest.approx(one.error_se * 4.0**exponent, rel=1e-12)
    assert one.correlation is not None
    assert other.correlation is not None
    assert other.correlation.ratio == one.correlation.ratio


def test_only_ratios_of_weights_matter() -> None:
    vectors, weights = np.random.default_rng(0).normal(size=(6, 40)), np.arange(1.0, 7.0)
    one = sm.estimate_mean(vectors, sm.named("rand-k-spatial-avg", k=0.2), weights=weights)
    other = sm.estimate_mean(vectors, sm.named("rand-k-spatial-avg", k=0.2), weights=weights * 1024)
    assert (other.error, other.correlation) == (one.error, one.correlation)
    assert np.array_equal(other.mean, one.mean)


def test_a_node_without_weight_is_not_there() -> None:
    vectors = np.random.default_rng(0).normal(size=(6, 40))
    scheme = sm.named("rand-k-spatial-avg", k=0.2)
    without = sm.estimate_mean(vectors[:5], scheme)
    weightless = sm.estimate_mean(vectors, scheme, weights=[1, 1, 1, 1, 1, 0])
    assert np.array_equal(without.mean, weightless.mean)
    assert np.array_equal(without.counts, weightless.counts)
    assert (without.error, without.error_se, without.correlation) == (
        weightless.error,
        weightless.error_se,
        weightless.correlation,
    )
