"""play: every column of a trace is what it says, through the real bytes."""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName
from sparsemean._types import Doubles
from sparsemean.evaluation import truth
from sparsemean.lab.tasks import KMeans, LogisticRegression, PowerIteration, Quadratic, StreamTask, Task
from sparsemean.lab.trace import Trace, play
from sparsemean.payload.blocks import Blocks

RNG = np.random.default_rng(7)
ROWS = RNG.normal(size=(6, 20, 8)) + RNG.normal(size=8)
LABELS = RNG.integers(3, size=(6, 20))
TASKS: dict[str, Task[Any]] = {
    "power iteration": PowerIteration(ROWS),
    "k-means": KMeans([part[: 5 + i] for i, part in enumerate(ROWS)], clusters=4),
    "logistic": LogisticRegression(ROWS, LABELS, test=(ROWS[0], LABELS[0]), batch=7),
    "quadratic": Quadratic.normal(nodes=6, dim=10),
    "stream": StreamTask(RNG.normal(size=(9, 6, 5))),
}


class Blocky(Task[int]):
    """Fixed vectors that drift, weights per block, one block nobody has a say in."""

    def __init__(self, table: Doubles, given: Doubles) -> None:
        super().__init__(len(table), table.shape[1], blocks=(3, 2, 4))
        self.table, self.given = table, given

    def start(self, seed: int) -> int:
        return 0

    def vectors(self, state: int, round: int) -> Doubles:
        return self.table * 1.1**round

    def weights(self, state: int) -> Doubles:
        return self.given

    def step(self, state: int, mean: Doubles) -> int:
        return state + 1

    def objective(self, state: int) -> float:
        return float(state)


BLOCKY = Blocky(
    RNG.normal(size=(4, 9)) + 1, np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 0.0], [0.5, 0.0, 1.0], [0.0, 0.0, 1.0]])
)


def columns(trace: Trace) -> dict[str, Doubles]:
    own = {f.name: getattr(trace, f.name) for f in fields(trace) if f.name not in ("start", "metrics")}
    return {**own, **trace.metrics}


@pytest.mark.parametrize("name", TASKS)
def test_identity_is_the_exact_mean_to_the_rounding_of_its_values(name: str) -> None:
    exact, wired = (play(TASKS[name], scheme, 8, seed=3) for scheme in (None, sm.named("identity")))
    assert exact.start == wired.start
    np.testing.assert_allclose(wired.objective, exact.objective, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(wired.ratio, exact.ratio, rtol=1e-4, atol=1e-4)
    for metric, values in exact.metrics.items():
        np.testing.assert_allclose(wired.metrics[metric], values, atol=0.051)
    assert np.all(exact.mse == 0)
    assert np.all(wired.nmse < 1e-12)
    assert np.all(wired.exact == 0)
    assert np.isnan(exact.bytes_per_node).all()
    np.testing.assert_array_equal(wired.bytes_per_node, sm.Run(sm.named("identity"), TASKS[name].dim).payload_bytes)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("scheme", ["rand-k-spatial-avg", "rand-k-temporal", "diana", "top-k"])
def test_the_same_seed_gives_the_same_trace_bit_for_bit(name: SchemeName, scheme: SchemeName) -> None:
    first, again, other = (columns(play(TASKS[name], sm.named(scheme, k=0.3), 5, seed=seed)) for seed in (1, 1, 2))
    for column, values in first.items():
        np.testing.assert_array_equal(values, again[column])
    if scheme != "top-k" or name not in ("quadratic", "stream"):
        assert not np.array_equal(first["mse"], other["mse"])


def test_the_truth_about_weighted_blocks_is_what_a_plain_loop_finds() -> None:
    found = truth(BLOCKY.table, BLOCKY.given, Blocks((3, 2, 4)))
    mean, energy, r1, r2 = np.zeros(9), 0.0, [], []
    for b, columns_ in enumerate((slice(0, 3), slice(3, 5), slice(5, 9))):
        part = [(w, x) for w, x in zip(BLOCKY.given[:, b], BLOCKY.table[:, columns_], strict=True) if w > 0]
        total = sum(w for w, _ in part)
        y = [len(part) * w * x / total for w, x in part]
        mean[columns_] = sum(w * x for w, x in part) / total if part else 0
        energy += sum(w * (x @ x) for w, x in part) / total if part else 0
        correlation = sm.theory.correlation(y) if part else (0.0, 0.0)
        r1.append(correlation[0])
        r2.append(correlation[1])
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.r1, r1)
    np.testing.assert_allclose(found.r2, r2, atol=1e-12)
    assert found.nodes.tolist() == [3, 0, 3]
    assert found.energy == pytest.approx(energy)
    assert found.ratio == pytest.approx(sum(r2) / sum(r1))


