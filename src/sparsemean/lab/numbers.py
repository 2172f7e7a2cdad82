"""Numbers as text: one parser for all that the lab reads, one format for pages and one for the terminal."""

from __future__ import annotations

import math


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
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    digits, power = f"{value:.2e}".split("e")
    return f"{float(digits):g}·{power_of_ten(int(power))}"


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
    return "0" if abs(value) < 1e-15 else f"{value:.4g}"
