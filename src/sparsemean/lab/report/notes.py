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
        yield f"{style_of(name).label} diverged, and is drawn no further than its numbers are finite: {where}."


def _loss(figure: Figure, line: Line) -> str:
    curve = line.measured
    first = int(np.argmax(curve.lost > 0))
    seeds = int(curve.seeds[first])
    who = f"{int(curve.lost.max())} of {seeds} seeds, " if seeds > 1 else ""
    return f"{who}from {figure.spec.x_label} {number(float(curve.x[first]))} on"


def above(figure: Figure) -> Iterator[str]:
    """Lines for which the axis was not stretched; who diverged has been named already."""
    gone = {line.name for _, line in _lines(figure) if np.any(line.measured.lost)}
    peaks: dict[str, float] = {}
    for panel, line in _lines(figure):
        values = finite(line.measured)
        if line.name not in gone and values.max(initial=-math.inf) > panel.scale.high:
            peaks[line.name] = max(float(values.max()), peaks.get(line.name, -math.inf))
    if peaks:
        who = listed([f"{style_of(name).label} (up to {number(peak)})" for name, peak in peaks.items()])
        yield f"Leaving a panel at its upper edge: {who}."


def below(figure: Figure) -> Iterator[str]:
    """Lines that fall out of a logarithmic axis, or of which it shows nothing, such as an error of zero."""
    for row in figure.rows:
        lowest: dict[str, float] = {}
        highest: dict[str, float] = {}
        for panel in row.panels:
            for line in panel.lines:
                values = finite(line.measured)
                if panel.scale.log and len(values) and values.min() < panel.scale.low:
                    lowest[line.name] = min(float(values.min()), lowest.get(line.name, math.inf))
                # Relative to the axis, since panels may have different ones.
                top = float(values.max(initial=-math.inf)) / panel.scale.low if panel.scale.log else math.inf
                highest[line.name] = max(top, highest.get(line.name, -math.inf))
        hidden = [name for name in lowest if highest[name] < 1]
        falling = {name: low for name, low in lowest.items() if name not in hidden}
        if falling:
            who = listed([f"{style_of(name).label} (down to {number(low)})" for name, low in falling.items()])
            yield f"Leaving a panel at its lower edge: {who}."
        if hidden:
            who = listed([style_of(name).label for name in hidden])
            yield f"Not drawn, since its {row.quantity.short} is zero or nearly so: {who}."


def _axes(figure: Figure) -> Iterator[str]:
    differ = [row.quantity.short for row in figure.rows if len({panel.scale for panel in row.panels}) > 1]
    if differ:
        yield f"Mind the vertical axes, which differ from panel to panel: {listed(differ)}."
