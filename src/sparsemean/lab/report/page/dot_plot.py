"""A ranked dot plot: one row per name, with its value on a logarithmic axis and two standard errors to either side.

HTML and CSS alone: it needs no script, fits any width, and prints.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from sparsemean.lab.numbers import error_with_margin
from sparsemean.lab.report.figure.figure import AxisScale
from sparsemean.lab.report.figure.style import style_of, token
from sparsemean.lab.report.figure.ticks import log_ticks

ROUNDING = 1e-12
"""Values below it are those of rounding; no axis is stretched for them."""
APART = 0.13
"""Numbers on the axis are at least this part of it apart."""


@dataclass(frozen=True)
class Dot:
    """One row.

    Parameters
    ----------
    name
        Its name, by which it has its colour and mark.
    value, margin
        Where the dot is, and how far the bar reaches to either side; NaN where that is not known.
    size
        What it costs.
    tags
        A few words beside the name.
    kind
        "best" for the one to look at first, "aside" for what is shown to compare with, and stretches no axis; else
        empty.
    """

    name: str
    value: float
    margin: float = math.nan
    size: str = ""
    tags: tuple[str, ...] = ()
    kind: str = ""


def dot_plot(dots: Sequence[Dot], title: str, zero: float = math.nan, zero_text: str = "") -> str:
    """The rows in the order given, below an axis with its numbers.

    Parameters
    ----------
    dots
        At least one.
    title
        What the values are.
    zero, zero_text
        A value that is marked in every row, and what it is; NaN for none.
    """
    scale = _scale([zero, *(dot.value for dot in dots if dot.kind != "aside")])
    ticks = _spread(log_ticks(scale), scale)
    grid = "".join(f'<i style="left:{_place(value, scale)}"></i>' for value, _ in ticks)
    marked = scale.low <= zero <= scale.high
    grid += f'<i class="zero" style="left:{_place(zero, scale)}"></i>' if marked else ""
    numbers = "".join(f'<span style="left:{_place(value, scale)}">{text}</span>' for value, text in ticks)
    words = f"{title}, logarithmic" + (f"; dashes: {zero_text}" if marked else "")
    named = f'<div class="name tag">{html.escape(words)}</div>'
    head = f'<div class="axis">{named}<div class="track head">{numbers}</div></div>'
    return f'<div class="dots">{head}{"".join(_row(dot, scale, grid) for dot in dots)}</div>'


def _row(dot: Dot, scale: AxisScale, grid: str) -> str:
    tags = f' <span class="tag">{html.escape(" · ".join(dot.tags))}</span>' if dot.tags else ""
    kind = f' class="{dot.kind}"' if dot.kind else ""
    return (
        f'<div{kind}><div class="name">{html.escape(dot.name)}{tags}</div>'
        f'<div class="track" aria-hidden="true" style="--own:var({token(dot.name)})">{grid}{_drawn(dot, scale)}</div>'
        f'<div class="value">{_told(dot)}</div><div class="size tag">{html.escape(dot.size)}</div></div>'
    )


def _drawn(dot: Dot, scale: AxisScale) -> str:
    """The bar and the mark; beyond the axis an arrow at its end."""
    if not math.isfinite(dot.value) or dot.value > scale.high:
        return '<span class="edge" style="left:auto;right:0">▸</span>'
    if dot.value < scale.low:
        return '<span class="edge">◂</span>'
    low, high = max(dot.value - dot.margin, scale.low), min(dot.value + dot.margin, scale.high)
    bar = f'<b style="left:{_place(low, scale)};right:{_place(high, scale, 1.0)}"></b>' if dot.margin > 0 else ""
    marker = style_of(dot.name).marker
    mark = marker.removesuffix("-open").replace("none", "circle")
    kind = ' class="open"' if marker.endswith("-open") else ""
    use = f'<use href="#mark-{mark}" width="16" height="16"/>'
    return f'{bar}<svg{kind} style="left:{_place(dot.value, scale)}">{use}</svg>'


def _told(dot: Dot) -> str:
    if not math.isfinite(dot.value):
        return "diverges" if math.isinf(dot.value) else "–"
    return error_with_margin(dot.value, dot.margin)


def _spread(ticks: Sequence[tuple[float, str]], scale: AxisScale) -> list[tuple[float, str]]:
    """Without those whose numbers would touch on a narrow screen."""
    kept: list[tuple[float, str]] = []
    for tick in ticks:
        if not kept or _part(tick[0], scale) - _part(kept[-1][0], scale) > APART:
            kept.append(tick)
    return kept


def _part(value: float, scale: AxisScale) -> float:
    return math.log(value / scale.low) / math.log(scale.high / scale.low)


def _place(value: float, scale: AxisScale, end: float = 0.0) -> str:
    """How far along the axis, from its left end or from its right one, as CSS says it."""
    return f"{100 * abs(_part(value, scale) - end):.2f}%"


def _scale(values: Sequence[float]) -> AxisScale:
    known = [value for value in values if ROUNDING < value < math.inf] or [1.0]
    room = max(1.15, (max(known) / min(known)) ** 0.04)
    return AxisScale(True, min(known) / room, max(known) * room)
