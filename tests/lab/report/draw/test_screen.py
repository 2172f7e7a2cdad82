"""What the page's script is given: finite, compact, and harmless whatever the names."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from sparsemean.lab.report.draw.screen import drawn
from sparsemean.lab.report.draw.symbols import DASHES, SHAPES
from sparsemean.lab.report.figure.catalogue import figure_names, spec_of
from sparsemean.lab.report.figure.compose import compose
from sparsemean.lab.report.figure.curve import Curve, curve
from sparsemean.lab.report.figure.figure import AxisScale, Figure
from sparsemean.lab.report.figure.scale import band
from sparsemean.lab.report.figure.style import _LISTED, style_of
from sparsemean.lab.report.figure.table import ResultTable, read_tables


@pytest.fixture(scope="module")
def figures(out_dir: Path) -> list[Figure]:
    tables = read_tables(out_dir)
    return [figure for name in figure_names(tables) if (figure := compose(name, spec_of(name), tables[name]))]


def test_everything_is_finite_and_has_a_mark_a_dash_and_a_place(figures: list[Figure]):
    for figure in figures:
        for row in figure.rows:
            for panel in row.panels:
                told = drawn(figure, row, panel)
                json.dumps(told, allow_nan=False)
                assert len(told["x"]["ticks"]) > 1
                assert len(told["y"]["ticks"]) > 1
                for line, shown in zip(panel.lines, told["lines"], strict=True):
                    assert len(told["xs"][shown["x"]]) == len(shown["y"]) == len(line.measured.x)
                    assert shown["mark"] in ("", *SHAPES)
                    assert shown["dash"] in DASHES.values()


def test_lines_with_the_same_places_share_them(figures: list[Figure]):
    figure = next(figure for figure in figures if figure.name == "power-iteration")
    told = drawn(figure, figure.rows[0], figure.rows[0].panels[0])
    assert len(told["lines"]) > 6
    assert len(told["xs"]) == 1


def test_every_style_can_be_drawn():
    for name in (*_LISTED, "of my own", "rand-k 2-bit"):
        style = style_of(name)
        assert style.marker.removesuffix("-open") in ("none", *SHAPES)
        assert style.dash in DASHES


def edges(line: Curve, scale: AxisScale) -> list[list[float]]:
    return [[round(value, 3) for value in edge.tolist()] for edge in band(line, scale)]


def test_the_band_has_a_gap_where_seeds_were_lost_or_the_line_left_the_axis():
    line = curve([0, 0, 1, 1, 2, 2], [5.0, 5.0, math.inf, 1.0, 1e20, 9e20])
    assert [str(end) for end in edges(line, AxisScale(False, 0.0, 10.0))[1]] == ["5.0", "nan", "nan"]


def test_the_band_is_students_and_on_a_logarithmic_axis_as_wide_below_as_above():
    line = curve([0, 0, 0], [1.0, 2.0, 3.0])
    assert edges(line, AxisScale(False, 0.0, 10.0)) == [[-0.484], [4.484]]  # 2 ± 4.303 · 0.577
    assert edges(line, AxisScale(True, 0.1, 10.0)) == [[0.892], [4.484]]


def test_names_are_passed_on_as_they_are():
    rows = [{"scheme": "<b>bold</b> & <a href='x'>", "round": t, "mse": 1.0} for t in range(2)]
    figure = compose("mine", spec_of("mine"), ResultTable.of(rows))
    assert figure is not None
    told = drawn(figure, figure.rows[0], figure.rows[0].panels[0])
    assert [line["name"] for line in told["lines"]] == ["<b>bold</b> & <a href='x'>"]  # the script sets them as text
