"""Where a logarithmic axis gets its numbers: three to eight of them, whatever it spans."""

from __future__ import annotations

import math

from sparsemean.lab.report.figure import Scale
from sparsemean.lab.report.words import power_of_ten


def log_ticks(scale: Scale) -> list[tuple[float, str]]:
    """Value and text: powers of ten, between them 1-2-5 where it spans little, and round numbers where less still.

    >>> [text for _, text in log_ticks(Scale(True, 2e-9, 3.0))]
    ['10⁻⁸', '10⁻⁶', '10⁻⁴', '10⁻²', '1']
    >>> [text for _, text in log_ticks(Scale(True, 0.04, 2.5))]
    ['0.05', '0.1', '0.2', '0.5', '1', '2']
    >>> [text for _, text in log_ticks(Scale(True, 0.35, 0.62))]
    ['0.35', '0.4', '0.45', '0.5', '0.55', '0.6']
    """
    low, high = math.log10(scale.low), math.log10(scale.high)
    decades = high - low
    if decades < 0.75:
        values = _round_numbers(scale)
    else:
        powers = range(math.floor(low), math.ceil(high) + 1)
        step = math.ceil(decades / 6)
        steps = (1, 2, 5) if decades < 2.2 else (1,)
        values = [factor * 10.0**power for power in powers if power % step == 0 for factor in steps]
    # A hair of tolerance: a bound that is meant to be a tick may be off by rounding.
    shown = [value for value in values if scale.low * (1 - 1e-9) <= value <= scale.high * (1 + 1e-9)]
    plain = all(1e-3 * (1 - 1e-9) <= value < 1e5 for value in shown)
    return [(value, f"{value:.10g}" if plain else _text(value)) for value in shown]


def _round_numbers(scale: Scale) -> list[float]:
    rough = (scale.high - scale.low) / 5
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.99)
    return [step * count for count in range(math.ceil(scale.low / step), math.floor(scale.high / step) + 1)]


def _text(value: float) -> str:
    digits, power = f"{value:.4e}".split("e")
    sign = power_of_ten(int(power)) if int(power) else ""
    factor = f"{float(digits):g}"
    return (sign or "1") if factor == "1" else f"{factor}·{sign}" if sign else factor
