"""A sweep: the points are those of compare, the fronts keep their rules, and an interrupted sweep goes on."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.compare import Budget, GivenVectors, compare
from sparsemean.lab.frontier import Frontier, KeptPoints, Point, Sweep, default_budgets
from sparsemean.lab.peers import PEERS

RNG = np.random.default_rng(3)
VECTORS = RNG.normal(size=16) + 0.3 * RNG.normal(size=(2, 4, 16))
NAMES = ["rand-k", "rand-k-spatial-opt", "rand-k-temporal-shared", "top-k", "identity", "lag"]
DENSE = {"identity float32", "identity float16", "identity int8"}


def sweep(budgets=(76, 100, 5000), seeds=2, vectors=VECTORS) -> Sweep:
    return Sweep(GivenVectors(vectors), budgets, NAMES, ["float32", "int8"], seeds)


@pytest.fixture(scope="module")
def found() -> Frontier:
    asked = sweep()
    return asked.frontier(list(asked.points()))


def point(scheme: str, bytes_per_node: float, nmse: float, **facts) -> Point:
    plain = {"unbiased": True, "node_state": False, "diverges": False, **facts}
    return Point(scheme, 100, 5, bytes_per_node, nmse, 0.1 * nmse, None, **plain)


def test_whole_vectors_are_played_once_for_each_kind_and_dense_means_always(found):
    whole = [point.scheme for point in found.points if point.budget is None]
    assert sorted(whole) == sorted([*DENSE, "identity eden-5", "lag float32", "lag int8"])
    only = Sweep(GivenVectors(VECTORS), [100], ["rand-k"], ["int4"], seeds=1)
    assert {point.scheme for point in only.points()} == {*DENSE, "rand-k int4"}  # eden-8 fits, and so does int8


def test_whole_vectors_with_the_bits_that_fit_are_played_at_every_budget():
    vectors = np.random.default_rng(1).normal(size=(1, 3, 700))
    asked = Sweep(GivenVectors(vectors), [100, 200, 300, 2000], ["rand-k"], seeds=1)
    points = {point.scheme: point for point in asked.points()}
    whole = {name: point.bytes_per_node for name, point in points.items() if "eden" in name}
    assert whole == {"identity eden-1.5": 199.0, "identity eden-2.625": 297.0}
    assert all(points[name].unbiased for name in whole)


def test_other_quantisers_have_points_within_their_budgets():
    vectors = np.random.default_rng(1).normal(size=(1, 3, 700))
    names, kinds = ["identity", "rand-k", "error-feedback-chunked-top-k", "error-feedback-sign"], ["terngrad", "qsgd-4"]
    asked = Sweep(GivenVectors(vectors), [200, 300], names, kinds, seeds=1)
    points = list(asked.points())
    schemes = {
        *DENSE,
        "identity eden-1.5",
        "identity eden-2.625",
        *(f"{name} {kind}" for name in names for kind in kinds),
    }
    assert {point.scheme for point in points} == schemes
    for point in points:
        if point.budget is not None:
            assert point.bytes_per_node <= point.budget
            assert point.bytes_per_node >= point.budget - 4 or point.k == 700
    assert all(point.unbiased == ("feedback" not in point.scheme) for point in points)
    assert asked.frontier(points).complete


def test_the_points_of_a_budget_are_those_of_compare(found):
    names = ["rand-k", "top-k", "rand-k int8"]
    for result in compare(VECTORS, Budget(bytes=76), names, seeds=2).results:
        if result.name == "identity":
            continue
        name = result.scheme if " " in result.scheme else f"{result.scheme} float32"
        [point] = [point for point in found.points if (point.scheme, point.budget) == (name, 76)]
        assert (point.nmse, point.nmse_se, point.bytes_per_node, point.k) == (
            result.nmse,
            result.nmse_se,
            result.bytes_per_node,
            result.k,
        )


def test_a_larger_budget_without_a_larger_k_has_no_point_of_its_own(found):
    budgets = [point.budget for point in found.points if point.scheme == "rand-k int8"]
    assert budgets == [76, 100]  # all 16 values take 82 bytes
    assert [point.k for point in found.points if point.scheme == "rand-k int8"][-1] == 16
    assert [point.budget for point in found.points if point.scheme == "rand-k float32"] == [76, 100, 5000]


def test_answering_zero_has_the_error_of_the_true_mean(found):
    energy = np.mean(np.sum(VECTORS**2, axis=2), axis=1).sum()
    assert found.zero_error == pytest.approx(np.sum(VECTORS.mean(axis=1) ** 2) / energy)
    weights = np.array([1.0, 0.0, 0.0, 0.0])
    assert GivenVectors(VECTORS, weights).zero_error == pytest.approx(1.0)  # the mean is one node's vector


def test_biased_schemes_are_on_the_front_of_all_alone():
    points = [point("rand-k", 100.0, 0.5), point("top-k", 90.0, 0.4, unbiased=False), point("wangni", 120.0, 0.3)]
    found = Frontier(tuple(points), 0.9, 4, 16, 1, 1, (100,))
    assert [each.scheme for each in found.unbiased_front] == ["rand-k", "wangni"]
    assert [each.scheme for each in found.front] == ["top-k", "wangni"]
    flags = {each["scheme"]: (each["on_unbiased_front"], each["on_front"]) for each in found.to_json()["points"]}
    assert flags == {"rand-k": (True, False), "top-k": (False, True), "wangni": (True, True)}


def test_equal_points_on_the_fronts_are_one_entry_the_dense_mean_first():
    dense, same = point("identity float32", 400.0, 1e-9), point("rand-k float32", 400.0, 1e-9)
    early = point("lag float32", 400.0, 1e-9, unbiased=False)
    biased, beaten = point("top-k float32", 100.0, 0.3, unbiased=False), point("wangni int8", 400.0, 0.5)
    found = Frontier((early, dense, same, biased, beaten), 0.9, 4, 16, 1, 1, (100,))
    assert found.marked == ((biased,), (dense, same, early))


def test_what_diverges_or_was_told_the_truth_is_shown_but_on_no_front(found):
    told, lost = point("rand-k-spatial-opt int8", 1.0, 0.1), point("rand-k-temporal-shared", 1.0, 0.1, diverges=True)
    extended = replace(found, points=(*found.points, told, lost))
    assert told.told
    assert extended.front == found.front
    assert extended.unbiased_front == found.unbiased_front
    assert any(each.told for each in found.points)
    assert not any(each.told or each.diverges for each in (*found.front, *found.unbiased_front))


@pytest.mark.parametrize("stop", [0, 3, 9])
def test_an_interrupted_sweep_goes_on_where_it_stopped_and_comes_to_the_same(found, tmp_path, monkeypatch, stop):
    asked = sweep()
    list(itertools.islice(asked.points(KeptPoints(tmp_path, asked.given, 2)), stop))
    runs: list[tuple[int, int]] = []
    again = sweep()
    points = list(again.points(KeptPoints(tmp_path, again.given, 2), progress=lambda *now: runs.append(now)))
    assert again.frontier(points) == found
    total = 2 * len(found.points)
    assert runs[0] == (2 * stop, total)
    assert runs[-1] == (total, total)
    assert len(runs) == 1 + total - 2 * stop  # nothing is played twice


def test_the_estimator_of_another_paper_is_played_at_the_same_bytes_and_on_no_front(tmp_path):
    alike = np.tile(RNG.normal(size=16), (1, 4, 1))
    asked = Sweep(GivenVectors(alike), [100, 140], ["rand-k", PEERS[0]], ["float32"], seeds=2)
    runs: list[tuple[int, int]] = []
    kept = KeptPoints(tmp_path, asked.given, 2)
    points = list(asked.points(kept, progress=lambda *now: runs.append(now)))
    found = asked.frontier(points)
    peers = [each for each in found.points if each.peer]
    assert [(each.scheme, each.budget, each.k, each.bytes_per_node) for each in peers] == [
        ("rand-proj-spatial-avg float32", 100, 9, 100.0),
        ("rand-proj-spatial-avg float32", 140, 16, 128.0),
    ]
    own = {each.budget: each.nmse for each in found.points if each.scheme == "rand-k float32"}
    assert 0.0 < peers[0].nmse < own[100]  # what the nodes have in common is used
    assert peers[1].nmse < 1e-12
    assert found.complete
    assert not any(each.peer for each in (*found.front, *found.unbiased_front))
    assert [each["peer"] for each in found.to_json()["points"]] == [each.peer for each in found.points]
    total = 2 * len(points)
    assert runs == [(done, total) for done in range(total + 1)]
    runs.clear()
    assert asked.frontier(list(asked.points(kept, progress=lambda *now: runs.append(now)))) == found
    assert runs == [(total, total)]


def test_where_the_estimator_of_another_paper_takes_too_long_the_reason_is_said(monkeypatch):
    monkeypatch.setattr("sparsemean.lab.frontier.peer_points.MOST", 100)
    asked = Sweep(GivenVectors(VECTORS), [100], ["rand-k", PEERS[0]], ["float32"], seeds=1)
    found = asked.frontier(list(asked.points()))
    assert found.complete
    assert not any(each.peer for each in found.points)
    assert "would decode 128 values" in found.not_played
    assert sweep().frontier([]).not_played == ""  # nobody asked for it


def test_budgets_may_be_added_to_a_kept_sweep(tmp_path):
    small, large = sweep(budgets=[76], seeds=1), sweep(budgets=[76, 100], seeds=1)
    kept = KeptPoints(tmp_path, small.given, 1)
    first = list(small.points(kept))
    assert {repr(each) for each in large.points(kept)} > {repr(each) for each in first}


@pytest.mark.parametrize("damage", ["", "{}", '{"rows": [{"scheme": 1}]}'])
def test_a_damaged_point_is_played_again(found, tmp_path, damage):
    asked = sweep()
    kept = KeptPoints(tmp_path, asked.given, 2)
    whole = found.points[0]
    kept.write(whole)
    assert kept.read(whole.scheme, whole.budget) == whole
    [file] = [path for path in tmp_path.iterdir() if path.name != "frontier.json"]
    file.write_text(damage)
    assert kept.read(whole.scheme, whole.budget) is None


def test_a_folder_for_something_else_is_refused_with_the_remedy(tmp_path):
    given = GivenVectors(VECTORS)
    KeptPoints(tmp_path / "mine", given, 2)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidInput, match=r"other vectors.*name another"):
        KeptPoints(tmp_path / "mine", GivenVectors(VECTORS[:1]), 2)
    with pytest.raises(InvalidInput, match="other vectors"):
        KeptPoints(tmp_path / "mine", GivenVectors(VECTORS, np.arange(4.0)), 2)
    with pytest.raises(InvalidInput, match="2 seeds"):
        KeptPoints(tmp_path / "mine", given, 3)
    with pytest.raises(InvalidInput, match="something else"):
        KeptPoints(tmp_path, given, 2)
    with pytest.raises(InvalidInput, match="cannot be a folder"):
        KeptPoints(Path(tmp_path / "mine" / "frontier.json"), given, 2)
    assert sorted(tmp_path.rglob("*")) == before


def test_default_budgets_go_from_a_few_values_to_the_dense_mean():
    for dim in (1, 3, 4, 5, 89, 10**6):
        budgets = default_budgets(dim)
        assert (budgets[0], budgets[-1]) == (64 + 4 * min(4, dim), 64 + 4 * dim)
        assert list(budgets) == sorted(set(budgets))
        assert len(budgets) <= 6


def test_a_budget_that_is_too_small_for_every_scheme_is_refused():
    with pytest.raises(InvalidInput, match="60 bytes is too small"):
        list(sweep(budgets=[60, 100]).points())
