"""The page in a real browser: it draws, answers clicks, follows the theme, fits a phone, and asks nobody anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsemean.lab.report import write_compare_report

from .. import fake
from ..browser import Browser

pytestmark = pytest.mark.xdist_group("browser")  # which takes a second to start

EVERY = "[...document.querySelectorAll('.plot')]"
FIRST = "document.querySelector('#figure-power-iteration .plot')"
ENTRY = "#figure-power-iteration .legend button:nth-child(3)"


def opened(tab: Browser, path: Path, width: int = 1280, theme: str = "light") -> Browser:
    tab.look(width, theme)
    tab.open(path)
    return tab


def see_all(tab: Browser) -> None:
    """Scroll through the page as a reader would."""
    for i in range(tab.run("document.querySelectorAll('.panels').length")):
        row = f"document.querySelectorAll('.panels')[{i}]"
        tab.run(f"{row}.scrollIntoView({{block: 'center'}})")
        tab.until(f"[...{row}.querySelectorAll('.plot')].every((plot) => plot.dataset.drawn)")


def traces(tab: Browser) -> int:
    """How many lines stand in the first panel of power iteration."""
    return int(tab.run(f"{FIRST}.querySelectorAll('.scatterlayer .trace .js-line').length"))


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_every_figure_is_drawn_and_nothing_leaves_the_page(tab: Browser, page: Path, width: int, theme: str):
    opened(tab, page, width, theme)
    see_all(tab)
    drawn = tab.run(f"{EVERY}.map((plot) => plot.querySelectorAll('.js-line, .point path, .barlayer path').length)")
    assert len(drawn) > 40
    assert min(drawn) > 0
    assert tab.run("document.documentElement.scrollWidth") == width
    assert tab.requests() == [page.resolve().as_uri()]
    assert tab.complaints() == []


@pytest.mark.parametrize(("width", "theme"), [(1280, "dark"), (390, "light")])
def test_a_comparison_is_drawn_too(tab: Browser, tmp_path: Path, width: int, theme: str):
    path = write_compare_report(fake.comparison(), tmp_path / "compare.html")
    opened(tab, path, width, theme)
    see_all(tab)
    assert tab.run(f"{EVERY}.every((plot) => plot.querySelectorAll('.point').length > 4)")
    assert tab.run("document.documentElement.scrollWidth") == width
    assert tab.requests() == [path.resolve().as_uri()]
    assert tab.complaints() == []


def test_figures_far_away_wait_until_they_are_near(tab: Browser, page: Path):
    opened(tab, page)
    tab.until(f"{EVERY}[0].dataset.drawn")
    assert not tab.run(f"{EVERY}.at(-1).dataset.drawn")


def test_one_click_hides_a_scheme_in_all_panels_and_one_shows_it_again(tab: Browser, page: Path):
    opened(tab, page)
    tab.run(f"{FIRST}.scrollIntoView()")
    tab.until(f"{FIRST}.dataset.drawn")
    whole = traces(tab)
    group = tab.run(f"document.querySelector('{ENTRY}').value")
    plots = "[...document.querySelectorAll('#figure-power-iteration .plot')].filter((plot) => plot.dataset.drawn)"
    shown = f"{plots}.map((plot) => plot.data.some((t) => t.legendgroup === '{group}' && t.visible)).some(Boolean)"
    assert tab.run(shown)
    tab.click(ENTRY)
    tab.until(f"!({shown})")
    assert traces(tab) < whole
    assert tab.run(f"document.querySelector('{ENTRY}').getAttribute('aria-pressed')") == "false"
    tab.click(ENTRY)
    tab.until(shown)
    assert traces(tab) == whole


def test_a_double_click_shows_one_scheme_alone_and_then_all_again(tab: Browser, page: Path):
    opened(tab, page)
    pressed = "document.querySelectorAll('#figure-power-iteration .legend [aria-pressed=true]').length"
    whole = tab.run(pressed)
    tab.click(ENTRY, times=2)
    tab.until(f"{pressed} === 1")
    tab.click(ENTRY, times=2)
    tab.until(f"{pressed} === {whole}")


def test_figures_follow_the_theme_while_the_page_is_open(tab: Browser, page: Path):
    opened(tab, page)
    tab.run(f"{FIRST}.scrollIntoView()")
    tab.until(f"{FIRST}.dataset.drawn")
    tab.click(ENTRY)
    colours = f"[{FIRST}.layout.paper_bgcolor, {FIRST}.data.at(-1).line.color, {FIRST}.layout.font.color]"
    light = tab.run(colours)
    tab.look(1280, "dark")
    tab.until(f"{FIRST}.layout.paper_bgcolor === '#161b22'")
    dark = tab.run(colours)
    assert all(one != other and other.startswith("#") for one, other in zip(light, dark, strict=True))
    assert tab.run(f"document.querySelector('{ENTRY}').getAttribute('aria-pressed')") == "false"
    assert tab.run(f"{FIRST}.data.some((trace) => trace.visible === false)")


def test_pointing_at_a_line_tells_its_value(tab: Browser, page: Path):
    opened(tab, page)
    tab.run(f"{FIRST}.scrollIntoView({{block: 'center'}})")
    tab.until(f"{FIRST}.dataset.drawn")
    box = tab.run(f"{FIRST}.getBoundingClientRect().toJSON()")
    place = "(axis, value) => axis._offset + axis.d2p(value)"
    axes, line = f"{FIRST}._fullLayout", f"{FIRST}.data.at(-1)"
    x, y = tab.run(f"[({place})({axes}.xaxis, {line}.x[5]), ({place})({axes}.yaxis, {line}.y[5])]")
    words = f"{FIRST}.querySelector('.hoverlayer').textContent"
    tab.hover(box["x"] + x - 1, box["y"] + y)
    tab.hover(box["x"] + x, box["y"] + y)
    tab.until(words)
    told = tab.run(words)
    assert "round 5" in told
    assert "distance to the eigenvector 0." in told
    assert "±" in told
    assert "3 seeds" in told


def test_a_finger_on_a_figure_scrolls_the_page(tab: Browser, page: Path):
    opened(tab, page, 390)
    tab.command("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        tab.open(page)
        tab.run(f"{FIRST}.scrollIntoView({{block: 'center'}})")
        tab.until(f"{FIRST}.dataset.drawn")
        box = tab.run(f"{FIRST}.querySelector('.nsewdrag').getBoundingClientRect().toJSON()")
        x, y, before = box["x"] + 100, box["y"] + box["height"] / 2, tab.run("scrollY")
        tab.command("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        for step in range(10):
            tab.command("Input.dispatchTouchEvent", type="touchMove", touchPoints=[{"x": x, "y": y - 12 * step}])
        tab.command("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        tab.until(f"scrollY > {before} + 40")
    finally:
        tab.command("Emulation.setTouchEmulationEnabled", enabled=False)


def test_a_request_would_be_noticed(tab: Browser, tmp_path: Path):
    path = tmp_path / "talkative.html"
    path.write_text("<!doctype html><img src='http://192.0.2.1/pixel.png'><script>console.error('no')</script>")
    opened(tab, path)
    tab.run("new Promise((done) => setTimeout(done, 200))")
    assert "http://192.0.2.1/pixel.png" in tab.requests()
    assert any("no" in complaint for complaint in tab.complaints())
