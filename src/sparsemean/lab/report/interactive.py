"""Figure → what plotly.js draws, as plain data.

Colours are names of CSS variables, which the page looks up anew when the theme changes.
"""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from sparsemean.lab.report.extra import optional
from sparsemean.lab.report.figure import Figure, Line, Mark, Panel, Row
from sparsemean.lab.report.style import style_of, token
from sparsemean.lab.report.tables import Curve
from sparsemean.lab.report.ticks import log_ticks
from sparsemean.lab.report.words import number
from sparsemean.payload import Doubles

Json = dict[str, Any]

MARKERS_SHOWN = 9
HEIGHT = 270


def library() -> str:
    """The source of plotly.js, to be put into the page once."""
    source: str = optional("plotly.offline", "the report page").get_plotlyjs()
    return source


def drawn(figure: Figure, row: Row, panel: Panel) -> Json:
    """One panel: ``data`` and ``layout``."""
    draw = {"lines": _line, "points": _points, "bars": _bars}[figure.spec.kind]
    traces = [trace for line in panel.lines for trace in draw(figure, row, panel, line)]
    if panel.labels:
        traces.append(_labels(panel))
    return {"data": traces, "layout": _layout(figure, row, panel)}


def _line(figure: Figure, row: Row, panel: Panel, line: Line) -> list[Json]:
    style, colour, curve = style_of(line.name), token(line.name), line.measured
    traces = []
    if np.any(np.isfinite(curve.error) & (curve.error > 0)):
        x, y = band(curve, panel.scale.low if panel.scale.log else -math.inf)
        fill = {"fill": "toself", "fillcolor": colour, "opacity": 0.16, "line": {"width": 0}, "mode": "lines"}
        traces.append({"x": x, "y": y, **fill, "hoverinfo": "skip", **_owner(line)})
    if line.theory is not None:
        said = {"mode": "lines", "line": {"color": colour, "width": 1.2, "dash": "dash"}}
        traces.append({**_theory(figure, row, line), **said})
    look: Json = {"mode": "lines", "line": {"color": colour, "width": 2, "dash": style.dash}}
    if style.marker != "none":
        look["mode"] += "+markers"
        look["marker"] = {"color": colour, "symbol": style.marker, "size": 7, "maxdisplayed": MARKERS_SHOWN}
    traces.append({**_measured(figure, row, line), **look})
    return traces


def _points(figure: Figure, row: Row, panel: Panel, line: Line) -> list[Json]:
    style, colour, curve = style_of(line.name), token(line.name), line.measured
    traces = []
    if line.theory is not None:
        single = len(line.theory.x) == 1
        dash = {"mode": "markers", "marker": {"symbol": "line-ew", "size": 16, "line": {"color": colour, "width": 2}}}
        said = {"mode": "lines", "line": {"color": colour, "width": 2, "dash": style.dash}}
        traces.append({**_theory(figure, row, line), **(dash if single else said)})
    bars = {"type": "data", "array": _numbers(2 * curve.error), "color": colour, "thickness": 1.2, "width": 0}
    look: Json = {
        "mode": "markers",
        "marker": {
            "color": colour,
            "symbol": style.marker.replace("none", "circle"),
            "size": 6 if len(curve.x) > 1 else 10,
        },
    }
    if np.any(np.isfinite(curve.error)):
        look["error_y"] = bars
    traces.append({**_measured(figure, row, line), **look})
    return traces


def _bars(figure: Figure, row: Row, panel: Panel, line: Line) -> list[Json]:
    curve, (x, width) = line.measured, panel.bars(line)
    look: Json = {"type": "bar", "x": _numbers(x), "width": _numbers(width), "marker": {"color": token(line.name)}}
    look |= {"text": [number(value) for value in curve.mean.tolist()], "textposition": "inside", "textangle": 0}
    look |= {"textfont": {"color": "--card"}, "insidetextanchor": "middle"}
    if np.any(np.isfinite(curve.error)):
        array = _numbers(2 * curve.error)
        look["error_y"] = {"type": "data", "array": array, "color": "--ink", "thickness": 1.2, "width": 4}
    return [{**_measured(figure, row, line), **look}]


def _measured(figure: Figure, row: Row, line: Line) -> Json:
    curve = line.measured
    known = np.isfinite(curve.error[np.isfinite(curve.mean)])
    spread = f" ± %{{customdata:.2~g}}<br>{curve.seeds.max()} seeds" if known.size and known.all() else ""
    return {
        "x": _numbers(curve.x),
        "y": _numbers(curve.mean),
        "name": plain(style_of(line.name).label),
        "hovertemplate": _hover(figure, row, "%{y:.3~g}" + spread),
        **({"customdata": _numbers(2 * curve.error)} if spread else {}),
        **_owner(line),
    }


def _theory(figure: Figure, row: Row, line: Line) -> Json:
    curve = line.theory or line.measured
    name = f"{style_of(line.name).label}, {row.quantity.theory_label}"
    return {
        "x": _numbers(curve.x),
        "y": _numbers(curve.mean),
        "name": plain(name),
        "hovertemplate": _hover(figure, row, "%{y:.3~g}"),
        **_owner(line),
    }


def _owner(line: Line) -> Json:
    """Ties a trace to its entry in the legend, which the page itself draws."""
    return {"legendgroup": token(line.name)}


def _hover(figure: Figure, row: Row, value: str) -> str:
    where = "" if figure.spec.kind == "bars" else f"{plain(figure.spec.x_label)} %{{x:.4~g}}<br>"
    return f"<b>%{{fullData.name}}</b><br>{where}{plain(row.quantity.short)} {value}<extra></extra>"


def _labels(panel: Panel) -> Json:
    return {
        "x": [label.x for label in panel.labels],
        "y": [label.y for label in panel.labels],
        "text": [plain(label.text) for label in panel.labels],
        "mode": "text",
        "textposition": "top right",
        "textfont": {"color": "--ink", "size": 12},
        "hoverinfo": "skip",
    }


def band(curve: Curve, floor: float) -> tuple[list[float | None], list[float | None]]:
    """Outlines of mean ± 2 standard errors, one polygon per unbroken stretch; on a log axis it ends at the floor."""
    known = np.isfinite(curve.mean) & np.isfinite(curve.error)
    starts = np.flatnonzero(known & ~np.concatenate([[False], known[:-1]]))
    ends = np.flatnonzero(known & ~np.concatenate([known[1:], [False]])) + 1
    xs: list[float | None] = []
    ys: list[float | None] = []
    for start, end in zip(starts, ends, strict=True):
        x, mean, error = (part[start:end] for part in (curve.x, curve.mean, curve.error))
        low, high = np.maximum(mean - 2 * error, floor), np.maximum(mean + 2 * error, floor)
        xs += [*_numbers(np.concatenate([x, x[::-1]])), None]
        ys += [*_numbers(np.concatenate([high, low[::-1]])), None]
    return xs, ys


def _layout(figure: Figure, row: Row, panel: Panel) -> Json:
    return {
        "height": HEIGHT,
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
        axis["type"] = "log"
    if panel.ticks:
        axis |= {"tickvals": list(range(len(panel.ticks))), "ticktext": [plain(tick) for tick in panel.ticks]}
        axis |= {"showgrid": False, "range": [-0.6, len(panel.ticks) - 0.4]}
    return axis


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


def _numbers(values: Doubles) -> list[float | None]:
    """Five digits, which is more than a screen shows; None, a gap, for what is not finite."""
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values.tolist()]
