"""Axes that show what matters: enough numbers on them, and no line flattened by another that diverges."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.lab.report.figure.curve import curve
from sparsemean.lab.report.figure.figure import AxisScale, Line, Mark
from sparsemean.lab.report.figure.scale import scale_of
from sparsemean.lab.report.figure.spec import Quantity
from sparsemean.lab.report.figure.ticks import log_ticks

ERROR, AUTO, LINEAR = (
    Quantity(("mse",), "", log=True),
    Quantity(("objective",), ""),
    Quantity(("ratio",), "", log=False),
)


def line(name: str, *values: float) -> Line:
    return Line(name, curve(range(len(values)), values))


@given(st.floats(-20, 20), st.floats(0.01, 30))
def test_a_logarithmic_axis_has_three_to_twelve_numbers_inside(start, decades):
    scale = AxisScale(True, 10**start, 10 ** (start + decades))
    ticks = log_ticks(scale)
    assert 3 <= len(ticks) <= 12
    assert len({text for _, text in ticks}) == len(ticks)
    assert all(scale.low * 0.999 <= value <= scale.high * 1.001 for value, _ in ticks)


def test_texts_of_ticks():
    assert [text for _, text in log_ticks(AxisScale(True, 1e-7, 2e-6))] == [
        "10⁻⁷",
        "2·10⁻⁷",
        "5·10⁻⁷",
        "10⁻⁶",
        "2·10⁻⁶",
    ]


def test_all_that_is_calm_is_inside():
    scale = scale_of(ERROR, [line("rand-k", 1.0, 0.9), line("rand-k-temporal", 1.0, 1e-6)], True)
    assert scale.log
    assert scale.low < 1e-6
    assert scale.high > 1.0


def test_one_that_diverges_does_not_flatten_the_others():
    scale = scale_of(ERROR, [line("rand-k", 1.0, 0.5), line("rand-k-temporal-shared", 1.0, 1e23)], True)
    assert scale.high < 100


def test_an_exact_reference_does_not_stretch_the_axis():
    scale = scale_of(ERROR, [line("rand-k", 1.0, 0.5), line("identity", 1e-15, 1e-15), line("exact", 0.0, 0.0)], True)
    assert scale.low > 0.1


def test_objectives_are_logarithmic_only_where_they_span_much():
    assert not scale_of(AUTO, [line("rand-k", 60.0, 32.0)], True).log
    assert scale_of(AUTO, [line("rand-k", 60.0, 0.1)], True).log
    assert not scale_of(AUTO, [line("rand-k", 60.0, -1.0)], True).log


def test_marks_are_inside_and_so_is_zero():
    scale = scale_of(LINEAR, [line("iid", 90.0, 95.0)], True, [Mark(99.0, "")])
    assert scale.low == 0.0
    assert scale.high > 99.0


def test_nothing_to_draw_still_makes_an_axis():
    assert scale_of(ERROR, [line("rand-k", math.inf)], True).low > 0
    scale = scale_of(ERROR, [line("rand-k", 0.0, 0.0)], True)
    assert scale.high > scale.low


def test_a_constant_line_has_room():
    scale = scale_of(ERROR, [line("rand-k", 0.5, 0.5)], True)
    assert scale.low < 0.5 < scale.high
    assert len(log_ticks(scale)) >= 3


@pytest.mark.parametrize("values", [(5.0, 5.0), (0.0, 0.0), (-3.0, -2.0)])
def test_linear_axes_have_room_too(values):
    scale = scale_of(LINEAR, [line("rand-k", *values)], True)
    assert scale.low <= min(values)
    assert scale.high > max(values)


def test_what_may_rise_is_shown_to_its_top():
    accuracy = Quantity(("accuracy",), "", log=False, bounded=True)
    scale = scale_of(accuracy, [line("rand-k", 0.1, 0.86), line("wangni", 0.1, 0.1)], True)
    assert scale.high > 0.86


def test_one_vanishing_point_does_not_stretch_an_axis_without_time():
    scale = scale_of(ERROR, [line("rand-k-spatial-opt", 1e-15, 0.5, 0.4), line("rand-k", 0.6, 0.5, 0.5)], False)
    assert 0.1 < scale.low < 0.4
