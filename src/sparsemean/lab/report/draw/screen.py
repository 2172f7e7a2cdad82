"""Figures for the screen: what the page's own script draws as SVG, as plain data.

Colours are names of CSS variables, so that the theme may change while the page is open. Numbers have four digits, which
is more than a screen shows, and lines with the same places on the horizontal axis share them: pages stay small.
"""

from __future__ import annotations

import math
from typing import Any

from sparsemean._types import Doubles
from sparsemean.lab.report.draw.symbols import DASHES
from sparsemean.lab.report.figure.figure import AxisScale, Figure, Line, Panel, PanelRow
from sparsemean.lab.report.figure.scale import band, x_scale
from sparsemean.lab.report.figure.style import style_of, token, values_of
from sparsemean.lab.report.figure.ticks import linear_ticks, log_ticks

Json = dict[str, Any]


def drawn(figure: Figure, row: PanelRow, panel: Panel) -> Json:
    """One panel: its axes, and its lines in the order in which they are drawn."""
    places = _Places()
    lines = [_line(figure, row, panel, line, places) for line in panel.lines]
    across = x_scale(panel, figure.spec.x_log)
    names = [(float(i), text) for i, text in enumerate(panel.ticks)]
    return {
        "xs": places.known,
        "x": _axis(across, figure.spec.x_label, names or _ticks(across)) | ({"names": True} if names else {}),
        "y": _axis(panel.scale, row.quantity.short, _ticks(panel.scale, row.quantity.percent))
        | ({"percent": True} if row.quantity.percent else {}),
        "lines": lines,
        "marks": [{"x": mark.x, "y": _number(mark.y), "text": mark.label} for mark in panel.marks],
        "labels": [{"x": _number(label.x), "y": _number(label.y), "text": label.text} for label in panel.labels],
    }


class _Places:
    """The lists of places on the horizontal axis, each once."""

    def __init__(self) -> None:
        self.known: list[list[float | None]] = []

    def of(self, values: Doubles) -> int:
        """Which of them it is."""
        places = _numbers(values)
        if places not in self.known:
            self.known.append(places)
        return self.known.index(places)


def _line(figure: Figure, row: PanelRow, panel: Panel, line: Line, places: _Places) -> Json:
    style, curve = style_of(line.look), line.measured
    usual = figure.spec.kind
    mark = style.marker.removesuffix("-open")
    mark = "circle" if mark == "none" and usual in ("points", "joined") else mark
    told: Json = {
        "kind": "stairs" if line.stairs else "faint" if line.group else usual,
        "look": token(line.look),
        "name": figure.spec.label(line.name),
        "x": places.of(curve.x),
        "y": _numbers(curve.mean),
        "dash": DASHES[style.dash],
        "mark": "" if mark == "none" or line.stairs else mark,
    }
    told |= {"open": True} if style.marker.endswith("-open") else {}
    told |= {"seeds": seeds} if (seeds := int(curve.seeds.max(initial=0))) > 1 else {}
    low, high = band(curve, panel.scale)
    if any(math.isfinite(end) for end in high.tolist()) and not (line.stairs or line.group):
        told |= {"low": _numbers(low), "high": _numbers(high)}
    if usual == "bars":
        x, width = panel.bars(line)
        told |= {"x": places.of(x), "width": _numbers(width), "tag": values_of(line.name)}
    if line.theory is not None:
        told["theory"] = {"x": places.of(line.theory.x), "y": _numbers(line.theory.mean)}
    return told


def _axis(scale: AxisScale, title: str, ticks: list[tuple[float, str]]) -> Json:
    return {"log": scale.log, "low": scale.low, "high": scale.high, "title": title, "ticks": ticks}


def _ticks(scale: AxisScale, percent: bool = False) -> list[tuple[float, str]]:
    return log_ticks(scale) if scale.log else linear_ticks(scale, percent)


def _numbers(values: Doubles) -> list[float | None]:
    return [_number(value) for value in values.tolist()]


def _number(value: float) -> float | None:
    """Four digits; None, a gap, for what is not finite."""
    return _short(float(f"{value:.4g}")) if math.isfinite(value) else None


def _short(value: float) -> float:
    """Whole numbers without their decimal point."""
    return int(value) if value == int(value) and abs(value) < 1e15 else value
