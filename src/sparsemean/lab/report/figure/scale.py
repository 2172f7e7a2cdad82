"""The range of an axis, chosen so that one diverging line does not flatten all others, and the bands within it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from sparsemean._types import Doubles
from sparsemean.lab.report.figure.curve import Curve
from sparsemean.lab.report.figure.figure import AxisScale, Line, Mark, Panel
from sparsemean.lab.report.figure.spec import Quantity

CALM = 3.0
"""Lines that stay below this multiple of the highest start decide the axis; others may leave it."""
ROOM = {True: 30.0, False: 1.3}
"""By which factor a logarithmic (True) or linear (False) axis extends above the calm lines for the others."""
LOG_FACTOR = 30
"""A quantity of no fixed kind of axis gets a logarithmic one where its values span more than this factor."""
DECADES = 14
"""A logarithmic axis spans at most so many."""
DEEP = 1e-4
"""Where x is not time, a point this far below the median does not stretch the axis."""


def scale_of(quantity: Quantity, lines: Iterable[Line], ordered: bool, marks: Iterable[Mark] = ()) -> AxisScale:
    """Choose the vertical axis for these lines.

    Parameters
    ----------
    quantity
        Says whether the axis is logarithmic, and whether lines can diverge.
    lines
        All lines of the panels that share the axis. Those that send whole vectors stretch a linear axis alone.
    ordered
        Whether x is time, so that a line has a start by which to tell that it diverges.
    marks
        Heights that a linear axis must show.

    Examples
    --------
    >>> from sparsemean.lab.report.figure.curve import curve
    >>> rounds, steady, lost = [0, 1, 2], [4.0, 2.0, 1.0], [4.0, 4e9, 4e20]
    >>> scale = scale_of(Quantity((), ""), [Line("a", curve(rounds, steady)), Line("b", curve(rounds, lost))], True)
    >>> scale.log, scale.high < 10
    (False, True)
    """
    everything = list(lines)
    ranked = [line for line in everything if not line.reference] or everything
    series = _drawable(line.measured for line in ranked)
    if not series:
        return AxisScale(bool(quantity.log), 0.1 if quantity.log else 0.0, 1.0)
    calm = series if quantity.bounded or not ordered else _calm(series)
    positive = _positive(calm, ordered)
    log = bool(positive) and _wants_log(quantity, calm)
    predictions = _drawable(line.theory for line in ranked if line.theory is not None)
    high = _top(calm, [*series, *predictions], ROOM[log])
    if log:
        return _log_scale(positive, high)
    references = _drawable(line.measured for line in everything if line.reference)
    return _linear_scale(calm, high, references, [mark.y for mark in marks], ordered)


def _drawable(curves: Iterable[Curve]) -> list[Doubles]:
    """The finite means of each curve that has some."""
    return [values for curve in curves if len(values := curve.finite_means)]


def _calm(series: list[Doubles]) -> list[Doubles]:
    """The lines that stay near where lines start; all of them where none does."""
    start = max(float(values[0]) for values in series)
    return [values for values in series if values.max() <= CALM * abs(start)] or series


def _positive(calm: list[Doubles], ordered: bool) -> list[Doubles]:
    """What a logarithmic axis has to show."""
    floor = 0.0 if ordered else DEEP * float(np.median(np.concatenate(calm)))
    return [values[values > floor] for values in calm if np.any(values > max(floor, 0.0))]


def _wants_log(quantity: Quantity, calm: list[Doubles]) -> bool:
    low, high = _extent(calm)
    return quantity.log if quantity.log is not None else low > 0 and high > LOG_FACTOR * low


def _top(calm: list[Doubles], everything: list[Doubles], room: float) -> float:
    """The top of the calm lines, with room for what is above, but no more than that needs."""
    high = _extent(calm)[1]
    return min(_extent(everything)[1], high * room) if high > 0 else high


def _log_scale(positive: list[Doubles], high: float) -> AxisScale:
    low = max(_extent(positive)[0], high * 10.0**-DECADES)
    pad = max(0.07 * math.log10(high / low), 0.01)
    return AxisScale(True, low / 10**pad, high * 10**pad)


def _linear_scale(
    calm: list[Doubles], high: float, references: list[Doubles], heights: Sequence[float], ordered: bool
) -> AxisScale:
    low = min([_extent(calm)[0], *heights, *(_extent(references)[:1] if references else ())])
    high = max([high, *heights])
    if low > 0 and (not ordered or heights):
        low = 0.0
    pad = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return AxisScale(False, low if low == 0 else low - pad, high + pad)


def _extent(series: list[Doubles]) -> tuple[float, float]:
    return min(float(values.min()) for values in series), max(float(values.max()) for values in series)


def span(scale: AxisScale) -> float:
    """The length of the axis: decades of a logarithmic one, else high − low."""
    return math.log10(scale.high / scale.low) if scale.log else scale.high - scale.low


def x_range(panel: Panel) -> tuple[float, float]:
    """The ends of a logarithmic horizontal axis, with some room on either side of the points that can be seen."""
    points = [point for line in panel.lines for point in zip(line.measured.x, line.measured.mean, strict=True)]
    seen = [float(x) for x, y in points if panel.scale.low <= y <= panel.scale.high]
    places = [x for x in seen if 0 < x < math.inf]
    low, high = (min(places), max(places)) if places else (1.0, 10.0)
    room = max(1.1, (high / low) ** 0.06)
    return low / room, high * room


def x_scale(panel: Panel, log: bool) -> AxisScale:
    """The horizontal axis: logarithmic, linear, or with names at 0, 1, 2, …"""
    if panel.ticks:
        return AxisScale(False, -0.6, len(panel.ticks) - 0.4)
    if log:
        return AxisScale(True, *x_range(panel))
    places = [x for line in panel.lines for x in line.measured.x.tolist() if math.isfinite(x)]
    low, high = (min(places), max(places)) if places else (0.0, 1.0)
    room = 0.02 * (high - low) or 0.5
    return AxisScale(False, low - room, high + room)


def band(curve: Curve, scale: AxisScale) -> tuple[Doubles, Doubles]:
    """Lower and upper edge of the band around a line: its margin to either side.

    NaN where there is no margin, and where the line has left the axis at its upper end. On a logarithmic axis
    the lower edge is as far below the line as the upper one is above it, mean² / (mean + margin): nearly
    mean − margin where that is small, and never below zero.

    >>> from sparsemean.lab.report.figure.curve import curve
    >>> line = curve([0], [3.0], own_error=[1.0])
    >>> [edge.tolist() for edge in band(line, AxisScale(False, 0.0, 9.0))]
    [[1.0], [5.0]]
    >>> [edge.tolist() for edge in band(line, AxisScale(True, 0.1, 9.0))]
    [[1.8], [5.0]]
    """
    known = np.isfinite(curve.margin) & np.isfinite(curve.mean) & (curve.mean <= scale.high)
    mean = np.where(known, curve.mean, math.nan)
    high = mean + curve.margin
    if not scale.log:
        return mean - curve.margin, high
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(mean > 0, mean**2 / high, math.nan)
    return low, high
