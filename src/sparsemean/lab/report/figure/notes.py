"""Notes below a figure about what it cannot show: lines that diverged, left the axis or have no place on it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sparsemean.lab.numbers import page_number
from sparsemean.lab.report.figure.figure import Figure, Line, Panel
from sparsemean.lab.report.figure.labels import enumeration


def notes(figure: Figure) -> list[str]:
    """The sentences, each once."""
    return list(dict.fromkeys([*_diverged(figure), *above(figure), *below(figure), *_axes(figure)]))


def _lines(figure: Figure) -> Iterator[tuple[Panel, Line]]:
    return ((panel, line) for row in figure.rows for panel in row.panels for line in panel.lines)


def _diverged(figure: Figure) -> Iterator[str]:
    """One sentence per scheme, naming the panels."""
    lost: dict[str, dict[str, str]] = {}
    for panel, line in _lines(figure):
        if np.any(line.measured.lost):
            lost.setdefault(line.name, {}).setdefault(panel.title, _loss(figure, line))
    for name, places in lost.items():
        where = "; ".join(f"{title} ({loss})" if title else loss for title, loss in places.items())
        yield f"{figure.spec.label(name)} diverged, and is drawn no further than its numbers are finite: {where}."


def _loss(figure: Figure, line: Line) -> str:
    curve = line.measured
    first = int(np.argmax(curve.lost > 0))
    seeds = int(curve.seeds[first])
    who = f"{int(curve.lost.max())} of {seeds} seeds, " if seeds > 1 else ""
    return f"{who}from {figure.spec.x_label} {page_number(float(curve.x[first]))} on"


def above(figure: Figure) -> Iterator[str]:
    """Name the lines that leave the axis at its top, but for folded ones and those that have a note as diverged."""
    gone = {line.name for _, line in _lines(figure) if np.any(line.measured.lost)} | set(figure.folded)
    peaks: dict[str, float] = {}
    for panel, line in _lines(figure):
        values = line.measured.finite_means
        if line.name not in gone and values.max(initial=-math.inf) > panel.scale.high:
            peaks[line.name] = max(float(values.max()), peaks.get(line.name, -math.inf))
    if peaks:
        who = enumeration([f"{figure.spec.label(name)} (up to {page_number(peak)})" for name, peak in peaks.items()])
        yield f"Leaving a panel at its upper edge: {who}."


def below(figure: Figure) -> Iterator[str]:
    """Name the lines, but for folded ones, that leave a logarithmic axis at its bottom or are all below it."""
    for row in figure.rows:
        lowest: dict[str, float] = {}
        highest: dict[str, float] = {}
        for panel in row.panels:
            for line in (line for line in panel.lines if line.name not in figure.folded):
                values = line.measured.finite_means
                if panel.scale.log and len(values) and values.min() < panel.scale.low:
                    lowest[line.name] = min(float(values.min()), lowest.get(line.name, math.inf))
                # Relative to the axis, since panels may have different ones.
                top = float(values.max(initial=-math.inf)) / panel.scale.low if panel.scale.log else math.inf
                highest[line.name] = max(top, highest.get(line.name, -math.inf))
        hidden = [name for name in lowest if highest[name] < 1]
        falling = {name: low for name, low in lowest.items() if name not in hidden}
        if falling:
            who = enumeration(
                [f"{figure.spec.label(name)} (down to {page_number(low)})" for name, low in falling.items()]
            )
            yield f"Leaving a panel at its lower edge: {who}."
        if hidden:
            who = enumeration([figure.spec.label(name) for name in hidden])
            yield f"Not drawn, since its {row.quantity.short} is zero or nearly so: {who}."


def _axes(figure: Figure) -> Iterator[str]:
    differ = [row.quantity.short for row in figure.rows if len({panel.scale for panel in row.panels}) > 1]
    if differ:
        yield f"Mind the vertical axes, which differ from panel to panel: {enumeration(differ)}."
