"""A figure on a page: legend, sentences, panels, and its numbers as a table."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable

import numpy as np

from sparsemean.lab.numbers import page_number, with_margin
from sparsemean.lab.report.draw.screen import drawn
from sparsemean.lab.report.figure.figure import Figure, Line, PanelRow
from sparsemean.lab.report.page.elements import PageSection, grid, paragraphs
from sparsemean.lab.report.page.legend import legend

PLACES = 5
"""At so many places along the axis the table tells the numbers of a figure without time."""


def figure_section(figure: Figure, short: str | None = None, numbers: str = "") -> PageSection:
    """The section of one figure.

    Parameters
    ----------
    figure
        What it shows.
    short
        Its name in the navigation, instead of the spec's; empty for none.
    numbers
        HTML of the table behind the fold, instead of the figure's own.
    """
    rows = "".join(_row(figure, place, row) for place, row in enumerate(figure.rows))
    words = paragraphs(figure.takeaway, "takeaway") + paragraphs(figure.spec.caption, "caption")
    notes = "".join(paragraphs(note, "note") for note in figure.notes)
    table = f"<details><summary>The numbers</summary>{numbers or numbers_table(figure)}</details>"
    body = f"{words}{legend(figure.series, figure.spec.label, figure.folded)}{rows}{notes}{table}"
    named = f"Fig. {figure.spec.paper}" if figure.spec.paper else figure.spec.short or figure.name
    return PageSection(f"figure-{figure.name}", named if short is None else short, figure.spec.heading, body)


def _row(figure: Figure, place: int, row: PanelRow) -> str:
    panels = "".join(
        f'<div class="panel">{f"<h4>{html.escape(panel.title)}</h4>" if panel.title else ""}'
        f'<div class="plot" data-plot="{html.escape(_plot_name(figure, place, i))}" role="group" tabindex="0" '
        f'aria-label="{html.escape(_spoken(row, panel.title))}"><p class="tip" role="status" hidden></p></div></div>'
        for i, panel in enumerate(row.panels)
    )
    kind = (" alone" if len(row.panels) == 1 else "") + (" tall" if figure.spec.tall else "")
    heading = row.quantity.label + (" (log scale)" if all(panel.scale.log for panel in row.panels) else "")
    return (
        f'<h3>{html.escape(heading[:1].upper() + heading[1:])}</h3><div class="panels{kind}" '
        f'style="--columns:{figure.columns}">{panels}</div>'
    )


def _spoken(row: PanelRow, title: str) -> str:
    what = f"{row.quantity.label}{', ' + title if title else ''}"
    return f"{what}; arrow keys go from point to point, the numbers are in the table below"


def _plot_name(figure: Figure, row: int, panel: int) -> str:
    return f"{figure.name}/{row}/{panel}"


def plots(figures: Iterable[Figure]) -> str:
    """What the page's script needs for all panels of these figures, as JSON that can stand in a script element."""
    plots = {
        _plot_name(figure, r, p): drawn(figure, row, panel)
        for figure in figures
        for r, row in enumerate(figure.rows)
        for p, panel in enumerate(row.panels)
    }
    # "<" is the one character by which text could end the script element that it stands in.
    return json.dumps(plots, allow_nan=False, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def numbers_table(figure: Figure) -> str:
    """The figure's numbers, for quoting and screen readers: at the ends of lines; without time, at a few places."""
    heads = ["setting", figure.spec.series, figure.spec.x_label or "for"]
    labels = [row.quantity.short for row in figure.rows]
    rows = []
    for panels in zip(*(row.panels for row in figure.rows), strict=True):
        for name in dict.fromkeys(line.name for panel in panels for line in panel.lines):
            own = [next((line for line in panel.lines if line.name == name), None) for panel in panels]
            for place in _places(figure, next(line for line in own if line)):
                at = panels[0].ticks[int(place)] if panels[0].ticks else page_number(place)
                texts = [panels[0].title or "–", figure.spec.label(name)]
                cells = [f"<td>{html.escape(text)}" for text in texts]
                cells += [
                    f'<td class="number">{html.escape(text)}' for text in (at, *(_at(line, place) for line in own))
                ]
                rows.append("".join(cells))
    return grid([*heads, *labels], rows, [heads[2], *labels], cards=False)


def _places(figure: Figure, line: Line) -> list[float]:
    x = line.measured.x
    if figure.spec.kind == "lines":
        return [float(x[-1])]
    return [float(x[i]) for i in np.unique(np.linspace(0, len(x) - 1, min(len(x), PLACES)).round().astype(int))]


def _at(line: Line | None, place: float) -> str:
    if line is None or place not in line.measured.x:
        return "–"
    found = int(np.argmax(line.measured.x == place))
    mean, margin = float(line.measured.mean[found]), float(line.measured.margin[found])
    return with_margin(mean, margin)
