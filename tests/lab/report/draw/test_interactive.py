"""What plotly.js is given: valid, finite, and harmless whatever the names."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from sparsemean.lab import optional_modules
from sparsemean.lab.report.draw.interactive import drawn, outline
from sparsemean.lab.report.figure.catalogue import figure_names, spec_of
from sparsemean.lab.report.figure.compose import compose
from sparsemean.lab.report.figure.curve import curve
from sparsemean.lab.report.figure.figure import AxisScale, Figure
from sparsemean.lab.report.figure.table import ResultTable, read_tables


@pytest.fixture(scope="module")
def figures(out_dir: Path) -> list[Figure]:
    tables = read_tables(out_dir)
    return [figure for name in figure_names(tables) if (figure := compose(name, spec_of(name), tables[name]))]


def without_colours(value: Any) -> Any:
    """CSS variables are looked up in the page; plotly itself wants colours."""
    if isinstance(value, dict):
        return {key: without_colours(item) for key, item in value.items()}
    if isinstance(value, list):
        return [without_colours(item) for item in value]
    return "#123456" if isinstance(value, str) and value.startswith("--") else value


def test_plotly_knows_every_attribute(figures: list[Figure]):
    plotly = optional_modules.optional("plotly.graph_objects", "this test", "report")
    for figure in figures:
        for row in figure.rows:
            panel = drawn(figure, row, row.panels[0])
            for trace in panel["data"]:
                trace.pop("legendgroup")
            plotly.Figure(without_colours(panel))


def test_there_is_no_nan_in_it(figures: list[Figure]):
    for figure in figures:
        for row in figure.rows:
            for panel in row.panels:
                json.dumps(drawn(figure, row, panel), allow_nan=False)


def test_the_band_is_two_standard_errors_and_has_a_gap_where_seeds_were_lost():
    line = curve([0, 0, 1, 1, 2, 2, 3, 3], [1.0, 3.0, 5.0, 5.0, math.inf, 1.0, 4.0, 6.0])
    x, y = outline(line, AxisScale(False, 0.0, 10.0))
    assert x == [0.0, 1.0, 1.0, 0.0, None, 3.0, 3.0, None]
    assert y == [4.0, 5.0, 5.0, 0.0, None, 7.0, 3.0, None]


def test_on_a_logarithmic_axis_the_band_is_as_wide_below_as_above():
    _, y = outline(curve([0, 0], [1.0, 3.0]), AxisScale(True, 0.1, 10.0))
    assert y == [4.0, 1.0, None]


def test_a_line_that_left_the_axis_takes_its_band_with_it():
    x, _ = outline(curve([0, 0, 1, 1], [1.0, 3.0, 1e20, 9e20]), AxisScale(False, 0.0, 10.0))
    assert x == [0.0, 0.0, None]


def test_tags_in_names_are_text():
    rows = [{"scheme": "<b>bold</b> & <a href='x'>", "round": t, "mse": 1.0} for t in range(2)]
    figure = compose("mine", spec_of("mine"), ResultTable.of(rows))
    assert figure is not None
    names = {trace.get("name") for trace in drawn(figure, figure.rows[0], figure.rows[0].panels[0])["data"]}
    assert names == {"&lt;b&gt;bold&lt;/b&gt; &amp; &lt;a href='x'&gt;"}


def test_a_missing_library_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch):
    def absent(name: str):
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(optional_modules, "import_module", absent)
    with pytest.raises(ValueError, match=r"the report page needs plotly: pip install 'sparsemean\[report\]'"):
        optional_modules.optional("plotly.offline", "the report page", "report")
