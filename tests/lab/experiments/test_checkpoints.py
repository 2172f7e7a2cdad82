"""Finished settings on disk: kept as they were measured, and missing where they are damaged or outdated."""

from __future__ import annotations

import json
import math

import pytest

from sparsemean.lab.experiments import Setting
from sparsemean.lab.experiments.checkpoints import Checkpoints

SETTING = Setting("f", "quadratic", "normal", "rand-k", 0.1)


def test_checkpoints_keep_what_was_measured(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.read(SETTING) is None
    rows = [{"mse": math.inf, "objective": 0.1, "k": 3, "error": None, "statement": "x"}]
    checkpoints.write(SETTING, rows)
    assert checkpoints.read(SETTING) == rows
    json.loads(checkpoints.path(SETTING).read_text(), parse_constant=pytest.fail)  # no Infinity: plain JSON


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"rows": [], "version": "0.0.0"}', "{"])
def test_damaged_and_outdated_checkpoints_count_as_missing(tmp_path, damage):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(SETTING, [])
    checkpoints.path(SETTING).write_text(damage)
    assert checkpoints.read(SETTING) is None
