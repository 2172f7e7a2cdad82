"""Means and standard errors over seeds, against a NumPy twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.lab.report.figure.curve import curve
from sparsemean.lab.student import t_quantile

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
            reach = t_quantile(len(own)) * own.std(ddof=1) / math.sqrt(len(own))
            assert found.margin[i] == pytest.approx(reach, rel=1e-6, abs=1e-6)
        else:
            assert math.isnan(found.margin[i])


def test_a_seed_that_left_all_bounds_takes_its_point_with_it():
    found = curve([0, 0, 1, 1, 2, 2], [1.0, 3.0, 1.0, math.inf, math.inf, math.inf])
    assert found.mean.tolist() == [2.0, math.inf, math.inf]
    assert found.lost.tolist() == [0, 1, 2]
    assert np.isfinite(found.margin).tolist() == [True, False, False]


def test_rows_without_a_value_are_left_out():
    found = curve([0, 0, 1], [1.0, math.nan, math.nan])
    assert (found.x.tolist(), found.mean.tolist(), found.seeds.tolist()) == ([0.0], [1.0], [1])


def test_places_that_differ_by_rounding_are_one():
    assert curve([0.1 + 0.2, 0.3], [1.0, 3.0]).mean.tolist() == [2.0]


def test_the_rows_own_errors_are_pooled():
    found = curve([0, 0], [1.0, 3.0], [0.3, 0.4])
    assert found.margin.tolist() == [pytest.approx(0.5)]  # twice the standard error


def test_numbers_near_the_largest_do_not_disturb():
    assert curve([0, 0], [1e300, 1.5e300]).mean.tolist() == [1.25e300]
