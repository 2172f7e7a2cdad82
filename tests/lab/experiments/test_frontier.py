"""Error against bytes in a reproduction: its measures measure what they say, and its claims follow the tables."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsemean import theory
from sparsemean.lab.experiments import judge_all
from sparsemean.lab.experiments.catalogue import QUICK
from sparsemean.lab.experiments.catalogue.frontier import frontier_gaussian, frontier_network, whole_bytes
from sparsemean.lab.experiments.measures import MEASURES
from sparsemean.lab.experiments.prepare import task_of
from sparsemean.lab.tables import read_table
from sparsemean.lab.tasks import FederatedNetwork

Rows = list[dict[str, Any]]


def verdict(folder: Path, figure: str, rows: Rows, claim: str) -> str:
    with (folder / f"{figure}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), restval="")
        writer.writeheader()
        writer.writerows(rows)
    return next(row["verdict"] for row in read_table(judge_all(folder)) if row["name"] == claim)


def power(scheme: str, error: float, data: str = "fashion-mnist") -> Rows:
    place = {"data": data, "split": "iid", "share": "", "scheme": scheme, "bytes": 166}
    return [{**place, "seed": seed, "round": round, "mse": error} for seed in range(3) for round in range(41)]


@pytest.mark.parametrize(
    ("gain", "data", "expected"),
    [(1200, "fashion-mnist", "reproduced"), (900, "fashion-mnist", "partly"), (900, "digits", "needs the full data")],
)
def test_the_claim_of_nodes_that_keep_a_vector_follows_the_table(tmp_path, gain: float, data: str, expected: str):
    kept = [*power("difference eden", 6e-3 / gain, data), *power("auto-stateful", 6e-6 / 2, data)]
    rows = [*power("identity eden", 6e-3, data), *kept]
    assert verdict(tmp_path, "frontier-nodes", rows, "nodes-stateful") == expected


def network(scheme: str, error: float) -> Rows:
    """An error of 1 in the first round, which does not count."""
    return [
        {"data": "digits", "scheme": scheme, "rate": rate, "seed": seed, "round": round, "nmse": error if round else 1}
        for rate in (0.3, 0.1)
        for seed in range(3)
        for round in range(4)
    ]


def test_the_claims_about_the_network_tell_schemes_that_remember_from_others(tmp_path):
    rows = [*network("auto", 0.05), *network("rand-k int4", 0.2), *network("rand-k-hybrid int4", 0.1)]
    assert verdict(tmp_path, "frontier-network", rows, "auto-network") == "reproduced"
    assert verdict(tmp_path, "frontier-network", rows, "auto-network-memory") == "contradicted"


def test_whole_gaussian_vectors_have_the_error_of_the_formula():
    one_bit = whole_bytes(4096, "eden-1")
    settings = [
        s for s in frontier_gaussian(QUICK, 0) if s.scheme == "identity eden" and s.option("bytes", 0) == one_bit
    ]
    (row,) = MEASURES["within-mean"](settings[0], None)
    assert row["nmse"] == pytest.approx(theory.eden_error(1) / 10, rel=0.03)
    assert row["bits"] == 8 * (one_bit - 64) / 4096
    assert row["bytes_per_node"] == one_bit


def test_vectors_of_a_stream_are_as_alike_as_wanted_and_new_in_every_round():
    setting = next(s for s in frontier_gaussian(QUICK, 0) if s.option("correlation", 0) == 0.99)
    task = task_of(setting)
    first, second = (task.vectors(state, 0) for state in (task.start(0), task.step(task.start(0), np.zeros(4096))))
    r1, r2 = theory.correlation(np.asarray(first, np.float64))
    assert r2 / r1 / 9 == pytest.approx(0.99, abs=0.003)
    assert np.array_equal(first, second)  # of the same round
    assert abs(float(np.sum(first[0] * task.vectors(task.start(0), 1)[0]))) < 5 * 64  # about 0, not 4,096


def test_the_network_has_as_many_parameters_as_the_page_says_and_every_row_is_dealt():
    setting = replace(frontier_network(QUICK, 0)[0], rounds=2)
    task = task_of(setting)
    assert isinstance(task, FederatedNetwork)
    assert task.dim == 64 * 300 + 300 + 300 * 10 + 10 == 22_510
    weights = task.weights(task.start(0))
    assert weights is not None
    assert (len(weights), weights.sum()) == (8, 1437)
    first, second = MEASURES["within"](setting, None)
    assert float(first["bytes_per_node"] or 0) == pytest.approx(4566, abs=8)
    assert {first["round"], second["round"]} == {0, 1}
