"""Whole numbers that count lines, or name nodes or hours, do not become measurements in silence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from sparsemean.lab.datasets import Images, Stream, load

TIME = pd.date_range("2024-01-01", periods=48, freq="h")


def table(**columns) -> pd.DataFrame:
    return pd.DataFrame({**columns, "east": np.random.default_rng(0).normal(size=48), "west": 0.5})


def read(frame: pd.DataFrame, folder: Path, ending: str = "csv", **told) -> Stream:
    path = folder / f"x.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path, index=False)
    stream = load(path, **told)
    assert not isinstance(stream, Images)
    return stream


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("lost", [[], [5, 6]])
def test_a_first_column_that_counts_lines_is_left_out(tmp_path, ending, lost) -> None:
    frame = table(nr=range(7, 55)).drop(lost)
    stream = read(frame, tmp_path, ending)
    assert stream.vectors.shape[2] == 2
    assert stream.note == "column 'nr' counts lines, and was left out (--columns names what counts)"
    assert read(frame, tmp_path, ending, columns=["nr", "east"]).vectors.shape[2] == 2


@pytest.mark.parametrize(
    "columns",
    [
        {"time": TIME, "hour": TIME.hour},
        {"hour": np.delete(np.tile(range(12), 5), [3, *range(49, 60)])},
        {"time": TIME.repeat(4)[:48], "station": [101, 102, 103, 104] * 12},
        {"time": list(TIME[:12]) * 4, "station": np.repeat([7, 22, 35, 41], 12)},
        {"time": TIME, "nr": range(48)},
    ],
    ids=["hours", "hours with gaps", "stations", "stations one after another", "counter"],
)
def test_what_looks_like_a_label_is_said_with_the_options(tmp_path, columns) -> None:
    name = list(columns)[-1]
    stream = read(table(**columns), tmp_path)
    assert f"column '{name}' looks like a label" in stream.note
    assert f"say --node '{name}'; if it says the round, --round '{name}'" in stream.note
    assert "--columns" in stream.note
    assert "--transpose" not in stream.note


def test_the_option_that_is_named_helps(tmp_path) -> None:
    stations = table(time=TIME.repeat(4)[:48], station=[101, 102, 103, 104] * 12)
    assert read(stations, tmp_path, node="station").vectors.shape == (12, 4, 2)


def test_measurements_in_whole_numbers_are_no_labels(tmp_path) -> None:
    rng = np.random.default_rng(0)
    frame = table(rain=rng.poisson(0.3, 48), count=rng.integers(0, 500, 48), meter=rng.poisson(2, 48).cumsum(), dry=0)
    frame.insert(0, "time", TIME)
    stream = read(frame, tmp_path)
    assert stream.vectors.shape[2] == 6
    assert "label" not in stream.note
