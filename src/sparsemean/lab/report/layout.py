"""Axes, marks and surroundings of one panel, as plotly.js wants them; colours are names of CSS variables."""

from __future__ import annotations

import html
import math
from typing import Any

from sparsemean.lab.report.figure import Figure, Mark, Panel, Row, Scale
from sparsemean.lab.report.ticks import log_ticks

Json = dict[str, Any]


def layout(figure: Figure, row: Row, panel: Panel) -> Json:
    return {
        "autosize": True,
        "margin": {"l": 44, "r": 12, "t": 20 if panel.marks else 8, "b": 40},
        "paper_bgcolor": "--card",
        "plot_bgcolor": "--card",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "--soft"},
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "--card", "bordercolor": "--line", "font": {"color": "--ink"}, "align": "left"},
        "xaxis": _x_axis(figure, panel),
        "yaxis": _y_axis(row, panel),
        "shapes": [_shape(mark) for mark in panel.marks],
        "annotations": [_annotation(mark) for mark in panel.marks],
        "barmode": "overlay",
        "uirevision": "kept",
    }


_AXIS: Json = {
    "gridcolor": "--grid",
    "linecolor": "--line",
    "tickcolor": "--line",
    "zeroline": False,
    "showline": True,
    "ticks": "outside",
    "automargin": True,
    "nticks": 7,
}


def _x_axis(figure: Figure, panel: Panel) -> Json:
    axis = {**_AXIS, "title": {"text": plain(figure.spec.x_label), "standoff": 6}}
    if figure.spec.x_log:
        low, high = x_range(panel)
        ticks = log_ticks(Scale(True, low, high))
        axis |= {"type": "log", "range": [math.log10(low), math.log10(high)], "tickmode": "array"}
        axis |= {"tickvals": [value for value, _ in ticks], "ticktext": [text for _, text in ticks]}
    if panel.ticks:
        axis |= {"tickvals": list(range(len(panel.ticks))), "ticktext": [plain(tick) for tick in panel.ticks]}
        axis |= {"showgrid": False, "range": [-0.6, len(panel.ticks) - 0.4]}
    return axis


def x_range(panel: Panel) -> tuple[float, float]:
    """Of a logarithmic axis, with some room to either side of the points that can be seen."""
    points = [point for line in panel.lines for point in zip(line.measured.x, line.measured.mean, strict=True)]
    seen = [float(x) for x, y in points if panel.scale.low <= y <= panel.scale.high]
    places = [x for x in seen if 0 < x < math.inf]
    low, high = (min(places), max(places)) if places else (1.0, 10.0)
    room = max(1.1, (high / low) ** 0.06)
    return low / room, high * room


def _y_axis(row: Row, panel: Panel) -> Json:
    scale = panel.scale
    axis = {**_AXIS, "range": [scale.low, scale.high], "type": "linear"}
    if row.quantity.percent:
        axis["tickformat"] = ".0%"
    if scale.log:
        ticks = log_ticks(scale)
        axis |= {"type": "log", "range": [math.log10(scale.low), math.log10(scale.high)], "tickmode": "array"}
        axis |= {"tickvals": [value for value, _ in ticks], "ticktext": [text for _, text in ticks]}
    return axis


def _shape(mark: Mark) -> Json:
    ends: Json = {"xref": "paper", "x0": 0, "x1": 1} if mark.x is None else {"x0": mark.x - 0.4, "x1": mark.x + 0.4}
    line = {"color": "--soft", "width": 1.5, "dash": "dash"}
    return {"type": "line", **ends, "y0": mark.y, "y1": mark.y, "line": line}


def _annotation(mark: Mark) -> Json:
    place: Json = {"xref": "paper", "x": 1, "xanchor": "right"} if mark.x is None else {"x": mark.x}
    place |= {"y": mark.y, "yanchor": "bottom", "showarrow": False}
    return {**place, "text": plain(mark.label), "font": {"size": 11, "color": "--soft"}}


def plain(text: str) -> str:
    """Text as plotly must be given it, since it takes some tags for formatting."""
    return html.escape(" ".join(text.split()), quote=False)
