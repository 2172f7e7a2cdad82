"""compare: the numbers are those of the formulas, budgets are kept, the advice names what the table shows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.lab.compare import Budget, Comparison, Result, advice, compare, scheme_within, vector_correlation

RNG = np.random.default_rng(5)
ALIKE = RNG.normal(size=60) + 0.2 * RNG.normal(size=(10, 60))
STEADY = np.broadcast_to(RNG.normal(size=(10, 60)), (12, 10, 60)) + 0.01 * RNG.normal(size=(12, 10, 60))
UNLIKE = RNG.normal(size=(10, 60))
BOTH_DRAWS = ["rand-k", "rand-k-balanced"]


def by_name(comparison: Comparison) -> dict[str, Result]:
    return {result.scheme: result for result in comparison.results}


def test_every_name_has_a_row_sorted_by_error():
    found = compare(ALIKE, Budget(share=0.2), seeds=2)
    assert sorted(result.scheme for result in found.results) == sorted([*sm.names(), "auto"])
    errors = [result.nmse for result in found.results]
    assert errors == sorted(errors)


def test_measured_error_is_the_exact_one():
    found = by_name(compare(ALIKE, Budget(share=0.2), ["rand-k", "rand-k-spatial-avg"], seeds=200))
    r1, r2 = sm.theory.correlation(ALIKE)
    energy = r1 / 10
    for name, T in (("rand-k", "one"), ("rand-k-spatial-avg", "avg")):
        exact = sm.theory.spatial_mse(r1, r2, 10, 0.2, T) / energy
        assert found[name].exact == pytest.approx(exact, rel=1e-9)
        assert abs(found[name].nmse - exact) < 4 * found[name].nmse_se
        assert found[name].server_estimate == pytest.approx(exact, rel=0.05)
    assert found["rand-k"].bytes_per_node == 64 + 4 * 12


def test_weights_move_the_truth():
    weights = np.array([100.0, *np.ones(9)])
    found = by_name(compare(UNLIKE, Budget(share=0.5), ["identity", "rand-k"], weights, seeds=3))
    assert found["identity"].nmse < 1e-10
    assert found["rand-k"].nmse > by_name(compare(UNLIKE, Budget(share=0.5), ["rand-k"], seeds=3))["rand-k"].nmse


@pytest.mark.parametrize("name", ["rand-k", "top-k", "wangni", "induced", "diana"])
def test_a_budget_in_bytes_is_used_and_kept(name):
    limit = 200
    scheme = scheme_within(name, Budget(bytes=limit), ALIKE, 1.0)
    assert scheme is not None
    run = sm.Run(scheme, 60)
    mean = np.mean([len(sm.Client(run, str(i)).encode(vector, 0)) for i, vector in enumerate(ALIKE)])
    assert 0.85 * limit < mean <= limit or run.layout[0].count == 60


def test_what_cannot_fit_is_said():
    found = compare(ALIKE, Budget(bytes=69), ["rand-k", "top-k", "identity"], seeds=1)
    assert found.left_out == ("top-k",)
    with pytest.raises(sm.InvalidInput, match="too small"):
        compare(ALIKE, Budget(bytes=60), ["rand-k"], seeds=1)


@pytest.mark.parametrize("wrong", [{}, {"share": 0.1, "bytes": 100}, {"share": 0.0}, {"share": 1.5}])
def test_budget_is_one_of_two(wrong):
    with pytest.raises(sm.InvalidInput):
        Budget(**wrong)


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.full((3, 4), np.nan), "NaN"),
        (np.ones(4), "shape"),
        (np.ones((2, 0, 4)), "shape"),
    ],
)
def test_bad_vectors_are_refused(vectors, message):
    with pytest.raises(sm.InvalidInput, match=message):
        compare(vectors, Budget(share=0.5), seeds=1)


@pytest.mark.parametrize("size", [1e-30, 1e37])
def test_relative_errors_and_bytes_do_not_depend_on_the_size_of_the_vectors(size):
    """The error of every scheme, as the API's estimates have it too."""
    rounds = np.stack([ALIKE, 1.1 * ALIKE])
    one, other = (by_name(compare(scale * rounds, Budget(share=0.2), sm.names(), seeds=2)) for scale in (1.0, size))
    assert set(one) == set(other) == set(sm.names())
    for name, result in one.items():
        assert other[name].bytes_per_node == pytest.approx(result.bytes_per_node, rel=1e-3)
        assert other[name].nmse == pytest.approx(result.nmse, rel=1e-4, abs=1e-12)
        for ours, theirs in ((result.exact, other[name].exact), (result.server_estimate, other[name].server_estimate)):
            assert (ours is None) == (theirs is None)
            assert ours is None or theirs == pytest.approx(ours, rel=1e-3, abs=1e-12)
    estimate = sm.estimate_mean(size * ALIKE, sm.named("rand-k", k=12), seed=0)
    error = float(np.sum((estimate.mean / size - ALIKE.mean(axis=0)) ** 2)) / np.mean(np.sum(ALIKE**2, axis=1))
    found = by_name(compare(size * ALIKE, Budget(share=0.2), ["rand-k"], seeds=1))["rand-k"]
    assert found.nmse == pytest.approx(error, rel=1e-6)


