"""Intervals: Student's points from tables, and the two forms where they meet."""

from __future__ import annotations

import math

import pytest

from sparsemean.theory.intervals import log_interval, student_point

TABLE = {2: 4.3027, 3: 3.1824, 4: 2.7764, 5: 2.5706, 7: 2.3646, 10: 2.2281, 20: 2.0860, 60: 2.0003, 1000: 1.9623}


@pytest.mark.parametrize(("degrees", "point"), TABLE.items())
def test_points_are_those_of_the_table(degrees: int, point: float) -> None:
    assert student_point(degrees) == pytest.approx(point, rel=8e-3 if degrees < 3 else 2e-3)


def test_fewer_than_two_degrees_count_as_two() -> None:
    assert student_point(0.1) == student_point(2.0)


def test_the_two_forms_of_the_interval_meet_above() -> None:
    """At a standard deviation of the value itself: value·f falls to value + e t sd, or rises, by less than 2 ×."""
    value, just_below = 3.0, math.nextafter(9.0, 0.0)
    (low, high), (least, most) = log_interval(value, just_below, math.inf), log_interval(value, 9.0, math.inf)
    assert 0.0 == least < low < value < high
    assert 0.5 < most / high < 2.0


def test_a_prediction_below_0_has_an_interval_from_0() -> None:
    assert log_interval(-1.0, 4.0, math.inf) == pytest.approx((0.0, 2.0 * math.e * student_point(math.inf)))
    assert log_interval(2.0, 0.0, math.inf) == (2.0, 2.0)
