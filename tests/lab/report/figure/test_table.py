"""Columns of a result table: unknown, lost and missing values, and their order."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.report.figure.table import ResultTable


def test_nan_means_lost_where_something_was_measured_and_unknown_elsewhere():
    table = ResultTable.of(
        [{"mse": "nan", "exact": "nan"}, {"mse": None, "exact": None}, {"mse": "inf", "exact": "inf"}]
    )
    assert table.number("mse").tolist() == [math.inf, pytest.approx(math.nan, nan_ok=True), math.inf]
    assert np.isnan(table.number("exact")).tolist() == [True, True, False]


def test_a_column_that_is_not_there_is_not_known():
    table = ResultTable.of([{"a": 1}])
    assert (table.text("b").tolist(), np.isnan(table.number("b")).tolist()) == ([""], [True])


def test_values_come_in_the_order_of_numbers():
    rows = [{"share": share} for share in (0.2, 0.05, 0.1, None, 1)]
    assert ResultTable.of(rows).distinct("share") == ["0.05", "0.1", "0.2", "1"]


def test_a_word_for_a_number_is_named():
    with pytest.raises(InvalidInput, match="column mse holds 'much'"):
        ResultTable.of([{"mse": "much"}]).number("mse")