@pytest.mark.parametrize(
    "scheme",
    [
        sm.named("rand-k-spatial-avg", k=4),
        sm.Scheme(sm.RandK(4), sm.Spatial("max"), memory=sm.PerNode()),
        sm.Scheme(sm.RandK(4, shared=True), memory=sm.PerNode()),
        sm.named("diana", k=4),
    ],
    ids=lambda scheme: repr((scheme.encoder, scheme.decoder, scheme.memory)),
)
def test_on_average_the_exact_error_is_the_squared_error_and_the_servers_estimate_is_it_too(scheme: sm.Scheme) -> None:
    traces = [play(BLOCKY, scheme, 2, seed=seed) for seed in range(80)]
    for column in ("mse", "error"):
        off = np.array([getattr(trace, column) - trace.exact for trace in traces])
        if column == "error" and scheme.encoder.facts.uniform is False:
            assert np.isnan(off).all()
            continue
        assert np.all(np.abs(off.mean(axis=0)) < 4.5 * off.std(axis=0) / math.sqrt(len(off)))


def test_there_is_no_exact_error_where_no_formula_holds() -> None:
    for name in ("top-k", "wangni", "induced", "error-feedback-rand-k"):
        trace = play(TASKS["stream"], sm.named(name, k=2), 2)
        assert np.isnan(trace.exact).all()
        assert np.isnan(trace.error).all()


def test_the_ratio_and_nmse_are_those_of_the_vectors() -> None:
    vectors = RNG.normal(size=(2, 6, 5)) + 1
    trace = play(StreamTask(vectors), sm.named("rand-k", k=2), 2)
    for t, x in enumerate(vectors):
        r1, r2 = sm.theory.correlation(x)
        assert trace.ratio[t] == pytest.approx(r2 / r1)
        assert trace.nmse[t] == pytest.approx(trace.mse[t] / np.mean(np.sum(x**2, axis=1)))


def test_vectors_of_zeros_have_ratio_0_and_nmse_0_or_without_bound() -> None:
    trace = play(StreamTask(np.array([[[1.0, 1.0]], [[0.0, 0.0]]])), sm.named("rand-k-temporal", k=1), 2)
    assert trace.ratio[1] == 0
    assert trace.nmse[1] == math.inf
    assert play(StreamTask(np.zeros((1, 2, 3))), sm.named("rand-k", k=1), 1).nmse[0] == 0


def test_rows_are_plain_and_say_none_for_what_is_not_known() -> None:
    rows = play(TASKS["logistic"], sm.named("top-k", k=3), 2).rows()
    assert [row["round"] for row in rows] == [0, 1]
    assert {"objective", "mse", "nmse", "exact", "error", "error_se", "ratio", "bytes_per_node"} < set(rows[0])
    assert rows[0]["exact"] is None
    assert 0 <= (rows[1]["test_accuracy"] or 0) <= 1
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


def test_a_run_that_grows_beyond_all_bounds_ends_in_infinity() -> None:
    trace = play(Quadratic.normal(nodes=3, dim=4, rate=1e4), sm.named("rand-k", k=2), 12)
    grew = np.isfinite(trace.objective)
    assert 3 < grew.sum() < 12
    assert np.all(np.diff(trace.objective[grew]) > 0)
    lost = {name: values[~grew] for name, values in columns(trace).items()}
    assert all(np.all(lost[name] == math.inf) for name in ("objective", "mse", "nmse"))
    assert np.isnan(lost["bytes_per_node"]).all()
    assert len(trace.rows()) == 12


def test_a_shared_memory_that_diverges_warns_and_is_followed_to_the_end() -> None:
    with pytest.warns(sm.DivergenceWarning):
        trace = play(Quadratic.normal(nodes=2, dim=50), sm.named("rand-k-temporal-shared", k=1), 40)
    assert trace.objective[-1] > 1e6 * trace.start


def test_missing_is_handed_to_the_server() -> None:
    scheme = sm.named("rand-k-temporal", k=2)
    dropped, carried = (columns(play(TASKS["stream"], scheme, 4, missing=way)) for way in ("drop", "carry"))
    np.testing.assert_allclose(carried["mse"], dropped["mse"])  # all nodes come in every round
    with pytest.raises(sm.InvalidInput, match="missing"):
        play(TASKS["stream"], scheme, 4, missing="guess")  # type: ignore[arg-type]


def test_no_rounds_give_an_empty_trace_and_fewer_are_refused() -> None:
    trace = play(TASKS["logistic"], sm.named("rand-k", k=2), 0)
    assert trace.rows() == []
    assert trace.metrics["test_accuracy"].shape == (0,)
    with pytest.raises(sm.InvalidInput, match="rounds"):
        play(TASKS["logistic"], None, -1)


@pytest.mark.parametrize(("k", "bound"), [(2, True), (5, False)])
def test_upper_bounds_of_the_server_are_told_from_estimates(k: int, bound: bool):
    """Six nodes that send two of 12 coordinates each never send the same one."""
    task = StreamTask(np.broadcast_to(RNG.normal(size=12), (3, 6, 12)))
    trace = play(task, sm.named("rand-k-balanced", k), 3)
    assert trace.error_is_bound.tolist() == [float(bound)] * 3
    rows = trace.rows()
    assert all(row.get("error_is_bound") == (1.0 if bound else None) for row in rows)
    assert all(("error_is_bound" in row) == bound for row in rows)
    if bound:
        assert np.all(trace.error > 0.9 * trace.exact)
        assert np.all(trace.mse < 1e-9)
