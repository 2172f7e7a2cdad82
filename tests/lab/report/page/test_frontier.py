"""The page of a frontier: all points in the table, the fronts in the figure, drawn in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsemean.errors import InvalidInput
from sparsemean.lab.frontier import Frontier, Point
from sparsemean.lab.frontier.page import ALL, MAIN, OTHERS, against_bytes, write_page
from sparsemean.lab.report.draw.screen import drawn
from sparsemean.lab.report.figure.style import style_of
from sparsemean.schemes import names

from ....browser import Browser
from .test_browser import EVERY, opened, see_all


def frontier(**changed) -> Frontier:
    """Every name in three kinds at four budgets, those further down the list a little better; and dense means."""
    budgets = (100, 200, 400, 800)
    points = [
        Point(f"{name} {kind}", budget, budget // 8, budget - 0.5 * place - 7.0 * size, nmse, 0.05 * nmse, None, *facts)
        for size, kind in enumerate(("float32", "int8", "eden-2.5"))
        for place, name in enumerate(names()[1:-1])
        for budget in budgets
        for nmse in [0.4 * (100 / budget) ** 2 * (1 + 0.1 * ((place * 7) % 11)) / (1 + size)]
        for facts in [(not name.startswith("top"), False, name == "rand-k-temporal-shared")]
    ]
    dense = [("identity float32", 4064.0, 1e-17), ("identity float16", 2064.0, 1e-9), ("identity int8", 1072.0, 1e-6)]
    better = ("diana int4", 1070.0, 9e-7)
    points += [Point(*each[:1], None, 1000, *each[1:], 0.0, None, True, False, False) for each in (*dense, better)]
    return Frontier(tuple(points), **{"zero_error": 0.9, "nodes": 9, "dim": 1000, "rounds": 3, "seeds": 3,
                                      "budgets": budgets, **changed})  # fmt: skip


def test_the_figure_has_both_fronts_the_schemes_on_them_and_all_others():
    found = frontier()
    figure = against_bytes(found)
    [panel] = figure.rows[0].panels
    assert {line.name for line in panel.lines} == {MAIN, ALL, *(point.scheme for point in found.points)}
    own = {"identity int8", *(tied[0].scheme for tied in found.marked)}
    assert {line.name for line in panel.lines if not line.group} == {MAIN, ALL, *own}
    assert set(figure.series) == {MAIN, ALL, OTHERS, *own}
    stairs = next(line for line in panel.lines if line.name == MAIN)
    assert stairs.measured.x.tolist() == [point.bytes_per_node for point in found.unbiased_front]
    assert [mark.y for mark in panel.marks] == [0.9]
    assert any("identity float32" in note for note in figure.notes)  # below the axis, and said
    plot = drawn(figure, figure.rows[0], panel)
    assert [mark["y"] for mark in plot["marks"]] == [0.9]
    assert [line["kind"] for line in plot["lines"]].count("stairs") == 2


def test_looks_tell_schemes_and_kinds_apart():
    kinds = ("float32", "float16", "int8", "int4", "2-bit", "1-bit")
    looks = {
        (style_of(f"{name} {kind}").light, style_of(f"{name} {kind}").marker) for name in names() for kind in kinds
    }
    assert len(looks) == len(names())
    assert len({style_of(f"rand-k {kind}").dash for kind in kinds}) == len(kinds)


def test_the_page_names_everything_by_its_name(tmp_path: Path):
    path = write_page(
        frontier(left_out=("wangni int8",), complete=False), tmp_path / "f.html", "<me>", "a & b", "x <y>"
    )
    text = path.read_text(encoding="utf-8")
    for words in ("&lt;me&gt;", "About the file: a &amp; b.", "x &lt;y&gt;", "stopped before its end", "wangni int8."):
        assert words in text
    assert "Rand-k" not in text
    assert "<me>" not in text
    assert text.count("<tr>") > len(frontier().points)
    with pytest.raises(InvalidInput, match="at least one"):
        write_page(Frontier((), 1.0, 1, 1, 1, 1, ()), tmp_path / "none.html")


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_it_is_drawn_and_its_legend_is_no_taller_than_the_plot(tab: Browser, tmp_path: Path, width: int, theme: str):
    path = write_page(frontier(), tmp_path / "frontier.html")
    opened(tab, path, width, theme)
    see_all(tab)
    assert tab.run(f"{EVERY}[0].querySelectorAll('use').length") > 100
    assert tab.run("document.querySelector('.legend').scrollHeight") == tab.run(
        "document.querySelector('.legend').clientHeight"
    )  # no row is cut
    assert tab.run("document.querySelector('.legend').offsetHeight") <= tab.run(f"{EVERY}[0].offsetHeight")
    assert tab.run("document.documentElement.scrollWidth") == width
    assert tab.requests() == [path.resolve().as_uri()]
    assert tab.complaints() == []
