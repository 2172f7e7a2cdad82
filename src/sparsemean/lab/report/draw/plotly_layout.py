"""The plotly.js layout of one panel: axes, marks and margins. Colours are names of CSS variables."""

from __future__ import annotations

import html
import math
from typing import Any

from sparsemean.lab.report.figure.figure import AxisScale, Figure, Mark, Panel, PanelRow
from sparsemean.lab.report.figure.scale import x_range
from sparsemean.lab.report.figure.ticks import log_ticks

Json = dict[str, Any]


def layout(figure: Figure, row: PanelRow, panel: Panel) -> Json:
    """The ``layout`` that goes with the traces of this panel."""
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
        "annotations": [_annotation(mark, panel.scale) for mark in panel.marks],
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
        ticks = log_ticks(AxisScale(True, low, high))
        axis |= {"type": "log", "range": [math.log10(low), math.log10(high)], "tickmode": "array"}
        axis |= {"tickvals": [value for value, _ in ticks], "ticktext": [text for _, text in ticks]}
    if panel.ticks:
        axis |= {"tickvals": list(range(len(panel.ticks))), "ticktext": [plain(tick) for tick in panel.ticks]}
        axis |= {"showgrid": False, "range": [-0.6, len(panel.ticks) - 0.4]}
    return axis


def _y_axis(row: PanelRow, panel: Panel) -> Json:
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


def _annotation(mark: Mark, scale: AxisScale) -> Json:
    y = math.log10(mark.y) if scale.log else mark.y  # on a logarithmic axis plotly wants the logarithm here alone
    place: Json = {"xref": "paper", "x": 1, "xanchor": "right"} if mark.x is None else {"x": mark.x}
    place |= {"y": y, "yanchor": "bottom", "showarrow": False}
    return {**place, "text": plain(mark.label), "font": {"size": 11, "color": "--soft"}}


def plain(text: str) -> str:
    """Text with HTML escaped, since plotly takes some tags as formatting."""
    return html.escape(" ".join(text.split()), quote=False)
