"""Figures for the screen: the traces that plotly.js draws, as plain data.

Colours are names of CSS variables, which the page looks up anew when the theme changes.
"""

from __future__ import annotations

import math

import numpy as np

from sparsemean._types import Doubles
from sparsemean.lab.numbers import page_number
from sparsemean.lab.optional_modules import optional
from sparsemean.lab.report.draw.plotly_layout import Json, layout, plain
from sparsemean.lab.report.figure.curve import Curve
from sparsemean.lab.report.figure.figure import AxisScale, Figure, Line, Panel, PanelRow
from sparsemean.lab.report.figure.scale import band, x_range
from sparsemean.lab.report.figure.style import style_of, token

MARKERS_SHOWN = 9


def library() -> str:
    """The source of plotly.js, to be put into the page once."""
    source: str = optional("plotly.offline", "the report page", "report").get_plotlyjs()
    return source


def drawn(figure: Figure, row: PanelRow, panel: Panel) -> Json:
    """One panel: ``data`` and ``layout``."""
    usual = {"lines": _line, "points": _points, "bars": _bars}[figure.spec.kind]
    traces = []
    for line in panel.lines:
        draw = _stairs if line.stairs else _faint_points if line.group else usual
        traces += draw(figure, row, panel, line)
    if panel.labels:
        traces.append(_labels(panel))
    return {"data": traces, "layout": layout(figure, row, panel)}


def _line(figure: Figure, row: PanelRow, panel: Panel, line: Line) -> list[Json]:
    style, colour, curve = style_of(line.name), token(line.name), line.measured
    traces = []
    x, y = outline(curve, panel.scale)
    if x:
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


def _points(figure: Figure, row: PanelRow, panel: Panel, line: Line) -> list[Json]:
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


def _stairs(figure: Figure, row: PanelRow, panel: Panel, line: Line) -> list[Json]:
    curve, dash = line.measured, style_of(line.look).dash
    look = {"color": token(line.look), "width": 3.5 if dash == "solid" else 1.5, "dash": dash, "shape": "hv"}
    points = {"x": _numbers(curve.x), "y": _numbers(curve.mean), "hoverinfo": "skip"}
    return [{**points, "mode": "lines", "line": look, **_owner(line)}]


def _faint_points(figure: Figure, row: PanelRow, panel: Panel, line: Line) -> list[Json]:
    marker = {"color": token(line.look), "symbol": style_of(line.look).marker, "size": 5, "opacity": 0.6}
    return [{**_measured(figure, row, line), "mode": "markers", "marker": marker}]


def _bars(figure: Figure, row: PanelRow, panel: Panel, line: Line) -> list[Json]:
    curve, (x, width) = line.measured, panel.bars(line)
    look: Json = {"type": "bar", "x": _numbers(x), "width": _numbers(width), "marker": {"color": token(line.name)}}
    look |= {"text": [page_number(value) for value in curve.mean.tolist()], "textposition": "inside", "textangle": 0}
    look |= {"textfont": {"color": "--card"}, "insidetextanchor": "middle"}
    if np.any(np.isfinite(curve.error)):
        array = _numbers(2 * curve.error)
        look["error_y"] = {"type": "data", "array": array, "color": "--ink", "thickness": 1.2, "width": 4}
    return [{**_measured(figure, row, line), **look}]


def _measured(figure: Figure, row: PanelRow, line: Line) -> Json:
    curve = line.measured
    known = np.isfinite(curve.error[np.isfinite(curve.mean)])
    seeds = f"<br>{curve.seeds.max()} seeds" if curve.seeds.max(initial=0) > 1 else ""
    spread = f" ± %{{customdata:.2~g}}{seeds}" if known.size and known.all() else ""
    return {
        "x": _numbers(curve.x),
        "y": _numbers(curve.mean),
        "name": plain(figure.spec.label(line.name)),
        "hovertemplate": _hover(figure, row, "%{y:.3~g}" + spread),
        **({"customdata": _numbers(2 * curve.error)} if spread else {}),
        **_owner(line),
    }


def _theory(figure: Figure, row: PanelRow, line: Line) -> Json:
    curve = line.theory or line.measured
    name = f"{figure.spec.label(line.name)}, {row.quantity.theory_label}"
    return {
        "x": _numbers(curve.x),
        "y": _numbers(curve.mean),
        "name": plain(name),
        "hovertemplate": _hover(figure, row, "%{y:.3~g}"),
        **_owner(line),
    }


def _owner(line: Line) -> Json:
    """Ties a trace to its entry in the legend, which the page itself draws."""
    return {"legendgroup": token(line.look)}


def _hover(figure: Figure, row: PanelRow, value: str) -> str:
    where = "" if figure.spec.kind == "bars" else f"{plain(figure.spec.x_label)} %{{x:.4~g}}<br>"
    return f"<b>%{{fullData.name}}</b><br>{where}{plain(row.quantity.short)} {value}<extra></extra>"


def _labels(panel: Panel) -> Json:
    """Names beside points, on the side where there is room."""
    x = np.array([label.x for label in panel.labels])
    left = np.log(x) > np.log(x_range(panel)).mean()
    space = "\u00a0" * 3
    right = "top right" if any(line.stairs for line in panel.lines) else "middle right"  # stairs go on to the right
    return {
        "x": x.tolist(),
        "y": [label.y for label in panel.labels],
        "text": [space + plain(label.text) + space for label in panel.labels],
        "mode": "text",
        "textposition": ["middle left" if side else right for side in left.tolist()],
        "textfont": {"color": "--ink", "size": 12},
        "hoverinfo": "skip",
    }


def outline(curve: Curve, scale: AxisScale) -> tuple[list[float | None], list[float | None]]:
    """The band as polygons, one per unbroken stretch."""
    low, high = band(curve, scale)
    known = np.isfinite(low) & np.isfinite(high)
    starts = np.flatnonzero(known & ~np.concatenate([[False], known[:-1]]))
    ends = np.flatnonzero(known & ~np.concatenate([known[1:], [False]])) + 1
    xs: list[float | None] = []
    ys: list[float | None] = []
    for start, end in zip(starts, ends, strict=True):
        x = curve.x[start:end]
        xs += [*_numbers(np.concatenate([x, x[::-1]])), None]
        ys += [*_numbers(np.concatenate([high[start:end], low[start:end][::-1]])), None]
    return xs, ys


def _numbers(values: Doubles) -> list[float | None]:
    """Five digits, which is more than a screen shows; None, a gap, for what is not finite."""
    return [float(f"{value:.5g}") if math.isfinite(value) else None for value in values.tolist()]
