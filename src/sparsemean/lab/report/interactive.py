"""Figure → what plotly.js draws, as plain data. Colours are names of CSS variables, which the page looks up anew when
the theme changes."""

from __future__ import annotations

import html
import math
from typing import Any

import numpy as np

from sparsemean.lab.report.extra import optional
from sparsemean.lab.report.figure import Figure, Line, Panel, Row
from sparsemean.lab.report.style import style_of, token
from sparsemean.lab.report.tables import Curve
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
    traces = [trace for line in panel.lines for trace in draw(figure, row, line)]
    if panel.labels:
        traces.append(_labels(panel))
    return {"data": traces, "layout": _layout(figure, row, panel)}


def _line(figure: Figure, row: Row, line: Line) -> list[Json]:
    style, colour, curve = style_of(line.name), token(line.name), line.measured
    traces = []
    if np.any(np.isfinite(curve.error) & (curve.error > 0)):
        x, y = band(curve, row.scale.low if row.scale.log else -math.inf)
        fill = {"fill": "toself", "fillcolor": colour, "opacity": 0.16, "line": {"width": 0}, "mode": "lines"}
        traces.append({"x": x, "y": y, **fill, "hoverinfo": "skip", **_owner(line)})
    if line.theory is not None:
        said = {"mode": "lines", "line": {"color": colour, "width": 2, "dash": "dot"}}
        traces.append({**_theory(figure, row, line), **said})
    mode = "lines" if style.marker == "circle-open" and line.reference else "lines+markers"
    look = {
        "mode": mode if len(curve.x) > 1 else "markers",
        "line": {"color": colour, "width": 2, "dash": style.dash},
        "marker": {"color": colour, "symbol": style.marker, "size": 7, "maxdisplayed": MARKERS_SHOWN},
    }
    traces.append({**_measured(figure, row, line), **look})
    return traces


def _points(figure: Figure, row: Row, line: Line) -> list[Json]:
    style, colour, curve = style_of(line.name), token(line.name), line.measured
    traces = []
    if line.theory is not None:
        single = len(line.theory.x) == 1
        dash = {"mode": "markers", "marker": {"symbol": "line-ew", "size": 16, "line": {"color": colour, "width": 2}}}
        said = {"mode": "lines", "line": {"color": colour, "width": 2, "dash": style.dash}}
        traces.append({**_theory(figure, row, line), **(dash if single else said)})
    bars = {"type": "data", "array": _numbers(2 * curve.error), "color": colour, "thickness": 1.2, "width": 0}
    look = {"mode": "markers", "marker": {"color": colour, "symbol": style.marker, "size": 8}}
    if np.any(np.isfinite(curve.error)):
        look["error_y"] = bars
    traces.append({**_measured(figure, row, line), **look})
    return traces


def _bars(figure: Figure, row: Row, line: Line) -> list[Json]:
    colour, curve = token(line.name), line.measured
    bars = {"type": "data", "array": _numbers(2 * curve.error), "color": "--ink", "thickness": 1.2, "width": 4}
    look: Json = {"type": "bar", "marker": {"color": colour}, "text": [number(v) for v in curve.mean]}
    look |= {"textposition": "inside", "textfont": {"color": "--card"}, "insidetextanchor": "end"}
    if np.any(np.isfinite(curve.error)):
        look["error_y"] = bars
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
    return f"<b>%{{fullData.name}}</b><br>{where}{plain(row.quantity.label.split(',')[0])} {value}<extra></extra>"


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
    axis = {"gridcolor": "--grid", "linecolor": "--line", "zeroline": False, "showline": True, "ticks": "outside"}
    axis |= {"tickcolor": "--line", "automargin": True, "title": {"standoff": 8}}
    low, high = row.scale.low, row.scale.high
    y = {**axis, "type": "log" if row.scale.log else "linear", "range": [low, high], "nticks": 7}
    if row.scale.log:
        y |= {"range": [math.log10(low), math.log10(high)], "exponentformat": "power", "minor": {"ticks": "outside"}}
        y["minor"] |= {"tickcolor": "--line", "ticklen": 2, "showgrid": False}
        y["dtick"] = max(1, math.ceil((y["range"][1] - y["range"][0]) / 6)) if high / low > 60 else "D2"
    if row.quantity.label.endswith("accuracy"):
        y["tickformat"] = ".0%"
    x = {**axis, "type": "log" if figure.spec.x_log else "linear", "nticks": 7, "showgrid": not panel.ticks}
    x["title"] = {"text": plain(figure.spec.x_label), "standoff": 6}
    if panel.ticks:
        x |= {"tickvals": list(range(len(panel.ticks))), "ticktext": [plain(tick) for tick in panel.ticks]}
    return {
        "height": HEIGHT,
        "margin": {"l": 44, "r": 12, "t": 8, "b": 40},
        "paper_bgcolor": "--card",
        "plot_bgcolor": "--card",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "--soft"},
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": "--card", "bordercolor": "--line", "font": {"color": "--ink"}, "align": "left"},
        "xaxis": x,
        "yaxis": y,
        "shapes": [_mark_line(mark.y) for mark in panel.marks],
        "annotations": [_mark_label(mark.y, mark.label) for mark in panel.marks],
        "barmode": "group",
        "bargap": 0.35,
        "uirevision": "kept",
    }


def _mark_line(y: float) -> Json:
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "line": {"color": "--soft", "width": 1, "dash": "dash"},
    }


def _mark_label(y: float, label: str) -> Json:
    place = {"xref": "paper", "x": 1, "xanchor": "right", "y": y, "yanchor": "bottom", "showarrow": False}
    return {**place, "text": plain(label), "font": {"size": 11, "color": "--soft"}, "bgcolor": "--card"}


def plain(text: str) -> str:
    """Text as plotly must be given it, since it takes some tags for formatting."""
    return html.escape(" ".join(text.split()), quote=False)


def _numbers(values: Doubles) -> list[float | None]:
    """Five digits, which is more than a screen shows; None, a gap, for what is not finite."""
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values.tolist()]
