"""The page in a real browser: it draws, answers clicks, follows the theme, fits a phone, and asks nobody anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from sparsemean.lab.report import write_compare_report

from ....browser import Browser
from .. import fake

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
    return int(tab.run(f"{FIRST}.querySelectorAll('.line').length"))


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_every_figure_is_drawn_and_nothing_leaves_the_page(tab: Browser, page: Path, width: int, theme: str):
    opened(tab, page, width, theme)
    see_all(tab)
    drawn = tab.run(f"{EVERY}.map((plot) => plot.querySelectorAll('.curve, .line use, .line rect').length)")
    assert len(drawn) > 40
    assert min(drawn) > 0
    heights = "[legend.offsetHeight, legend.closest('section').querySelector('.plot').offsetHeight]"
    legends = tab.run(f"[...document.querySelectorAll('section .legend')].map((legend) => {heights})")
    assert len(legends) == 10
    assert [pair for pair in legends if pair[0] > pair[1]] == []
    assert tab.run("document.documentElement.scrollWidth") == width
    assert tab.requests() == [page.resolve().as_uri()]
    assert tab.complaints() == []


@pytest.mark.parametrize(("width", "theme"), [(1280, "dark"), (390, "light")])
def test_a_comparison_is_drawn_too(tab: Browser, tmp_path: Path, width: int, theme: str):
    path = write_compare_report(fake.comparison(), tmp_path / "compare.html")
    opened(tab, path, width, theme)
    see_all(tab)
    assert tab.run(f"{EVERY}.every((plot) => plot.querySelectorAll('.line use').length > 4)")
    assert tab.run("document.querySelectorAll('.dots > div').length") == 11
    assert tab.run("document.querySelector('.legend').offsetHeight") <= tab.run(f"{EVERY}[0].offsetHeight")
    assert tab.run("document.documentElement.scrollWidth") == width
    assert tab.requests() == [path.resolve().as_uri()]
    assert tab.complaints() == []


def test_code_is_copied_by_a_key(tab: Browser, tmp_path: Path):
    path = write_compare_report({**fake.comparison(), "code": 'sm.named("rand-k", k=9)'}, tmp_path / "compare.html")
    opened(tab, path)
    tab.run("document.addEventListener('copy', () => { document.title = String(getSelection()) })")
    tab.run("document.querySelector('.copy').focus()")
    tab.press("Enter", "\r")
    tab.until("document.querySelector('.copy').textContent !== 'Copy'")
    assert tab.run("String(getSelection())") == 'sm.named("rand-k", k=9)'


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
    shown = f"document.querySelectorAll(`#figure-power-iteration .line[style*='{group}']`).length > 0"
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


def test_a_key_shows_one_scheme_alone(tab: Browser, page: Path):
    opened(tab, page)
    tab.run(f"document.querySelector('{ENTRY}').focus()")
    tab.press("Enter", "\r", shift=True)
    tab.until("document.querySelectorAll('#figure-power-iteration .legend [aria-pressed=true]').length === 1")


def test_figures_follow_the_theme_while_the_page_is_open(tab: Browser, page: Path):
    opened(tab, page)
    tab.run(f"{FIRST}.scrollIntoView()")
    tab.until(f"{FIRST}.dataset.drawn")
    curve, text = (f"getComputedStyle({FIRST}.querySelector('{name}'))" for name in (".curve", "text"))
    colours = f"[{curve}.stroke, {text}.fill, getComputedStyle({FIRST}.closest('section')).backgroundColor]"
    light = tab.run(colours)
    tab.look(1280, "dark")
    tab.until(f"{colours}[2] === 'rgb(22, 27, 34)'")
    assert all(one != other and other.startswith("rgb(") for one, other in zip(light, tab.run(colours), strict=True))


def near_first(tab: Browser, page: Path) -> str:
    """The page with its first panel of power iteration in sight; the words beside the point at hand."""
    opened(tab, page)
    tab.run(f"{FIRST}.scrollIntoView({{block: 'center'}})")
    tab.until(f"{FIRST}.dataset.drawn")
    return f"({FIRST}.querySelector('.tip').hidden ? '' : {FIRST}.querySelector('.tip').textContent)"


def test_pointing_at_a_line_tells_its_value(tab: Browser, page: Path):
    words = near_first(tab, page)
    box = tab.run(f"{FIRST}.querySelector('.line:last-child use:nth-of-type(3)').getBoundingClientRect().toJSON()")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.hover(x - 1, y)
    tab.hover(x, y)
    tab.until(words)
    told = tab.run(words)
    assert "round 4" in told
    assert "distance to the eigenvector 0." in told
    assert "±" in told
    assert "3 seeds" in told


def test_arrow_keys_go_through_points_and_lines(tab: Browser, page: Path):
    words = near_first(tab, page)
    tab.run(f"{FIRST}.focus()")
    tab.press("ArrowRight")
    assert "round 0" in tab.run(words)
    tab.press("ArrowRight")
    first = tab.run(words)
    assert "round 1" in first
    tab.press("ArrowDown")
    other = tab.run(words)
    assert "round 1" in other
    assert other != first
    tab.press("Escape")
    assert tab.run(words) == ""


def test_dragging_zooms_and_escape_goes_back(tab: Browser, page: Path):
    near_first(tab, page)
    numbers = f"[...{FIRST}.querySelectorAll('text')].map((text) => text.textContent).join()"
    whole = tab.run(numbers)
    box = tab.run(f"{FIRST}.getBoundingClientRect().toJSON()")
    places = [(box["x"] + part * box["width"], box["y"] + part * box["height"]) for part in (0.4, 0.7)]
    for kind, (x, y) in zip(
        ("mousePressed", "mouseMoved", "mouseReleased"), (places[0], *[places[1]] * 2), strict=True
    ):
        tab.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)
    tab.until(f"{numbers} !== {whole!r}")
    tab.run(f"{FIRST}.focus()")
    tab.press("Escape")
    assert tab.run(numbers) == whole


def test_printed_nothing_is_missing(tab: Browser, page: Path):
    opened(tab, page)
    tab.run("dispatchEvent(new Event('beforeprint'))")
    assert tab.run(f"{EVERY}.every((plot) => plot.dataset.drawn)")
    assert tab.run("[...document.querySelectorAll('details.group')].every((group) => group.open)")


def test_a_finger_on_a_figure_scrolls_the_page(tab: Browser, page: Path):
    opened(tab, page, 390)
    tab.command("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        tab.open(page)
        tab.run(f"{FIRST}.scrollIntoView({{block: 'center'}})")
        tab.until(f"{FIRST}.dataset.drawn")
        box = tab.run(f"{FIRST}.getBoundingClientRect().toJSON()")
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