def test_vectors_as_large_as_a_client_takes_are_compared_in_double_precision():
    found = compare(
        9e99 * ALIKE / np.abs(ALIKE).max(), Budget(share=0.1), ["rand-k float64", "identity float64"], seeds=1
    )
    assert [result.scheme for result in found.results] == ["identity float64", "rand-k float64"]
    assert all(math.isfinite(result.nmse) and result.bytes_per_node > 64 for result in found.results)


@pytest.mark.parametrize("size", [1e-150, 1e101, 1e200])
def test_vectors_whose_squares_cannot_be_told_are_refused(size):
    with pytest.raises(sm.InvalidInput, match="rescale"):
        compare(size * ALIKE, Budget(share=0.2), ["rand-k"], seeds=1)


@pytest.mark.parametrize("vectors", [np.ones((1, 5)), np.zeros((3, 5)), np.ones((4, 3, 1))])
def test_degenerate_vectors_give_numbers(vectors):
    found = compare(vectors, Budget(share=0.4), seeds=2)
    assert all(math.isfinite(result.nmse) for result in found.results)
    assert advice(found)


def test_correlation_of_known_vectors():
    both = vector_correlation(np.array([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]]]))
    assert both.ratio == 0.0
    assert both.change == pytest.approx(2 / 8)
    assert vector_correlation(ALIKE[None]).change is None


def test_advice_follows_the_table():
    assert advice(compare(ALIKE, Budget(share=0.2), seeds=5)).startswith("Use rand-k-balanced:")
    steady = compare(STEADY, Budget(share=0.4), ["rand-k", "rand-k-temporal", "rand-k-spatial-avg"], seeds=3)
    assert advice(steady).startswith("Use rand-k-temporal")
    worse = replace(
        steady,
        results=tuple(
            sorted(
                (replace(r, exact=9.0) if r.scheme == "rand-k-temporal" else r for r in steady.results),
                key=lambda result: result.nmse,
            )
        ),
    )
    assert "rand-k-temporal" not in advice(worse)


def test_advice_on_balanced_draws_says_what_the_vectors_show():
    said = advice(compare(ALIKE, Budget(share=0.2), ["rand-k", "rand-k-balanced"], seeds=2))
    ratio = vector_correlation(ALIKE[None]).ratio
    space = f"(R2/R1 is {ratio:.3g} of at most 9)"
    even = "because balanced draws spread the coordinates evenly over nodes that are similar"
    assert said.endswith(f"{even} {space}.")
    both = ALIKE + 0.1 * RNG.normal(size=(12, 10, 60))
    change = vector_correlation(both).change or 0.0
    said = advice(compare(both, Budget(share=0.2), ["rand-k-balanced-hybrid"], seeds=2))
    assert even in said
    assert said.endswith(f" and vectors change by only {100 * change:.0f}% from round to round.")


