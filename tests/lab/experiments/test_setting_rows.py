"""What a setting gives: rows that say whose they are, and an error that names it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.lab.experiments import Setting, SettingFailed, run_setting
from sparsemean.lab.experiments.measures.ratio_grid import sign_flips

QUADRATIC = Setting("quadratic", "quadratic", "normal", "rand-k", 0.1, 0, 3, "", 4, (("dim", 30), ("rate", 0.1)))
DIGITS = Setting("power-iteration", "power-iteration", "digits", "rand-k", 0.1, 1, 2, "iid", 10)


def test_rows_are_tidy():
    rows = run_setting(QUADRATIC)
    assert [row["round"] for row in rows] == [0, 1, 2]
    for row in rows:
        assert (row["figure"], row["scheme"], row["share"], row["nodes"]) == ("quadratic", "rand-k", 0.1, 4)
        assert (row["k"], row["rate"], row["version"]) == (3, 0.1, sm.__version__)
        assert row["mse"] is not None
        assert row["bound"] is not None


def test_same_setting_same_numbers_and_another_seed_others():
    assert run_setting(QUADRATIC) == run_setting(QUADRATIC)
    assert run_setting(replace(QUADRATIC, seed=1))[0]["mse"] != run_setting(QUADRATIC)[0]["mse"]


def test_exact_mean_has_no_error():
    rows = run_setting(replace(QUADRATIC, scheme="exact", share=None))
    assert [row["mse"] for row in rows] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("split", ["iid", "non-iid"])
@pytest.mark.parametrize("task", ["power-iteration", "kmeans", "logistic"])
def test_tasks_on_images(task, split):
    rows = run_setting(replace(DIGITS, task=task, split=split))
    assert len(rows) == 2
    assert all(math.isfinite(float(row["objective"] or 0)) for row in rows)
    assert ("test_accuracy" in rows[0]) == (task == "logistic")


def test_diverging_runs_are_no_failure():
    setting = replace(QUADRATIC, scheme="rand-k-temporal-shared", share=0.03, rounds=400)
    assert float(run_setting(setting)[-1]["mse"] or 0) > 1e6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "magic"}, "no task is named 'magic'"),
        ({"scheme": "rand-q"}, "no scheme named 'rand-q'"),
        ({"share": None}, "needs a share"),
        ({"task": "kmeans", "data": "weather"}, "weather holds no images"),
        ({"task": "stream", "data": "digits"}, "digits has no rounds of its own"),
        ({"task": "kmeans", "data": "digits", "split": "odd"}, "a split is iid, non-iid or dirichlet"),
        ({"options": (("measure", "luck"),)}, "KeyError: 'luck'"),
    ],
)
def test_failures_name_the_setting(change, message):
    setting = replace(QUADRATIC, **change)
    with pytest.raises(SettingFailed, match=message) as failure:
        run_setting(setting)
    assert str(failure.value).startswith(setting.label)


@pytest.mark.parametrize("scheme", ["wangni", "induced"])
def test_equal_bytes(scheme):
    plain = run_setting(DIGITS)[0]
    fitted = run_setting(replace(DIGITS, scheme=scheme, options=(("budget", "bytes"),)))[0]
    assert 0.85 * float(plain["bytes_per_node"] or 0) < float(fitted["bytes_per_node"] or 0)
    assert float(fitted["bytes_per_node"] or 0) <= 1.05 * float(plain["bytes_per_node"] or 0)


def test_first_round_estimates_the_ratio():
    (row,) = run_setting(replace(DIGITS, options=(("measure", "first-round"),)))
    off = float(row["ratio_estimated"] or 0) - float(row["ratio"] or 0)
    assert abs(off) < 4 * float(row["ratio_estimated_se"] or 0)


@pytest.mark.parametrize(
    ("scheme", "decoder"),
    [("rand-k", "one"), ("rand-k-spatial-max", "max"), ("rand-k-spatial-avg", "avg"), ("rand-k-spatial-opt", None)],
)
def test_ratio_grid_is_what_the_server_gives(scheme, decoder):
    options = (("measure", "ratio-grid"), ("trials", 5), ("dim", 20), ("step", 20))
    setting = Setting("mse-vs-ratio", "sign-flips", "synthetic", scheme, 0.3, 3, 1, "", 4, options)
    rows = run_setting(setting)
    for row, (_, vectors) in zip(rows, sign_flips(4, 20, 20), strict=True):
        ratio = float(row["ratio"] or 0)
        run = sm.Run(sm.Scheme(sm.RandK(0.3), sm.Spatial(ratio if decoder is None else decoder)), 20, 3)
        played = sm.simulate(run, np.broadcast_to(vectors, (5, 4, 20)))
        errors = [np.sum((estimate.mean - vectors.mean(axis=0)) ** 2) for estimate in played]
        assert row["mse"] == pytest.approx(np.mean(errors), rel=1e-5, abs=1e-12)
    assert [float(row["ratio"] or 0) for row in rows] == pytest.approx([-1.0, 1.0, 3.0])
