"""What a figure cannot show is said below it: who diverged, who left the axis, what has no place on it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sparsemean.lab.report.figure import Figure, Line, Panel
from sparsemean.lab.report.scale import finite
from sparsemean.lab.report.style import style_of
from sparsemean.lab.report.words import listed, number


def notes(figure: Figure) -> list[str]:
    """Sentences, each only where there is something to say."""
    return list(dict.fromkeys([*_diverged(figure), *_above(figure), *_below(figure)]))


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
        yield f"{style_of(name).label} diverged, and is drawn no further than its numbers are finite: {where}."


def _loss(figure: Figure, line: Line) -> str:
    curve = line.measured
    first = int(np.argmax(curve.lost > 0))
    seeds = int(curve.seeds[first])
    who = f"{int(curve.lost.max())} of {seeds} seeds, " if seeds > 1 else ""
    return f"{who}from {figure.spec.x_label} {number(float(curve.x[first]))} on"


def _above(figure: Figure) -> Iterator[str]:
    """Lines for which the axis was not stretched; who diverged has been named already."""
    peaks: dict[str, float] = {}
    gone = {line.name for _, line in _lines(figure) if np.any(line.measured.lost)}
    for panel, line in _lines(figure):
        peak = float(finite(line.measured).max(initial=-math.inf))
        if peak > panel.scale.high and line.name not in gone:
            peaks[line.name] = max(peak, peaks.get(line.name, -math.inf))
    if peaks:
        who = listed([f"{style_of(name).label} (up to {number(peak)})" for name, peak in peaks.items()])
        yield f"Leaving a panel at its upper edge: {who}."


def _below(figure: Figure) -> Iterator[str]:
    """Lines of which a logarithmic axis shows nothing, such as an error of zero."""
    for row in figure.rows:
        inside: dict[str, bool] = {}
        for panel in row.panels:
            for line in panel.lines:
                highest = float(finite(line.measured).max(initial=-math.inf))
                hidden = panel.scale.log and -math.inf < highest < panel.scale.low
                inside[line.name] = inside.get(line.name, False) or not hidden
        if missing := [style_of(name).label for name, seen in inside.items() if not seen]:
            yield f"Not drawn, since its {row.quantity.short} is zero or nearly so: {listed(missing)}."