def test_advice_on_balanced_draws_does_not_call_unlike_nodes_similar():
    alone = compare(UNLIKE, Budget(share=0.2), ["rand-k-balanced"], seeds=2)
    assert "because" not in advice(alone)
    steady = advice(compare(STEADY, Budget(share=0.2), ["rand-k-balanced-hybrid"], seeds=2))
    assert "similar" not in steady
    assert "because vectors change by only " in steady
    restless = np.stack([ALIKE, RNG.normal(size=60) + 0.2 * RNG.normal(size=(10, 60))])
    said = advice(compare(restless, Budget(share=0.2), ["rand-k-balanced-hybrid"], seeds=2))
    assert "similar" in said
    assert "change" not in said


def test_an_upper_bound_of_the_server_is_marked_as_one():
    below, above = (by_name(compare(ALIKE, Budget(share=share), BOTH_DRAWS, seeds=2)) for share in (0.1, 0.2))
    assert {name for name, result in below.items() if result.server_bound} == {"rand-k-balanced"}
    assert (below["rand-k-balanced"].server_estimate or 0) > 10 * (below["rand-k-balanced"].exact or 0)
    assert not any(result.server_bound for result in above.values())


def test_processes_and_one_process_agree(monkeypatch):
    one = compare(STEADY, Budget(share=0.2), ["rand-k-temporal", "wangni"], seeds=2)
    monkeypatch.setattr("sparsemean.lab.compare.playing.ALONE", 0)
    assert compare(STEADY, Budget(share=0.2), ["rand-k-temporal", "wangni"], seeds=2, jobs=2) == one


def test_weights_count_in_the_correlation_too():
    weights = np.array([1.0, 50.0, *np.ones(8)])
    r1, r2 = sm.theory.correlation(weights[:, None] * ALIKE)
    assert vector_correlation(ALIKE[None], weights).ratio == pytest.approx(r2 / r1)


def test_a_memory_that_diverges_is_said_so_and_not_advised():
    vectors = np.broadcast_to(ALIKE[:3], (4, 3, 60))
    found = by_name(compare(vectors, Budget(share=0.05), ["rand-k", "rand-k-temporal-shared"], seeds=2))
    assert found["rand-k-temporal-shared"].diverges
    assert not found["rand-k"].diverges
    only = compare(vectors, Budget(share=0.05), ["rand-k-temporal-shared"], seeds=2)
    assert "rand-k-temporal-shared" not in advice(only)


def test_a_budget_for_everything_is_said_so():
    assert "large enough" in advice(compare(ALIKE, Budget(bytes=10_000), seeds=1))


def test_whole_vectors_in_few_bits_are_advised_where_the_budget_takes_them():
    names = ["identity", "rand-k", "identity int8"]
    whole = sm.Run(sm.Scheme(sm.Identity(), values="int8"), 60).payload_bytes
    fits = compare(UNLIKE, Budget(bytes=whole), names, seeds=3)
    said = advice(fits)
    assert said.startswith("Use identity int8")
    assert "the budget takes whole vectors" in said
    assert "Use identity" not in advice(compare(UNLIKE, Budget(bytes=whole - 1), names, seeds=3))


def test_rows_over_the_budget_are_marked_and_never_advised():
    found = compare(UNLIKE, Budget(bytes=100), ["identity", "rand-k", "lag"], seeds=1)
    assert {result.scheme for result in found.results if result.over_budget} == {"identity", "lag"}
    assert advice(found).startswith("Use rand-k:")
    by_share = compare(UNLIKE, Budget(share=0.1), ["identity", "rand-k"], seeds=1)
    assert not any(result.over_budget for result in by_share.results)


def test_a_change_below_one_percent_is_not_called_zero():
    steady = compare(STEADY, Budget(share=0.4), ["rand-k", "rand-k-temporal"], seeds=1)
    assert steady.correlation.change is not None
    assert 0 < steady.correlation.change < 0.005
    assert f"change by only {100 * steady.correlation.change:.2g}% from" in advice(steady)
