"""One HTML file that needs nothing else: no network, no folder beside it."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

from sparsemean.lab.report.figure import Figure, Row
from sparsemean.lab.report.interactive import drawn, library
from sparsemean.lab.report.legend import legend, palette
from sparsemean.lab.report.numbers import numbers_table

# The browser itself refuses every request; styles and scripts are the ones in this file.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

READING = (
    "Click or tap a name above a figure to hide or show it, double-click to see it alone. Point at a line to read its "
    "values; drag to zoom, double-click to go back."
)


@dataclass(frozen=True)
class Section:
    """A part of the page; ``body`` is HTML, the rest is text."""

    name: str
    short: str
    title: str
    body: str


def document(
    title: str, intro: str, badges: Iterable[str], sections: Sequence[Section], figures: Iterable[Figure], footer: str
) -> str:
    """The whole page; ``badges`` and ``footer`` are HTML."""
    shown = list(figures)
    css = _asset("page.css") + palette(name for figure in shown for name in figure.series)
    entries = [(html.escape(section.name), html.escape(section.short)) for section in sections]
    links = "".join(f'<li><a href="#{name}">{short}</a>' for name, short in entries)
    body = "".join(_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{html.escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{css}</style>\n</head>\n<body>\n"
        f"<header>\n<h1>{html.escape(title)}</h1>\n{paragraphs(intro, 'lead')}"
        f'<ul class="counts">{"".join(f"<li>{badge}" for badge in badges)}</ul>\n</header>\n'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>\n'
        f"<noscript><p>Figures need JavaScript; tables do not.</noscript>\n{body}</main>\n<footer>{footer}</footer>\n"
        f'<script type="application/json" id="figures">{_plots(shown)}</script>\n'
        f"<script>{library()}</script>\n<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"
    )


def paragraphs(text: str, kind: str = "") -> str:
    """Text as HTML; an empty line begins a new paragraph."""
    attribute = f' class="{kind}"' if kind else ""
    return "".join(f"<p{attribute}>{html.escape(part)}</p>\n" for part in text.split("\n\n") if part.strip())


def figure_section(figure: Figure, short: str = "") -> Section:
    """A figure with its legend, its words and its numbers."""
    rows = "".join(_row(figure, place, row) for place, row in enumerate(figure.rows))
    words = paragraphs(figure.takeaway, "takeaway") + paragraphs(figure.spec.caption, "caption")
    notes = "".join(paragraphs(note, "note") for note in figure.notes)
    table = f"<details><summary>The numbers</summary>{numbers_table(figure)}</details>"
    body = f"{words}{legend(figure.series)}{rows}{notes}{table}"
    return Section(f"figure-{figure.name}", short or figure.spec.short or figure.name, figure.spec.title, body)


def run_again(command: str, versions: Iterable[str], attributions: Mapping[str, str]) -> Section:
    """How to get this page again, and whose data is in it."""
    body = f"<pre><code>{html.escape(command)}</code></pre>" if command else ""
    body += paragraphs(f"Made with sparsemean {', '.join(versions)}.")
    body += "".join(f"<p>{html.escape(name)}: {html.escape(text)}</p>" for name, text in attributions.items())
    return Section("again", "rerun", "How to run it again, and whose data this is", body)


def _section(section: Section) -> str:
    name, title = html.escape(section.name), html.escape(section.title)
    return f'<section id="{name}">\n<h2>{title}</h2>\n{section.body}</section>\n'


def _row(figure: Figure, place: int, row: Row) -> str:
    panels = "".join(
        f'<div class="panel">{f"<h4>{html.escape(panel.title)}</h4>" if panel.title else ""}'
        f'<div class="plot" data-plot="{html.escape(_plot_name(figure, place, i))}" role="img" '
        f'aria-label="{html.escape(_spoken(row, panel.title))}"></div></div>'
        for i, panel in enumerate(row.panels)
    )
    alone = " alone" if len(row.panels) == 1 else ""
    heading = row.quantity.label + (" (log scale)" if all(panel.scale.log for panel in row.panels) else "")
    return (
        f'<h3>{html.escape(heading[:1].upper() + heading[1:])}</h3><div class="panels{alone}" '
        f'style="--columns:{figure.columns}">{panels}</div>'
    )


def _spoken(row: Row, title: str) -> str:
    return f"{row.quantity.label}{', ' + title if title else ''}; the numbers are in the table below"


def _plot_name(figure: Figure, row: int, panel: int) -> str:
    return f"{figure.name}/{row}/{panel}"


def _plots(figures: Iterable[Figure]) -> str:
    plots = {
        _plot_name(figure, r, p): drawn(figure, row, panel)
        for figure in figures
        for r, row in enumerate(figure.rows)
        for p, panel in enumerate(row.panels)
    }
    # "<" is the one character by which text could end the script element that it stands in.
    return json.dumps(plots, allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (files("sparsemean.lab.report") / "assets" / name).read_text(encoding="utf-8")
