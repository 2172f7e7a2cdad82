"""Verdicts are computed: whoever edits a table changes them."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from sparsemean.lab.experiments import CLAIMS, judge_all
from sparsemean.lab.experiments.claims.check import Check, of_factors, of_number, of_values
from sparsemean.lab.experiments.claims.claim import COLUMNS, verdict
from sparsemean.lab.experiments.claims.evidence import Tables, compared, late
from sparsemean.lab.tables import read_table

Rows = list[dict[str, Any]]
LEVELS = {"rand-k": 1.0, "wangni": 0.8, "induced": 2.0, "rand-k-spatial-avg": 0.05, "rand-k-temporal": 0.02}


def write(folder: Path, figure: str, rows: Rows) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row))
    with (folder / f"{figure}.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names, restval="")
        writer.writeheader()
        writer.writerows(rows)


def power_iteration(levels: dict[str, float] = LEVELS, spread: float = 0.01) -> Rows:
    return [
        {
            "figure": "power-iteration",
            "split": "iid",
            "share": 0.1,
            "scheme": scheme,
            "seed": seed,
            "round": round,
            "objective": level * (1 + spread * seed),
            "mse": level * (1 + spread * seed),
        }
        for scheme, level in levels.items()
        for seed in range(3)
        for round in range(8)
    ]


def judged(folder: Path, claim: str) -> dict[str, str]:
    return next(row for row in read_table(judge_all(folder)) if row["name"] == claim)


def test_claims_are_told_apart_and_in_full_sentences():
    names = [claim.name for claim in CLAIMS]
    assert len(set(names)) == len(names) > 60
    assert all(claim.sentence.endswith(".") and claim.place for claim in CLAIMS)


def test_without_tables_nothing_is_run(tmp_path):
    rows = read_table(judge_all(tmp_path))
    assert tuple(rows[0]) == COLUMNS
    assert {row["verdict"] for row in rows} == {"not run"}
    assert len(rows) == len(CLAIMS)


def test_a_verdict_flips_with_the_table(tmp_path):
    write(tmp_path, "power-iteration", power_iteration())
    row = judged(tmp_path, "power-iteration")
    assert (row["verdict"], row["holds"], row["checks"]) == ("reproduced", "12", "12")
    assert row["finding"].startswith("12 of 12 checks hold. Weakest: ")
    assert row["where"] == "power-iteration"
    assert row["weakest"] == "power-iteration iid k/d=0.1: objective of rand-k-spatial-avg over wangni"
    assert float(row["value"]) == pytest.approx(0.05 / 0.8)

    write(tmp_path, "power-iteration", power_iteration({**LEVELS, "rand-k-temporal": 0.9}))
    row = judged(tmp_path, "power-iteration")
    assert (row["verdict"], row["holds"]) == ("partly", "10")
    assert "objective of rand-k-temporal over wangni: 1.1" in row["evidence"]

    worse = {**LEVELS, "rand-k-temporal": 9.0, "rand-k-spatial-avg": math.inf}
    write(tmp_path, "power-iteration", power_iteration(worse))
    assert judged(tmp_path, "power-iteration")["verdict"] == "not reproduced"


def test_a_difference_within_the_noise_is_none(tmp_path):
    rows = power_iteration({**LEVELS, "rand-k-temporal": 0.7})
    for row in rows:
        if row["scheme"] == "rand-k-temporal":
            row["mse"] = row["objective"] = 0.7 * (0.2, 1.0, 3.0)[row["seed"]]
    write(tmp_path, "power-iteration", rows)
    row = judged(tmp_path, "power-iteration")
    assert row["verdict"] == "partly"
    assert "unclear" in row["evidence"]


def test_a_claim_that_needs_a_table_which_is_missing_is_not_run(tmp_path):
    write(tmp_path, "power-iteration", power_iteration())
    row = judged(tmp_path, "outperform")
    assert row["verdict"] == "not run"
    assert row["finding"] == "Tables still to be made: kmeans, logistic."


@pytest.mark.parametrize(
    ("claim", "statement", "measured", "verdicts"),
    [
        ("midpoint", "average-midpoint", (5.0, 4.0), ("reproduced", "not reproduced")),
        ("best-on-average", "average-best", (5.0, 4.0), ("reproduced", "not reproduced")),
        ("optimum", "optimum-half", (0.0, 0.25), ("reproduced", "not reproduced")),
        ("lemma-2-literal", "lemma-2-literal", (1.01, 0.84), ("reproduced", "not reproduced")),
    ],
)
def test_slips_of_the_paper_are_judged_by_the_theory_table(tmp_path, claim, statement, measured, verdicts):
    for value, expected in zip(measured, verdicts, strict=True):
        line = {"setting": "", "measured": value, "se": 0.01 if "lemma" in claim else "", "z": "", "passed": "yes"}
        write(tmp_path, "theory", [{"statement": statement, **line}])
        assert judged(tmp_path, claim)["verdict"] == expected


@pytest.mark.parametrize("claim", ["lemma-1", "theorem-3", "ratio-range"])
def test_theory_claims_flip(tmp_path, claim):
    statement = "theorem-2-range" if claim == "ratio-range" else claim
    row = {"statement": statement, "setting": "", "measured": 1, "se": 0.1, "z": 0.5, "passed": "yes"}
    write(tmp_path, "theory", [row])
    assert judged(tmp_path, claim)["verdict"] == "reproduced"
    write(tmp_path, "theory", [{**row, "z": 7.5, "passed": "no"}])
    assert judged(tmp_path, claim)["verdict"] == "not reproduced"


def test_the_server_knows_the_ratio_or_not(tmp_path):
    row = {"data": "digits", "split": "iid", "scheme": "rand-k", "round": 0, "ratio": 40.0}
    for estimate, expected in ((41.0, "not reproduced"), (10.0, "reproduced")):
        write(tmp_path, "ratio-first-round", [{**row, "seed": s, "ratio_estimated": estimate + s} for s in range(3)])
        assert judged(tmp_path, "unknowable")["verdict"] == expected


def test_divergence_speaks_against_the_shared_memory(tmp_path):
    levels = {"rand-k": 1.0, "rand-k-temporal": 0.5, "rand-k-temporal-shared": 0.4}
    theory = {"statement": "feedback", "setting": "", "measured": 0.09, "se": 0.001, "z": 0.1, "passed": "yes"}
    write(tmp_path, "theory", [theory])
    write(tmp_path, "logistic", power_iteration(levels))
    assert judged(tmp_path, "shared-safe")["verdict"] == "reproduced"
    write(tmp_path, "logistic", power_iteration({**levels, "rand-k-temporal-shared": math.inf}))
    assert judged(tmp_path, "shared-safe")["verdict"] == "partly"
    write(tmp_path, "theory", [{**theory, "measured": 9.9}])
    assert judged(tmp_path, "shared-safe")["verdict"] == "not reproduced"


def test_bands_and_relations():
    assert of_values("x", [1.0, 1.2], "<", 2.0).holds is True
    assert of_values("x", [1.0, 1.2], ">", 2.0).holds is False
    assert of_values("x", [1.0, 3.0], "<", 2.0).holds is None
    assert of_values("x", [1.0, 3.0], "=", 2.0).holds is True
    assert of_values("x", [1.0, 3.0], "not <", 2.0).holds is True
    assert of_values("x", [1.0, 1.1], "not <", 2.0).holds is False
    assert of_factors("x", [math.inf, 2.0], "<", 1.0).holds is False
    assert of_number("x", 0.5, "<", 1.0).holds is True


def test_verdicts():
    yes, no, unclear = Check("", 0, 0, 0, "<", 1), Check("", 2, 2, 2, "<", 1), Check("", 1, 0, 2, "<", 1)
    assert verdict([yes, yes]) == "reproduced"
    assert verdict([yes, no]) == verdict([yes, unclear]) == "partly"
    assert verdict([no]) == verdict([unclear]) == "not reproduced"


def test_comparisons_are_paired_by_seed(tmp_path):
    rows = power_iteration({"a": 1.0, "b": 2.0}, spread=5.0)
    write(tmp_path, "power-iteration", [row for row in rows if (row["scheme"], row["seed"]) != ("b", 2)])
    (check,) = compared(Tables(tmp_path), "power-iteration", "mse", ["a"], ["b"], [{"split": "iid"}])
    assert (check.value, check.low, check.high) == pytest.approx((0.5, 0.5, 0.5))


def test_late_is_the_last_quarter():
    assert late([5.0]) == 5.0
    assert late([0.0] * 6 + [1.0, 2.0]) == 1.5
