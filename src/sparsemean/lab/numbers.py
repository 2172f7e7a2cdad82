"""Numbers as text: one parser for all that the lab reads, one format for pages and one for the terminal."""

from __future__ import annotations

import math

ROUNDING = 1e-15
"""Relative errors below this are those of floating-point numbers, and shown as 0."""


def parse_number(text: str) -> float | None:
    """The number that a text holds, NaN and infinity included; None where it holds none.

    >>> parse_number(" 1e3"), parse_number("inf"), parse_number(""), parse_number("much")
    (1000.0, inf, None, None)
    """
    try:
        return float(text)
    except ValueError:
        return None


def page_number(value: float) -> str:
    """Format for pages: three digits, and a power of ten where zeros would have to be counted.

    >>> page_number(0.01234), page_number(1.2e-7), page_number(98.7), page_number(math.inf), page_number(math.nan)
    ('0.0123', '1.2·10⁻⁷', '98.7', '∞', '–')
    >>> page_number(-2)
    '−2'
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return (f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}").replace("-", "−")
    digits, power = f"{value:.2e}".split("e")
    return f"{float(digits):g}·{power_of_ten(int(power))}".replace("-", "−")


def with_margin(value: float, margin: float) -> str:
    """Format for pages of a value and its uncertainty: as many decimals as two digits of the margin need.

    >>> with_margin(0.00199, 8.96e-5), with_margin(0.0543, 0.00704), with_margin(2.29e-9, 2.14e-10)
    ('0.00199 ± 0.00009', '0.0543 ± 0.0070', '(2.29 ± 0.21)·10⁻⁹')
    >>> with_margin(0.307, 1e-5), with_margin(12.0, math.nan), with_margin(24.0, 9.6)
    ('0.307 ± 1·10⁻⁵', '12', '24.0 ± 9.6')
    """
    if not math.isfinite(margin) or not math.isfinite(value):
        return page_number(value)
    if value == 0 or margin <= 0:
        return f"{page_number(value)} ± {page_number(margin)}"
    power = math.floor(math.log10(abs(value)))
    unit = 0 if -4 <= power < 5 else power
    decimals = max(0, 1 - math.floor(math.log10(margin / 10.0**unit)))
    most = max(0, 2 - power + unit)  # decimals of three digits of the value
    if decimals > most + 1:
        return f"{page_number(value)} ± {page_number(float(f'{margin:.2g}'))}"
    first, second = (f"{number / 10.0**unit:.{min(decimals, most)}f}".replace("-", "−") for number in (value, margin))
    return f"({first} ± {second})·{power_of_ten(unit)}" if unit else f"{first} ± {second}"


def error_with_margin(error: float, margin: float) -> str:
    """The same of a relative error, which is 0 where it is rounding.

    >>> error_with_margin(8.8e-33, 0.0), error_with_margin(2.29e-9, 2.14e-10)
    ('0', '(2.29 ± 0.21)·10⁻⁹')
    """
    return "0" if abs(error) < ROUNDING else with_margin(error, margin)


def power_of_ten(power: int) -> str:
    """A power of ten, with the exponent as superscript.

    >>> power_of_ten(-12)
    '10⁻¹²'
    """
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def terminal_number(value: float | None) -> str:
    """Format for tables in a terminal: four digits, 0 for rounding errors, an empty cell for an unknown value.

    >>> terminal_number(0.0123456), terminal_number(1e-17), terminal_number(None)
    ('0.01235', '0', '')
    """
    if value is None or math.isnan(value):
        return ""
    return "0" if abs(value) < ROUNDING else f"{value:.4g}"


def size_of(k: int | None, dim: int) -> str:
    """How many of the coordinates a payload has; a dash where that changes.

    >>> size_of(9, 89), size_of(89, 89), size_of(None, 89)
    ('9', 'all', '–')
    """
    return "–" if k is None else "all" if k >= dim else str(k)


def percent(share: float) -> str:
    """Whole percents, and two digits of what is less than one.

    >>> percent(1.37), percent(0.02), percent(0.0004), percent(1e-9), percent(0.0)
    ('137%', '2%', '0.04%', 'under 0.001%', '0%')
    """
    if share >= 0.01 or share == 0.0:
        return f"{share:.0%}"
    return f"{100 * share:.2g}%" if share >= 1e-5 else "under 0.001%"
