"""Means and bands over seeds against a NumPy twin, and CSV files as people really write them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.errors import InvalidInput
from sparsemean.lab.report.tables import Table, curve, read_table

VALUES = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(st.integers(0, 4), VALUES), min_size=1, max_size=40))
def test_mean_and_error_are_those_of_numpy(rows):
    x, y = np.array([row[0] for row in rows], float), np.array([row[1] for row in rows])
    found = curve(x, y)
    assert found.x.tolist() == np.unique(x).tolist()
    for i, place in enumerate(found.x):
        own = y[x == place]
        assert found.seeds[i] == len(own)
        assert found.mean[i] == pytest.approx(own.mean(), rel=1e-9, abs=1e-9)
        if len(own) > 1:
            assert found.error[i] == pytest.approx(own.std(ddof=1) / math.sqrt(len(own)), rel=1e-6, abs=1e-6)
        else:
            assert math.isnan(found.error[i])


def test_a_seed_that_left_all_bounds_takes_its_point_with_it():
    found = curve([0, 0, 1, 1, 2, 2], [1.0, 3.0, 1.0, math.inf, math.inf, math.inf])
    assert found.mean.tolist() == [2.0, math.inf, math.inf]
    assert found.lost.tolist() == [0, 1, 2]
    assert np.isfinite(found.error).tolist() == [True, False, False]


def test_rows_without_a_value_are_left_out():
    found = curve([0, 0, 1], [1.0, math.nan, math.nan])
    assert (found.x.tolist(), found.mean.tolist(), found.seeds.tolist()) == ([0.0], [1.0], [1])


def test_places_that_differ_by_rounding_are_one():
    assert curve([0.1 + 0.2, 0.3], [1.0, 3.0]).mean.tolist() == [2.0]


def test_the_rows_own_errors_are_pooled():
    found = curve([0, 0], [1.0, 3.0], [0.3, 0.4])
    assert found.error.tolist() == [pytest.approx(0.25)]


def test_numbers_near_the_largest_do_not_disturb():
    assert curve([0, 0], [1e300, 1.5e300]).mean.tolist() == [1.25e300]


def test_nan_means_lost_where_something_was_measured_and_unknown_elsewhere():
    table = Table.of([{"mse": "nan", "exact": "nan"}, {"mse": None, "exact": None}, {"mse": "inf", "exact": "inf"}])
    assert table.number("mse").tolist() == [math.inf, pytest.approx(math.nan, nan_ok=True), math.inf]
    assert np.isnan(table.number("exact")).tolist() == [True, True, False]


def test_a_column_that_is_not_there_is_not_known():
    table = Table.of([{"a": 1}])
    assert (table.text("b").tolist(), np.isnan(table.number("b")).tolist()) == ([""], [True])


def test_values_come_in_the_order_of_numbers():
    rows = [{"share": share} for share in (0.2, 0.05, 0.1, None, 1)]
    assert Table.of(rows).distinct("share") == ["0.05", "0.1", "0.2", "1"]


def test_files_from_a_spreadsheet_are_read(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_bytes('\ufeffscheme, mse\r\n"rand-k, mine",0.5\r\n\r\nx,\r\n'.encode())
    table = read_table(path)
    assert table.text("scheme").tolist() == ["rand-k, mine", "x"]
    assert table.number("mse")[0] == 0.5


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


def test_a_word_for_a_number_is_named():
    with pytest.raises(InvalidInput, match="column mse holds 'much'"):
        Table.of([{"mse": "much"}]).number("mse")
