"""Files as spreadsheets and pandas write them, and what a reader is told that the file does not say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import Images, Reading, Stream, load

NAN = np.nan


def written(folder: Path, text: str | bytes, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(*given, **told) -> Stream:
    stream = load(*given, **told)
    assert not isinstance(stream, Images)
    return stream


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("\ufeffx;y\r\n1,5;-2\r\n0,25;3e2\r\n", "commas within cells were read as decimal marks"),
        ("sep=;\r\nx;y\r\n1,5;-2\r\n0,25;3e2\r\n", "commas within cells were read as decimal marks"),
        ('"x","y"\n"1,5","-2"\n"0,250","300"\n', "commas within cells were read as decimal marks"),
        ("x\ty\n1.5\t-2\n0.25\t3e2\n", ""),
        ("x|y\n1.5|-2\n0.25|3e2\n", ""),
        ("1.5 -2 \n 0.25  3e2\n", ""),
        ("x\ty\n1.5\t-2\n0.25\t3e2\n".encode("utf-16"), ""),
    ],
)
def test_separators_and_decimal_marks_are_told_by_the_file(tmp_path, text, note) -> None:
    stream = read(written(tmp_path, text))
    assert stream.vectors.tolist() == [[[1.5, -2], [0.25, 300]]]
    assert stream.note == note


def test_a_comma_that_may_be_either_is_read_as_told(tmp_path) -> None:
    path = written(tmp_path, "x;y\n1,234;5\n6,789;0\n")
    with pytest.raises(InvalidInput, match="may be a decimal mark or separate thousands; say --decimal ,"):
        read(path)
    assert read(path, decimal=",").vectors[0, 0].tolist() == [1.234, 5]


TABLE = "day,station,x,y,remark\n2024-01-02,b,1,2,ok\n2024-01-01,b,3,4,\n2024-01-02,a,5,6,\n2024-01-01,a,7,8,\n"


def test_columns_are_named_by_the_reader_and_dates_are_rounds(tmp_path) -> None:
    path = written(tmp_path, TABLE)
    stream = read(path, node="station", columns=["x", "Y"])
    assert stream.nodes == ("b", "a")
    assert stream.vectors.tolist() == [[[3, 4], [7, 8]], [[1, 2], [5, 6]]]
    by_number = read(path, node="2", round="1", columns=["3", "4"])
    assert by_number.vectors.tolist() == [[[3, 4], [7, 8]], [[1, 2], [5, 6]]]
    assert by_number.understood == (
        "2 rounds × 2 nodes × 2 coordinates, from columns 'x', 'y' of lines 2 to 5; nodes by column 'station'; rounds "
        "by column 'day'"
    )


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({}, "'b' is not a number; if the column names the nodes, say so with --node"),
        ({"node": "statoin"}, r"no column 'statoin' for --node \(node=\); its columns are day … remark"),
        ({"node": "station", "columns": ["x", "station"]}, "'station' is named for two things"),
        ({"columns": "x"}, r"columns is a list of names, such as \['x'\]"),
        (
            {"missing": "forget"},
            "missing is one of 'refuse', 'drop-rounds', 'drop-nodes', 'mean', 'last', got 'forget'",
        ),
        ({"steps": 0}, "steps is a number of values in a round, at least 1; got 0"),
        ({"node": "station", "columns": ["x"], "steps": 3}, "a node has 2 numbers, too few for a round of 3"),
        ({"array": "x"}, r"--array \(array=\) is for \.npz, \.pt, \.pth, \.safetensors files; leave it out"),
    ],
)
def test_what_was_told_wrongly_is_named(tmp_path, told: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        load(written(tmp_path, TABLE), **told)


GAPS = np.array([[[1, 2], [NAN, 4]], [[NAN, 6], [7, 8]], [[9, 1], [2, 3]]])


@pytest.mark.parametrize(
    ("missing", "expected", "note"),
    [
        ("drop-rounds", GAPS[2:], "2 of 12 numbers were missing; 2 rounds of 3 left out for it"),
        (
            "mean",
            np.where(np.isnan(GAPS), 4.75, GAPS),
            "2 of 12 numbers were missing, and filled with the mean of their",
        ),
    ],
)
def test_missing_numbers_are_dealt_with_as_told(tmp_path, missing, expected, note) -> None:
    np.save(tmp_path / "x.npy", GAPS)
    stream = read(tmp_path / "x.npy", missing=missing)
    assert stream.vectors.tolist() == expected.tolist()
    assert stream.note.startswith(note)


def test_the_last_number_before_fills_a_gap_if_there_is_one(tmp_path) -> None:
    np.save(tmp_path / "x.npy", GAPS)
    with pytest.raises(
        InvalidInput, match="1 missing numbers have none before them, the first at round 0, node 1, coordin"
    ):
        load(tmp_path / "x.npy", missing="last")
    np.save(tmp_path / "x.npy", GAPS[1:][::-1])
    filled = read(tmp_path / "x.npy", missing="last")
    assert filled.vectors.tolist() == [[[9, 1], [2, 3]], [[9, 6], [7, 8]]]


def test_a_row_that_is_not_there_is_missing_like_a_number(tmp_path) -> None:
    path = written(tmp_path, "round,node,x,y\n0,a,1,2\n0,b,3,4\n0,c,0,0\n1,a,5,6\n1,c,NA,?\n")
    left = read(path, missing="drop-nodes")
    assert (left.nodes, left.vectors.tolist()) == (("a",), [[[1, 2]], [[5, 6]]])
    assert read(path, missing="last").vectors[1].tolist() == [[5, 6], [3, 4], [0, 0]]


def test_what_no_policy_can_help_is_refused(tmp_path) -> None:
    path = written(tmp_path, "x,y\n1,\n2,\n")
    with pytest.raises(
        InvalidInput, match=r"no number at all, the first at line 2, column 'y'; leave it out of the file"
    ):
        load(path, missing="mean")
    with pytest.raises(
        InvalidInput, match="every node misses some of its numbers, so --missing drop-nodes leaves none"
    ):
        load(path, missing="drop-nodes")
    with pytest.raises(InvalidInput, match="1 of 2 numbers are infinite"):
        load(written(tmp_path, "1,inf\n"), missing="mean")


@pytest.fixture
def hourly() -> pd.DataFrame:
    """Two days of three sensors, as pandas holds them."""
    times = pd.date_range("2024-01-31", periods=48, freq="h", name="time")
    return pd.DataFrame(np.arange(144.0).reshape(48, 3) / 4, index=times, columns=["east", "west", "north"])


def test_a_table_of_times_by_sensors_becomes_days_however_it_is_written(tmp_path, hourly) -> None:
    wide, long, parquet = tmp_path / "wide.csv", tmp_path / "long.csv", tmp_path / "wide.parquet"
    hourly.to_csv(wide)
    hourly.to_parquet(parquet)
    hourly.reset_index().melt("time", var_name="sensor").to_csv(long)
    folder = tmp_path / "sensors"
    folder.mkdir()
    for name in hourly:
        hourly[[name]].to_csv(folder / f"{name}.csv", sep=";", decimal=",")
    days = hourly.to_numpy().reshape(2, 24, 3).transpose(0, 2, 1).tolist()
    for stream in (
        read(wide, transpose=True, steps=24),
        read(parquet, transpose=True, steps=24),
        read(long, node="sensor", steps=24),
    ):
        assert stream.nodes == ("east", "west", "north")
        assert stream.vectors.tolist() == days
    by_file = read(folder, steps=24)
    assert by_file.nodes == ("east", "north", "west")
    assert by_file.vectors[:, [0, 2, 1]].tolist() == days
    assert "lines are times and columns nodes, say --transpose" in read(wide).note
    assert "the last 8 of each node's numbers" in read(wide, transpose=True, steps=20).note


def test_the_place_of_a_number_is_that_in_the_file_after_all_that(tmp_path, hourly) -> None:
    hourly.iloc[30, 1] = NAN
    hourly.to_csv(tmp_path / "wide.csv")
    with pytest.raises(InvalidInput, match="the first at line 32, column 'west'"):
        load(tmp_path / "wide.csv", transpose=True, steps=24)


def test_what_pandas_writes_by_default_is_read(tmp_path) -> None:
    values = np.random.default_rng(0).normal(size=(4, 3))
    for index in (None, ["a", "b", "c", "d"], [3, 1, 2, 7], pd.date_range("2024-01-01", periods=4)):
        for columns in (None, ["x", "y", "z"]):
            frame = pd.DataFrame(values, index=index, columns=columns)
            frame.to_csv(tmp_path / "x.csv")
            stream = read(tmp_path / "x.csv")
            assert np.array_equal(stream.vectors, values[None])
            frame.rename(columns=str).to_parquet(tmp_path / "x.parquet")
            saved = read(tmp_path / "x.parquet")
            assert np.array_equal(saved.vectors, values[None])
            assert saved.nodes == stream.nodes
    assert read(tmp_path / "x.parquet").nodes == ("node-0", "node-1", "node-2", "node-3")


def test_a_reading_says_what_is_not_left_to_its_default() -> None:
    assert Reading().given == ()
    assert Reading(header=False, columns=["x"]).given == ("header", "columns")
