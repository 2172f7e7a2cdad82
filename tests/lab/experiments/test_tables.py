"""Tables and parts: the same bytes for the same rows, and nothing half written."""

from __future__ import annotations

import json
import math

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.experiments import Setting
from sparsemean.lab.experiments.parts import Parts
from sparsemean.lab.experiments.setting import Row
from sparsemean.lab.experiments.tables import FIRST, read_table, write_table, write_whole

ROWS: list[Row] = [
    {"figure": "f", "seed": 0, "mse": 1 / 3, "exact": None, "rate": 0.1, "version": "1"},
    {"figure": "f", "seed": 1, "mse": math.inf, "exact": math.nan, "k": 5, "version": "1"},
]
SETTING = Setting("f", "quadratic", "normal", "rand-k", 0.1)


def test_columns_in_order_and_numbers_with_all_digits(tmp_path):
    path = tmp_path / "t.csv"
    write_table(path, ROWS)
    lines = path.read_bytes().decode().split("\n")
    assert lines[0] == ",".join([*FIRST, "k", "rate", "version"])
    assert lines[1] == "f,,,,,,,0,,,0.3333333333333333,,,,,,,,0.1,1"
    assert lines[2] == "f,,,,,,,1,,,inf,,,,,,,5,,1"
    assert float(read_table(path)[0]["mse"]) == 1 / 3


def test_ragged_table_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1\n")
    with pytest.raises(InvalidInput, match="more or fewer cells"):
        read_table(path)


def test_failed_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    write_whole(path, "old")
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "new")
    assert [file.name for file in tmp_path.iterdir()] == ["t.csv"]
    assert path.read_text() == "old"


def test_parts_keep_what_was_measured(tmp_path):
    parts = Parts(tmp_path)
    assert parts.read(SETTING) is None
    rows = [{"mse": math.inf, "objective": 0.1, "k": 3, "error": None, "statement": "x"}]
    parts.write(SETTING, rows)
    assert parts.read(SETTING) == rows
    json.loads(parts.path(SETTING).read_text(), parse_constant=pytest.fail)  # no Infinity: plain JSON


@pytest.mark.parametrize("damage", ["", "{}", "[1]", '{"rows": [], "version": "0.0.0"}', "{"])
def test_damaged_and_outdated_parts_count_as_missing(tmp_path, damage):
    parts = Parts(tmp_path)
    parts.write(SETTING, [])
    parts.path(SETTING).write_text(damage)
    assert parts.read(SETTING) is None
