"""A figure's numbers as a table: for those who cannot see the lines, and for those who want to quote them."""

from __future__ import annotations

import html
import math

import numpy as np

from sparsemean.lab.report.figure import Figure, Line
from sparsemean.lab.report.style import style_of
from sparsemean.lab.report.verdicts import grid
from sparsemean.lab.report.words import number

PLACES = 5


def numbers_table(figure: Figure) -> str:
    """What the lines say at their ends; in a figure without time, at a few places."""
    heads = ["setting", figure.spec.series, figure.spec.x_label or "for"]
    labels = [row.quantity.short for row in figure.rows]
    rows = []
    for panels in zip(*(row.panels for row in figure.rows), strict=True):
        for name in dict.fromkeys(line.name for panel in panels for line in panel.lines):
            own = [next((line for line in panel.lines if line.name == name), None) for panel in panels]
            for place in _places(figure, next(line for line in own if line)):
                at = panels[0].ticks[int(place)] if panels[0].ticks else number(place)
                texts = [panels[0].title or "–", style_of(name).label]
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
    mean, error = float(line.measured.mean[found]), float(line.measured.error[found])
    return number(mean) + (f" ± {number(2 * error)}" if math.isfinite(error) else "")
