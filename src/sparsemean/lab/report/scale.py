"""The vertical axis: logarithmic or not, and from where to where, so that one bad line does not flatten all others."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from sparsemean._types import Doubles
from sparsemean.lab.report.figure import Line, Mark, Scale
from sparsemean.lab.report.spec import Quantity
from sparsemean.lab.report.tables import Curve

CALM = 3.0
"""A line that stays below this multiple of where lines start decides the axis; others may leave it."""
ROOM = {True: 30.0, False: 1.3}
"""How far above the calm lines an axis reaches for the others: logarithmic, linear."""
DECADES = 14
DEEP = 1e-4
"""Without time, a point that lies this far below the median does not stretch the axis."""


def scale_of(quantity: Quantity, lines: Iterable[Line], ordered: bool, marks: Iterable[Mark] = ()) -> Scale:
    """The axis for these lines; ``ordered`` where x is time, so that a line has a start.

    >>> rounds, steady, lost = [0, 1, 2], [4.0, 2.0, 1.0], [4.0, 4e9, 4e20]
    >>> from sparsemean.lab.report.tables import curve
    >>> scale = scale_of(Quantity((), ""), [Line("a", curve(rounds, steady)), Line("b", curve(rounds, lost))], True)
    >>> scale.log, scale.high < 10
    (False, True)
    """
    everything, heights = list(lines), [mark.y for mark in marks]
    ranked = [line for line in everything if not line.reference] or everything
    series = [values for line in ranked if len(values := finite(line.measured))]
    if not series:
        return Scale(bool(quantity.log), 0.1 if quantity.log else 0.0, 1.0)
    start = max(float(values[0]) for values in series)
    free = quantity.bounded or not ordered
    calm = [values for values in series if free or values.max() <= CALM * abs(start)] or series
    low, high = _extent(calm)
    floor = 0.0 if ordered else DEEP * float(np.median(np.concatenate(calm)))
    positive = [values[values > floor] for values in calm if np.any(values > max(floor, 0.0))]
    log = bool(positive) and (quantity.log if quantity.log is not None else low > 0 and high > 30 * low)
    theory = [values for line in ranked if line.theory is not None and len(values := finite(line.theory))]
    top = _extent([*series, *theory])[1]
    high = min(top, high * ROOM[log]) if high > 0 else high
    if log:
        return _padded_log(max(_extent(positive)[0], high * 10.0**-DECADES), high)
    references = [values for line in everything if line.reference and len(values := finite(line.measured))]
    low, high = min([low, *heights, *(_extent(references)[:1] if references else ())]), max([high, *heights])
    if low > 0 and (not ordered or heights):
        low = 0.0
    pad = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return Scale(False, low if low == 0 else low - pad, high + pad)


def _extent(series: list[Doubles]) -> tuple[float, float]:
    return min(float(values.min()) for values in series), max(float(values.max()) for values in series)


def span(scale: Scale) -> float:
    """How much the axis shows, in its own units."""
    return math.log10(scale.high / scale.low) if scale.log else scale.high - scale.low


def finite(curve: Curve) -> Doubles:
    """The means that can be drawn."""
    values: Doubles = curve.mean[np.isfinite(curve.mean)]
    return values


def _padded_log(low: float, high: float) -> Scale:
    pad = max(0.07 * math.log10(high / low), 0.01)
    return Scale(True, low / 10**pad, high * 10**pad)
