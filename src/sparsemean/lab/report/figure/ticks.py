"""Ticks of an axis: three to eight numbers, whatever it spans."""

from __future__ import annotations

import math
from collections.abc import Iterable

from sparsemean.lab.numbers import page_number, power_of_ten
from sparsemean.lab.report.figure.figure import AxisScale


def linear_ticks(scale: AxisScale, percent: bool = False) -> list[tuple[float, str]]:
    """Value and text of each tick of a linear axis, evenly spaced.

    >>> [text for _, text in linear_ticks(AxisScale(False, -1.1, 9.2))]
    ['0', '2', '4', '6', '8']
    >>> [text for _, text in linear_ticks(AxisScale(False, 0.05, 0.38), percent=True)]
    ['5 %', '10 %', '15 %', '20 %', '25 %', '30 %', '35 %']
    """
    shown = [0.0 if abs(value) < 1e-12 * (scale.high - scale.low) else value for value in _evenly(scale)]
    return [(value, f"{100 * value:.6g} %" if percent else page_number(value)) for value in shown]


def log_ticks(scale: AxisScale) -> list[tuple[float, str]]:
    """Value and text of each tick: powers of ten; with 2 and 5 times these where they are too few; else evenly spaced.

    >>> [text for _, text in log_ticks(AxisScale(True, 2e-9, 3.0))]
    ['10⁻⁸', '10⁻⁶', '10⁻⁴', '10⁻²', '1']
    >>> [text for _, text in log_ticks(AxisScale(True, 0.04, 2.5))]
    ['0.05', '0.1', '0.2', '0.5', '1', '2']
    >>> [text for _, text in log_ticks(AxisScale(True, 0.35, 0.62))]
    ['0.35', '0.4', '0.45', '0.5', '0.55', '0.6']
    """
    low, high = math.log10(scale.low), math.log10(scale.high)
    powers = range(math.floor(low), math.ceil(high) + 1)
    step = math.ceil((high - low) / 6)
    shown: list[float] = []
    if high - low > 0.75:
        for factors in ((1.0,), (1.0, 2.0, 5.0)):
            values = (factor * 10.0**power for power in powers if power % step == 0 for factor in factors)
            shown = shown if len(shown) > 2 else _within(scale, values)
    shown = shown if len(shown) > 2 else _evenly(scale)
    plain = all(1e-3 * (1 - 1e-9) <= value < 1e5 for value in shown)
    return [(value, f"{value:.10g}" if plain else _text(value)) for value in shown]


def _within(scale: AxisScale, values: Iterable[float]) -> list[float]:
    # A hair of tolerance: a bound that is meant to be a tick may be off by rounding.
    return [value for value in values if scale.low * (1 - 1e-9) <= value <= scale.high * (1 + 1e-9)]


def _evenly(scale: AxisScale) -> list[float]:
    """Multiples of the largest of 1, 2, 5, 10, … of which at least four lie within."""
    unit = 10.0 ** math.floor(math.log10(scale.high - scale.low))
    for step in (unit * factor for factor in (1.0, 0.5, 0.2, 0.1, 0.05)):
        first, last = math.ceil(scale.low / step - 1e-9), math.floor(scale.high / step + 1e-9)
        if last - first >= 3:
            break
    return [step * count for count in range(first, last + 1)]


def _text(value: float) -> str:
    digits, power = f"{value:.4e}".split("e")
    sign = power_of_ten(int(power)) if int(power) else ""
    factor = f"{float(digits):g}"
    return (sign or "1") if factor == "1" else f"{factor}·{sign}" if sign else factor
