"""Lines that are out of order or not there do not shift the rounds that are made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import Images, Stream, load

VALUES = np.random.default_rng(0).normal(size=(48, 2))
DAYS = VALUES.reshape(2, 24, 2).transpose(0, 2, 1)


def hourly() -> pd.DataFrame:
    frame = pd.DataFrame(VALUES, columns=["east", "west"])
    frame.insert(0, "time", pd.date_range("2024-01-01", periods=48, freq="h"))
    return frame


def read(frame: pd.DataFrame, folder: Path, ending: str = "csv", steps: int = 24, **told: Any) -> Stream:
    path = folder / f"x.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path, index=False)
    stream = load(path, steps=steps, **({"transpose": True} | told))
    assert not isinstance(stream, Images)
    return stream


def long(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.melt("time", var_name="station")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_lines_are_put_in_the_order_of_their_times(tmp_path, ending) -> None:
    mixed = read(hourly().sample(frac=1, random_state=1), tmp_path, ending)
    assert np.array_equal(mixed.vectors, DAYS)
    assert "lines were put in the order of their times" in mixed.note
    regular = read(hourly(), tmp_path, ending)
    assert np.array_equal(regular.vectors, DAYS)
    assert regular.note == "column 'time' holds dates or times, and was left out"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_lines_that_are_not_there_are_missing_numbers(tmp_path, ending) -> None:
    gaps = hourly().drop([5, 6, 9])
    with pytest.raises(
        InvalidInput, match=r"the first at 2024-01-01 05:00\S*, which has no line, column 'east'; .*--m"
    ):
        read(gaps, tmp_path, ending)
    left = read(gaps, tmp_path, ending, missing="drop-rounds")
    assert np.array_equal(left.vectors, DAYS[1:])
    assert "no line for 3 times, the first 2024-01-01 05:00" in left.note


def test_rounds_that_no_node_has_are_missing_numbers(tmp_path) -> None:
    told: dict[str, Any] = {"node": "station", "transpose": False}
    gaps = long(hourly().drop([5, 6, 9]))
    with pytest.raises(InvalidInput, match=r"the first at round 2024-01-01 05:00\S*, which has no row for the node"):
        read(gaps, tmp_path, **told)
    assert np.array_equal(read(gaps, tmp_path, missing="drop-rounds", **told).vectors, DAYS[1:])
    assert read(gaps, tmp_path, steps=1, **told).vectors.shape == (45, 2, 1)  # nothing is shifted there


def test_times_that_no_file_of_a_folder_has_are_missing_numbers(tmp_path) -> None:
    for node in ("east", "west"):
        hourly()[["time", node]].drop([5, 6, 9]).to_csv(tmp_path / f"{node}.csv", index=False)
    with pytest.raises(InvalidInput, match="6 of 96 numbers are missing"):
        load(tmp_path, steps=24)


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (pd.date_range("2024-01-01", periods=48, freq="MS"), ""),
        (pd.date_range("2024-01-01", periods=48, freq="h") + pd.to_timedelta([0, 200] * 24, "s"), ""),
        ([i * i for i in range(48)], "not at equal"),
        (pd.date_range("2024-01-01", periods=48, freq="h").strftime("%d.%m.%Y %H:%M"), "were not checked"),
        (list(range(24)) * 2, "were not checked"),
        (["2024-01-01"] * 24 + ["2024-01-02"] * 23 + ["2024-01-03"], "2024-01-02 00:00:00+00:00 stands in 23 lines"),
    ],
    ids=["months", "inexact", "irregular", "not ISO", "hours of days", "days"],
)
def test_other_times_keep_their_lines_and_that_is_said(tmp_path, times, told) -> None:
    stream = read(hourly().assign(time=times), tmp_path)
    assert np.array_equal(stream.vectors, DAYS)
    assert told in stream.note
    assert told or stream.note.endswith("was left out")


def test_a_month_that_is_not_there_is_missing(tmp_path) -> None:
    months = hourly().assign(time=pd.date_range("2024-01-01", periods=48, freq="MS")).drop([7])
    with pytest.raises(InvalidInput, match="the first at 2024-08-01"):
        read(months, tmp_path)


def test_dates_and_times_of_day_in_two_columns_are_one_time(tmp_path) -> None:
    frame = hourly()
    frame.insert(1, "clock", frame.time.dt.strftime("%H:%M"))
    frame["time"] = frame.time.dt.strftime("%Y-%m-%d")
    assert np.array_equal(read(frame.sample(frac=1, random_state=1), tmp_path).vectors, DAYS)


def test_nodes_that_tell_slightly_different_times_are_named_as_the_cause(tmp_path) -> None:
    frame = long(hourly())
    frame["time"] += pd.to_timedelta(frame.station.map({"east": 3, "west": 7}), "s")
    with pytest.raises(InvalidInput, match="slightly different times, round the times first"):
        read(pd.concat([frame, frame[:1].assign(station="north")]), tmp_path, node="station", transpose=False)
