"""What a figure cannot show is said below it: who diverged, who left the axis, what has no place on it."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from sparsemean.lab.report.figure import Figure, Line, Panel, Row
from sparsemean.lab.report.scale import finite
from sparsemean.lab.report.style import style_of
from sparsemean.lab.report.words import listed, number


def notes(figure: Figure) -> list[str]:
    """Sentences, each only where there is something to say."""
    found = [*_diverged(figure)]
    for row in figure.rows:
        found += [*_above(row), *_below(row)]
    return list(dict.fromkeys(found))


def _where(panel: Panel) -> str:
    return f" at {panel.title}" if panel.title else ""


def _diverged(figure: Figure) -> Iterator[str]:
    for row in figure.rows:
        for panel in row.panels:
            for line in panel.lines:
                if np.any(line.measured.lost):
                    yield f"{style_of(line.name).label} diverged{_where(panel)}: {_loss(figure, line)}."


def _loss(figure: Figure, line: Line) -> str:
    curve = line.measured
    first = int(np.argmax(curve.lost > 0))
    seeds = f"{int(curve.lost.max())} of {int(curve.seeds[first])} seeds"
    at = f"from {figure.spec.x_label} {number(float(curve.x[first]))} on" if figure.spec.kind == "lines" else "there"
    return f"its numbers left all bounds in {seeds}, {at} it is not drawn"


def _above(row: Row) -> Iterator[str]:
    """Lines that the axis was not stretched for."""
    peaks: dict[str, float] = {}
    for panel in row.panels:
        for line in panel.lines:
            peak = float(finite(line.measured).max(initial=-math.inf))
            if peak > row.scale.high:
                peaks[line.name] = max(peak, peaks.get(line.name, -math.inf))
    if peaks:
        who = listed([f"{style_of(name).label} (up to {number(peak)})" for name, peak in peaks.items()])
        yield f"Above the upper edge of “{row.quantity.label}”: {who}."


def _below(row: Row) -> Iterator[str]:
    """Lines of which a logarithmic axis shows nothing, such as an error of zero."""
    if not row.scale.log:
        return
    lines = [line for panel in row.panels for line in panel.lines]
    hidden = [
        name
        for name in dict.fromkeys(line.name for line in lines)
        if (own := np.concatenate([finite(line.measured) for line in lines if line.name == name])).size
        and own.max() < row.scale.low
    ]
    if hidden:
        who = listed([style_of(name).label for name in hidden])
        yield f"Below the lower edge of “{row.quantity.label}”, being exact up to rounding: {who}."
