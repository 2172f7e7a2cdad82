"""The page and the plot of what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.bench import Case, Measurement, machine
from sparsemean.lab.bench.goals import GOALS, LARGE, judged
from sparsemean.lab.bench.loops import GATHER
from sparsemean.lab.bench.page import ratios, write_page, write_plot
from sparsemean.lab.bench.record import BenchRecord
from sparsemean.lab.bench.sets import MAIN
from sparsemean.lab.bench.startup import FIRST, IMPORT, IMPORT_NUMPY
from sparsemean.lab.bench.timing import Timing


def timing(seconds: float) -> Timing:
    return Timing(0.9 * seconds, seconds, 1.1 * seconds, 7)


@pytest.fixture(scope="module")
def record() -> BenchRecord:
    rows = [
        Measurement(
            what, Case(MAIN, dim, share, n), timing(1e-3), {"NumPy": timing(dim / 1e7), "limit": timing(2e-4)}, 10 * dim
        )
        for what in ("encode", "server round", "round trip")
        for dim in (10_000, 1_000_000)
        for share in (0.01, 0.1)
        for n in (1, 16)
    ]
    rows.append(Measurement(GATHER, LARGE, timing(1e-3), {"NumPy": timing(10e-3)}))
    rows.append(Measurement(IMPORT, None, timing(0.2), {IMPORT_NUMPY: timing(0.1)}))
    rows.append(Measurement(FIRST, LARGE, timing(0.5)))
    return BenchRecord(machine(), tuple(rows), complete=False)


def test_a_figure_has_a_panel_for_each_size_and_a_line_for_each_baseline(record: BenchRecord):
    figure = ratios(record.rows, "server round")
    assert figure is not None
    (row,) = figure.rows
    assert [panel.title for panel in row.panels] == [
        *("1 node, k/d = 1 %", "1 node, k/d = 10 %"),
        *("16 nodes, k/d = 1 %", "16 nodes, k/d = 10 %"),
    ]
    for panel in row.panels:
        assert [line.name for line in panel.lines] == ["NumPy", "limit"]
        assert panel.lines[0].measured.mean.tolist() == pytest.approx([1.0, 100.0])
        assert panel.scale.low < 1.0 < panel.scale.high
        assert panel.marks[0].y == 1.0
    assert figure.takeaway == "Between 5 and 5 times the time that memory alone would need."


def test_the_page_has_goals_figures_and_rows(record: BenchRecord, tmp_path: Path):
    page = write_page(record, tmp_path / "new" / "bench.html", "sparsemean bench <b>").read_text(encoding="utf-8")
    for name in ("goals", "figure-encode", "figure-server-round", "figure-round-trip", "rows", "reading", "again"):
        assert f'<section id="{name}">' in page
    assert "stopped before its end" in page
    assert "&lt;b&gt;" in page
    assert "not reached" in page


def test_the_plot_is_an_image(record: BenchRecord, tmp_path: Path):
    assert write_plot(record, tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert "10⁴" in write_plot(record, tmp_path / "plot.svg").read_text(encoding="utf-8")


def test_without_rounds_there_is_no_plot(tmp_path: Path):
    with pytest.raises(InvalidInput, match="no plot"):
        write_plot(BenchRecord(machine()), tmp_path / "plot.png")
    assert write_page(BenchRecord(machine()), tmp_path / "page.html").exists()


def test_goals_are_judged_by_the_rows_that_are_there(record: BenchRecord):
    found = judged(record.rows)
    assert {goal.name: goal.holds(value) for goal, value in found} == {
        "draw and gather, d = 2^22, k = 10 %, 1 thread": False,
        "import sparsemean, over numpy": True,
        "first round of a second process, n = 16, d = 2^22": True,
    }
    assert [value for _, value in found] == pytest.approx([10.0, 0.1, 0.5])


def test_a_goal_says_which_way_it_goes():
    assert GOALS[0].wanted == "≥ 15 × NumPy as one writes it"
    assert GOALS[0].holds(15.0)
    assert not GOALS[0].holds(14.9)
    time = next(goal for goal in GOALS if not goal.at_least)
    assert time.holds(time.bound)
    assert not time.holds(1.01 * time.bound)
