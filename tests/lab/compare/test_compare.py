"""compare: the numbers are those of the formulas, budgets are kept, the advice names what the table shows."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.lab.compare import Budget, Comparison, Result, advice, compare, vector_correlation

RNG = np.random.default_rng(5)
ALIKE = RNG.normal(size=60) + 0.2 * RNG.normal(size=(10, 60))
STEADY = np.broadcast_to(RNG.normal(size=(10, 60)), (12, 10, 60)) + 0.01 * RNG.normal(size=(12, 10, 60))
UNLIKE = RNG.normal(size=(10, 60))
BOTH_DRAWS = ["rand-k", "rand-k-balanced"]


def pasted(result: Result) -> sm.Scheme:
    """What its code makes."""
    made: sm.Scheme = eval(result.code, {"sm": sm})
    return made


def by_name(comparison: Comparison) -> dict[str, Result]:
    return {result.scheme: result for result in comparison.results}


def test_every_name_has_a_row_sorted_by_error():
    found = compare(ALIKE, Budget(share=0.2), seeds=2)
    assert {result.scheme for result in found.results} == {*sm.names(), "auto", "identity float16", "identity int8"}
    errors = [result.steady for result in found.results]
    assert errors == sorted(errors)


def test_measured_error_is_the_exact_one():
    found = by_name(compare(ALIKE, Budget(share=0.2), ["rand-k", "rand-k-spatial-avg"], seeds=100))
    r1, r2 = sm.theory.correlation(ALIKE)
    energy = r1 / 10
    for name, T in (("rand-k", "one"), ("rand-k-spatial-avg", "avg")):
        exact = sm.theory.spatial_mse(r1, r2, 10, 0.2, T) / energy
        assert found[name].exact == pytest.approx(exact, rel=1e-9)
        assert abs(found[name].nmse - exact) < 4 * found[name].nmse_se
        assert found[name].server_estimate == pytest.approx(exact, rel=0.05)
    assert found["rand-k"].bytes_per_node == 64 + 4 * 12


def test_those_that_matter_are_played_until_two_standard_errors_are_five_percent():
    found = compare(ALIKE + RNG.normal(size=(8, 10, 60)), Budget(share=0.5), ["rand-k", "rand-k-spatial-avg"])
    best = found.recommended
    assert best is not None
    assert 2 * best.steady_se <= 0.05 * best.steady
    assert best.seeds >= 6
    assert by_name(found)["identity int8"].seeds == 3


def test_weights_move_the_truth():
    weights = np.array([100.0, *np.ones(9)])
    found = by_name(compare(UNLIKE, Budget(share=0.5), ["identity", "rand-k"], weights, seeds=3))
    assert found["identity"].nmse < 1e-10
    assert found["rand-k"].nmse > by_name(compare(UNLIKE, Budget(share=0.5), ["rand-k"], seeds=3))["rand-k"].nmse


@pytest.mark.parametrize("name", ["rand-k", "top-k", "wangni", "rand-k-balanced 2-bit", "rand-k-balanced 1-bit"])
def test_no_payload_has_more_bytes_than_the_budget_and_k_is_that_of_for_bytes(name):
    rounds = RNG.normal(size=(3, 6, 500)) * np.geomspace(1, 100, 500)
    (result,) = (r for r in compare(rounds, Budget(bytes=250), [name], seeds=1).results if r.scheme == name)
    scheme, _, values = name.partition(" ")
    run = sm.Run.for_bytes(scheme, 500, 250, values=values or "float32")
    assert pasted(result) == run.scheme
    assert result.k == sum(layout.count for layout in run.layout)
    assert not result.over_budget
    server, lengths = sm.Server(run), list[int]()
    for t, vectors in enumerate(rounds):
        plans = server.plans(map(str, range(6)))
        blobs = {node: sm.Client(run, node).encode(x, t, plans[node]) for node, x in zip(plans, vectors, strict=True)}
        lengths += map(len, blobs.values())
        for node, blob in blobs.items():
            server.accept(node, blob)
        server.close_round()
    assert max(lengths) <= run.payload_bytes <= 250
    assert result.bytes_per_node == pytest.approx(np.mean(lengths), rel=1e-12)
    assert np.mean(lengths) > 0.6 * run.payload_bytes or scheme == "wangni"


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
    for name, result in ((name, one[name]) for name in sm.names()):
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


def test_whole_vectors_with_the_bits_that_fit_are_always_among_them():
    vectors = np.random.default_rng(0).normal(size=(2, 4, 2048))
    fits, none = (
        {result.scheme for result in compare(vectors, Budget(bytes=limit), ["rand-k"], seeds=1).results}
        for limit in (64 + 520, 64 + 100)
    )
    assert fits - none == {"identity eden-2"}
    assert sm.Run(sm.named("identity", values="eden-2"), 2048).payload_bytes <= 64 + 520
