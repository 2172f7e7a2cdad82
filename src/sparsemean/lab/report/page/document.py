"""A whole page as one HTML file that needs nothing else: no network, no folder beside it."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from os import PathLike
from pathlib import Path

from sparsemean.lab.report.draw.symbols import symbols
from sparsemean.lab.report.figure.figure import Figure
from sparsemean.lab.report.page.elements import PageSection, paragraphs
from sparsemean.lab.report.page.figure_section import plots
from sparsemean.lab.report.page.legend import palette

# The browser itself refuses every request; styles and scripts are the ones in this file.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"

READING = (
    "Click or tap a name above a figure to hide or show it; double-click, or hold Shift, to see it alone. Point at a "
    "line to read its values, or move through it with the arrow keys; drag to zoom, double-click or press Escape to go "
    "back."
)


def document(
    title: str,
    intro: str,
    badges: Iterable[str],
    sections: Sequence[PageSection],
    figures: Iterable[Figure],
    footer: str,
    top: str = "",
    looks: Iterable[str] = (),
) -> str:
    """The page as HTML.

    Parameters
    ----------
    title, intro
        Plain text; an empty line in the intro begins a new paragraph.
    badges
        HTML of the short verdicts below the intro.
    sections
        In order, also that of the navigation.
    figures
        Those that the sections show; their data and colours go into the page.
    footer, top
        HTML: at the end, and below the intro.
    looks
        Names that have a colour on the page though no figure shows them.
    """
    shown = list(figures)
    css = _asset("page.css") + palette([*looks, *(name for figure in shown for name in figure.series)])
    entries = [(html.escape(section.name), html.escape(section.short)) for section in sections if section.short]
    links = "".join(f'<li><a href="#{name}">{short}</a>' for name, short in entries)
    body = "".join(_section(section) for section in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{html.escape(title)}</title>\n<link rel="icon" href="data:,">\n'
        f"<style>\n{css}</style>\n</head>\n<body>\n"
        f"{symbols()}\n<header>\n<h1>{html.escape(title)}</h1>\n{paragraphs(intro, 'lead')}{top}"
        f"{_counts(badges)}</header>\n"
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>\n<main>\n'
        f"<noscript><p>Figures need JavaScript; tables do not.</noscript>\n{body}</main>\n<footer>{footer}</footer>\n"
        f'<script type="application/json" id="figures">{plots(shown)}</script>\n'
        f"<script>\n{_asset('plot.js')}</script>\n<script>\n{_asset('page.js')}</script>\n</body>\n</html>\n"
    )


def _counts(badges: Iterable[str]) -> str:
    items = "".join(f"<li>{badge}" for badge in badges)
    return f'<ul class="counts">{items}</ul>\n' if items else ""


def save_page(page: str, path: str | PathLike[str]) -> Path:
    """Write the page to a file, whose folder is made where it is missing; returns its path."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page, encoding="utf-8")
    return target


def run_again(command: str, versions: Iterable[str], attributions: Mapping[str, str]) -> PageSection:
    """The section about how to make this page again, and whose data is in it."""
    body = f"<pre><code>{html.escape(command)}</code></pre>" if command else ""
    body += paragraphs(f"Made with sparsemean {', '.join(versions)}.")
    body += "".join(f"<p>{html.escape(name)}: {html.escape(text)}</p>" for name, text in attributions.items())
    return PageSection("again", "rerun", "How to run it again, and whose data this is", body)


def _section(section: PageSection) -> str:
    name, title = html.escape(section.name), html.escape(section.title)
    return f'<section id="{name}">\n<h2>{title}</h2>\n{section.body}</section>\n'


def _asset(name: str) -> str:
    return (files("sparsemean.lab.report.page") / "assets" / name).read_text(encoding="utf-8")
