"""Advice: what is recommended follows from measured errors alone, and every sentence of it is true of the table."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.lab.compare import Budget, Comparison, Result, VectorCorrelation, advice, compare

SEEDS = np.array([-1.0, 0.0, 1.0, 0.5, -0.5, 0.0])


def row(scheme: str, error: float, noise: float = 0.0, **facts: object) -> Result:
    """A result whose six seeds scatter by so large a part of the error."""
    steady = tuple((error * (1.0 + noise * SEEDS)).tolist())
    doubt = float(np.std(steady, ddof=1) / np.sqrt(len(steady)))
    plain = Result(
        scheme=scheme,
        code=f'sm.named("{scheme}", k=9)',
        bytes_per_node=100.0,
        nmse=error,
        nmse_se=doubt,
        steady=error,
        steady_se=doubt,
        exact=None,
        exact_bound=False,
        server_estimate=None,
        server_bound=False,
        unbiased=True,
        node_state=False,
        planned=False,
        server_memory=False,
        diverges=False,
        over_budget=False,
        reference=False,
        nmse_by_round=(error,) * 4,
        nmse_by_seed=steady,
        steady_by_seed=steady,
        k=9,
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


def comparison(*results: Result) -> Comparison:
    """Of these results, where answering 0 errs by a half."""
    return Comparison(
        results=tuple(sorted(results, key=lambda result: result.steady)),
        correlation=VectorCorrelation(10, 4.0, 0.3),
        rounds=4,
        nodes=10,
        dim=89,
        seeds=6,
        budget=Budget(bytes=100),
        left_out=(),
        warmup=2,
        zero_error=0.5,
        steady_zero_error=0.5,
        concentration=0.123,
    )


def recommended(*results: Result) -> str | None:
    best = comparison(*results).recommended
    return None if best is None else best.scheme


def test_the_least_error_is_recommended_and_an_unbiased_one_where_errors_cannot_be_told_apart():
    clear = row("top-k", 0.1, unbiased=False), row("rand-k", 0.2)
    assert recommended(*clear) == "top-k"
    assert "the best unbiased one is rand-k (0.2)" in advice(comparison(*clear))
    close = row("rand-k-spatial-adaptive", 0.100, 0.1, unbiased=False), row("rand-k-temporal", 0.102, -0.1)
    assert recommended(*close) == "rand-k-temporal"
    assert recommended(*close, row("rand-k", 0.1045, 0.2)) == "rand-k"  # the simplest of the three
    assert recommended(*close, row("rand-k", 0.106, 0.2)) == "rand-k-temporal"  # 4 % more are too much to be simple
    paired = row("rand-k-spatial-adaptive", 0.100, 0.1, unbiased=False), row("rand-k-temporal", 0.102, 0.1)
    assert recommended(*paired) == "rand-k-spatial-adaptive"  # 2 % more with every seed


def test_what_errs_more_than_answering_zero_diverges_or_is_over_the_budget_is_never_recommended():
    useless = (
        row("rand-k", 0.51),
        row("top-k", 0.1, over_budget=True),
        row("rand-k-temporal-shared", 0.1, diverges=True),
    )
    told = row("rand-k-spatial-opt", 0.1), row("rand-k-hybrid-shrunk", 0.1), row("rand-k-ratio", 0.1)
    found = comparison(*useless, *told, row("identity int8", 1e-6, over_budget=True, bytes_per_node=155.0))
    assert found.recommended is None
    assert found.to_json()["code"] is None
    assert advice(found) == (
        "Nothing that compresses errs less than answering 0 does (0.5), within this budget. Give a larger one, or send "
        "whole vectors: int8 takes 155 bytes per node and has an error of 1e-06."
    )


def test_the_advice_names_what_does_without_memory_plans_and_state():
    best = row("auto", 0.01, planned=True, server_memory=True, k=None)
    others = row("rand-k-hybrid", 0.02, server_memory=True), row("rand-k-balanced", 0.03, planned=True)
    said = advice(comparison(best, *others, row("rand-k", 0.4)))
    assert said.startswith("Use auto: error 0.01 at 100 bytes per node, 40 times less than rand-k.")
    assert "without plans, rand-k-hybrid (0.02); without memory at the server, rand-k-balanced (0.03)." in said
    said = advice(comparison(best, row("rand-k", 0.4)))
    assert "without plans or memory at the server, rand-k (0.4)." in said
    said = advice(comparison(best, row("diana", 0.015, node_state=True), row("rand-k", 0.4)))
    assert "diana" not in said  # who cannot plan is not asked to keep state at the nodes
    assert "without plans or memory at the server, nothing that was played beats" in advice(comparison(best))


def test_a_difference_between_the_steady_state_and_all_rounds_is_said():
    settled = row("rand-k-temporal", 0.1, nmse=0.3)
    said = advice(comparison(settled, row("rand-k", 0.2)))
    assert "in rounds 3 to 4; over all of them, the first ones included, it is 0.3, and that of rand-k 0.2." in said
    assert "over all of them" not in advice(comparison(row("rand-k", 0.1)))


def test_the_trade_against_whole_vectors_is_said():
    whole = row("identity int8", 1e-5, over_budget=True, bytes_per_node=200.0)
    said = advice(comparison(row("rand-k", 0.1), whole))
    assert said.endswith("Whole vectors in int8 cost 2 times the bytes and err 10,000 times less.")
    assert "Whole" not in advice(comparison(row("rand-k", 0.1), replace(whole, bytes_per_node=1e4)))
    near = advice(comparison(row("rand-k", 0.1), replace(whole, bytes_per_node=102.0, steady=0.03)))
    assert near.endswith("Whole vectors in int8 cost 2 bytes more and err 3.33 times less.")


def test_largest_entries_are_praised_with_what_they_hold():
    assert "hold 12% of its energy" in advice(comparison(row("top-k", 0.1, unbiased=False), row("rand-k", 0.2)))


def test_an_error_that_is_not_known_well_is_said_so():
    assert "more seeds" not in advice(comparison(row("rand-k", 0.1, 0.05)))
    assert "The error of rand-k is ± 58%: more seeds" in advice(comparison(row("rand-k", 0.1, 1.0)))


def test_results_say_two_standard_errors():
    (found,) = comparison(row("rand-k", 0.1, 0.5)).to_json()["results"]
    assert found["steady_plus_minus"] == 2 * found["steady_se"] > 0
    assert found["nmse_plus_minus"] == 2 * found["nmse_se"]


RNG = np.random.default_rng(3)
MADE: dict[str, Doubles] = {
    "gaussian": RNG.normal(size=(6, 5, 24)),
    "heavy-tailed": RNG.standard_t(1.5, size=(6, 5, 24)),
    "identical": np.repeat(RNG.normal(size=(6, 1, 24)), 5, axis=1),
    "constant": np.repeat(RNG.normal(size=(1, 5, 24)), 6, axis=0),
    "drifting": 3.0 + np.cumsum(0.2 * RNG.normal(size=(6, 5, 24)), axis=0),
}
TRIED = ["rand-k", "rand-k-spatial-avg", "rand-k-temporal", "top-k", "wangni"]


def steady_error(scheme: sm.Scheme, vectors: Doubles, seeds: range) -> float:
    """With plain NumPy, from what the server returns."""
    half, energy = len(vectors) // 2, np.mean(np.sum(vectors**2, axis=2), axis=1)
    total = 0.0
    for seed in seeds:
        means = [estimate.mean for estimate in sm.simulate(sm.Run(scheme, vectors.shape[2], seed), vectors)]
        total += float(np.sum((np.array(means) - vectors.mean(axis=1))[half:] ** 2) / energy[half:].sum())
    return total / len(seeds)


@pytest.mark.parametrize("data", MADE)
def test_what_is_recommended_holds_with_other_seeds(data):
    vectors = MADE[data]
    found = compare(vectors, Budget(bytes=64 + 4 * 8), TRIED, seeds=8)
    best = found.recommended
    zero = float(np.sum(vectors.mean(axis=1)[3:] ** 2) / np.mean(np.sum(vectors**2, axis=2), axis=1)[3:].sum())
    errors = {
        result.scheme: steady_error(eval(result.code, {"sm": sm}), vectors, range(1000, 1008))
        for result in found.results
        if not result.over_budget and (result.unbiased or result == best)
    }
    if best is None:
        assert min(errors.values()) > 0.9 * zero
        return
    assert re.match(rf"Use {best.scheme}: error \S+ at \d+ bytes|The budget is large enough", advice(found))
    assert errors[best.scheme] < zero
    assert errors[best.scheme] <= 1.1 * min(errors[name] for name in errors) + 1e-12
