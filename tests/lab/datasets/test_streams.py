"""The sensor networks: rounds × nodes × coordinates, nothing missing, standardised per quantity."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sparsemean._types import Doubles, Floats
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import Stream, beijing, los_loop, weather
from sparsemean.lab.weather import load_weather


def check(stream: Stream, shape: tuple[int, int, int]) -> None:
    """What holds of every named stream."""
    assert stream.vectors.shape == shape
    assert stream.vectors.dtype == np.float32
    assert stream.vectors.flags.c_contiguous
    assert np.isfinite(stream.vectors).all()
    assert len(set(stream.nodes)) == shape[1]
    assert stream.attribution


def pairwise_correlation(series: Doubles) -> Doubles:
    """Of (time, node): the correlations of all pairs of different nodes."""
    matrix = np.atleast_2d(np.corrcoef(series, rowvar=False))
    pairs: Doubles = matrix[np.triu_indices_from(matrix, 1)]
    return pairs


def by_time(vectors: Floats) -> Doubles:
    """(rounds, nodes, steps) → (time, nodes)."""
    return vectors.transpose(0, 2, 1).reshape(-1, vectors.shape[1]).astype(np.float64)


def test_weather_is_the_embedded_month() -> None:
    stream, month = weather.load(), load_weather()
    check(stream, (31, 37, 89))
    assert np.array_equal(stream.vectors, month.vectors)
    assert stream.nodes == month.stations
    assert stream.attribution == month.attribution


def test_beijing_has_dust_and_weather_on_complete_days(data_dir: Path) -> None:
    stream = beijing.load(data_dir)
    check(stream, (467, 12, 168))
    assert stream.nodes[0] == "Aotizhongxin"
    quantities = stream.vectors.reshape(467, 12, 7, 24).astype(np.float64)
    np.testing.assert_allclose(quantities.mean(axis=(0, 1, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(quantities.var(axis=(0, 1, 3)), 1, atol=1e-6)
    for name, known in {"PM2.5": 0.89, "PM10": 0.84, "TEMP": 0.99, "PRES": 0.99, "DEWP": 0.99}.items():
        series = by_time(quantities[:, :, beijing.QUANTITIES.index(name)])
        assert pairwise_correlation(series).mean() == pytest.approx(known, abs=0.02), name


def test_beijing_takes_other_quantities(data_dir: Path) -> None:
    check(beijing.load(data_dir, ["O3"]), (182, 12, 24))


@pytest.mark.parametrize("quantities", [(), ("TEMP", "TEMP"), ("wd",), ("PM2.5", "No")])
def test_beijing_names_the_quantities_it_has(quantities: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"quantities are some of PM2\.5, PM10, .*, WSPM, each once; got \("):
        beijing.load(tmp_path, quantities)


HEADER = '"No","hour","TEMP","wd","PM2.5"\r\n'


def day(hours: int = 24, **changes: str) -> str:
    """Lines of a station's file; ``changes`` are of a line's PM2.5, by its hour as ``h7``."""
    return "".join(f'{i},{i % 24},{i}.5,"N",{changes.get(f"h{i}", 2 * i)}\r\n' for i in range(hours))


def test_a_station_is_read_by_quantity_and_hour() -> None:
    days = beijing.station_days(HEADER + day(48, h30="NA"), ["PM2.5", "TEMP"], "x")
    assert days.shape == (2, 2, 24)
    assert days[0, 0].tolist() == [2 * i for i in range(24)]
    assert days[1, 1].tolist() == [24.5 + i for i in range(24)]
    assert np.argwhere(np.isnan(days)).tolist() == [[1, 0, 6]]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("", "x has 0 hours, which are no whole days"),
        (day(25), "x has 25 hours, which are no whole days"),
        (day(3) + day(), "x: line 5 is of hour 0, expected 3"),
    ],
)
def test_a_station_with_a_gap_in_time_is_named(lines: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        beijing.station_days(HEADER + lines, ["TEMP"], "x")


def test_only_days_complete_at_all_stations_are_kept_and_nothing_is_filled_in() -> None:
    one, two = np.random.default_rng(0).normal(size=(2, 5, 3, 24))
    one[1, 2, 7] = two[3, 0, 0] = np.nan
    assert np.array_equal(beijing.complete_days([one, two]), np.stack([one, two], axis=1)[[0, 2, 4]])
    one[:] = np.nan
    with pytest.raises(InvalidInput, match="on no day do all stations have all of these quantities; choose fewer"):
        beijing.complete_days([one, two])


def test_los_loop_has_days_as_rounds_and_the_known_correlation(data_dir: Path) -> None:
    stream = los_loop.load(data_dir)
    check(stream, (7, 207, 288))
    assert stream.nodes[:2] == ("773869", "767541")
    assert stream.vectors.mean(dtype=np.float64) == pytest.approx(0, abs=1e-6)
    assert stream.vectors.var(dtype=np.float64) == pytest.approx(1, abs=1e-6)
    correlations = pairwise_correlation(by_time(stream.vectors))
    assert correlations.mean() == pytest.approx(0.20, abs=0.005)
    assert correlations.min() == pytest.approx(-0.46, abs=0.005)


def test_los_loop_is_the_speeds_of_the_file(data_dir: Path) -> None:
    with gzip.open(data_dir / "los-loop" / "los_speed.csv.gz", "rt") as file:
        speeds = np.loadtxt(file, delimiter=",", skiprows=1)
    expected = (speeds - speeds.mean()) / speeds.std()
    np.testing.assert_allclose(by_time(los_loop.load(data_dir, steps=12).vectors), expected, atol=1e-5)


def test_los_loop_takes_hours_and_names_what_does_not_divide_the_week(data_dir: Path) -> None:
    check(los_loop.load(data_dir, steps=12), (168, 207, 12))
    wrong: tuple[Any, ...] = (0, -12, 13, 4032, True, 12.0)
    for steps in wrong:
        with pytest.raises(InvalidInput, match=f"steps must divide the 2016 times of the week, got {steps}; 288 is a"):
            los_loop.load(data_dir, steps=steps)


@pytest.mark.parametrize("module", [beijing, los_loop])
def test_a_set_that_is_not_there_is_told(module, tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=f"(?s)the data set {module.ENTRY.name} lacks .*{re.escape(module.ENTRY.page)}"
    ):
        module.load(tmp_path)
