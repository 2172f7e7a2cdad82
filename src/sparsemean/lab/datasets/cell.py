"""What a cell of a text file holds: a number, a date, or that something is missing."""

from __future__ import annotations

import re
from datetime import UTC, datetime

MISSING = frozenset({"", "na", "n/a", "#n/a", "nan", "<na>", "nat", "null", "none", "-", "?"})
"""How programs write that a number is missing, in lower case."""

COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")
EITHER = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")
GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:([,.' \u00a0\u202f])[0-9]{3})(?:\1[0-9]{3})*(?:[.,][0-9]*)?")
DATE = re.compile(r"[0-9]{1,4}([-/.])[0-9]{1,2}\1[0-9]{1,4}([T ].*)?|[0-9]{1,2}:[0-9]{2}(:[0-9.]+)?")


def number(cell: str, decimal: str = ".") -> float | None:
    """The number in the cell, NaN where it says that it is missing; None for anything else.

    >>> number("-1.5e3"), number("1,5", ","), number("1,5"), number("NA")
    (-1500.0, 1.5, None, nan)
    """
    if cell.lower() in MISSING:
        return float("nan")
    if "_" in cell or (decimal == "," and "." in cell):
        return None
    try:
        return float(cell.replace(",", ".") if decimal == "," else cell)
    except ValueError:
        return None


def is_comma_number(cell: str) -> bool:
    """Whether the cell is a number with a decimal comma, or may be.

    >>> is_comma_number("1,5"), is_comma_number("1.5"), is_comma_number("1,234,567")
    (True, False, False)
    """
    return COMMA.fullmatch(cell) is not None


def is_either(cell: str) -> bool:
    """Whether a comma in the cell may as well separate thousands.

    >>> is_either("1,234"), is_either("0,234"), is_either("1,5")
    (True, False, False)
    """
    return EITHER.fullmatch(cell) is not None


def is_date(cell: str) -> bool:
    """Whether the cell is a date, with a time or without, or a time of day.

    >>> [is_date(cell) for cell in ("2024-01-31", "2024-01-31T06:00Z", "31.1.2024 06:00", "06:00", "20240131", "1.5")]
    [True, True, True, True, False, False]
    """
    return DATE.fullmatch(cell) is not None


def moment(cell: str) -> datetime | None:
    """The moment of an ISO date or timestamp, to sort by; in UTC where it does not say otherwise.

    >>> moment("2024-01-31") < moment("2024-01-31T06:00")
    True
    """
    try:
        told = datetime.fromisoformat(cell)
    except ValueError:
        return None
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def why_no_number(cell: str, decimal: str) -> str:
    """What is wrong with a cell that should hold a number, and what helps."""
    shown = repr(cell[:40])
    if GROUPED.fullmatch(cell):
        return f"{shown} has a separator of thousands; export the numbers without it"
    if decimal == "," and "." in cell and number(cell) is not None:
        return f"{shown} has a decimal point and others a decimal comma; write all in one way"
    if is_comma_number(cell):
        return f"{shown} has a decimal comma; say --decimal , (in Python decimal=',')"
    if cell.endswith("%") or number(cell.strip("$€£ "), decimal) is not None:
        return f"{shown} has a unit; export the numbers alone"
    if is_date(cell):
        return f"{shown} is a date, not a number"
    return (
        f"{shown} is not a number; if the column names the nodes, say so with --node and its name or number, and to "
        "leave it out, name those that count with --columns"
    )
