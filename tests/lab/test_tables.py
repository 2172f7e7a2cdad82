"""Tables as files: the same bytes for the same rows, nothing half written, and files as spreadsheets write them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.tables import FIRST, TableRow, read_table, write_table, write_whole

ROWS: list[TableRow] = [
    {"figure": "f", "seed": 0, "mse": 1 / 3, "exact": None, "rate": 0.1, "version": "1"},
    {"figure": "f", "seed": 1, "mse": math.inf, "exact": math.nan, "k": 5, "version": "1"},
]


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


def test_files_from_a_spreadsheet_are_read(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeffscheme, mse\r\n"rand-k, mine",0.5\r\n\r\nx,\r\n'.encode())
    table = read_table(path)
    assert [row["scheme"] for row in table] == ["rand-k, mine", "x"]
    assert float(table[0]["mse"]) == 0.5


@pytest.mark.parametrize("content", ["", "scheme,mse\n"])
def test_an_empty_file_is_an_empty_table(tmp_path: Path, content: str):
    path = tmp_path / "a.csv"
    path.write_text(content)
    assert len(read_table(path)) == 0


def test_a_broken_line_is_named(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("scheme,mse\nrand-k,1\nrand-k,1,2\n")
    with pytest.raises(InvalidInput, match="line 3: 3 cells under 2 names"):
        read_table(path)
