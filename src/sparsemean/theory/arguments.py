"""What every formula demands of its arguments; a refusal names the remedy."""

from __future__ import annotations

import math
import operator
from typing import SupportsFloat, SupportsIndex

from sparsemean.errors import InvalidInput


def node_count(n: SupportsIndex) -> int:
    """The number of nodes, a whole number of at least 1.

    >>> node_count(3)
    3
    """
    try:
        count = operator.index(n)
    except TypeError:
        raise InvalidInput(f"n must be a whole number of nodes, not {n!r}") from None
    if count < 1:
        raise InvalidInput(f"n must be at least 1, not {count}; a round without nodes has no mean")
    return count


def whole(value: SupportsIndex, name: str, least: int, most: int | None = None, why: str = "") -> int:
    """A whole number of at least ``least``, and at most ``most`` where there is a limit; ``why`` explains the limit.

    >>> whole(3, "size", 1)
    3
    """
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        given = shown(value) if isinstance(value, int) else repr(value)
        raise InvalidInput(f"{name} must be a whole number of at least {least}, not {given}")
    if most is not None and number > most:
        raise InvalidInput(f"{name} goes up to {most}, not {shown(number)}: {why}")
    return number


def shown(number: int) -> str:
    """A whole number for an error message; Python refuses to write out one of thousands of digits.

    >>> shown(12), shown(10**5000)
    ('12', 'a number of more than 30 digits')
    """
    return repr(number) if abs(number) < 10**30 else "a number of more than 30 digits"


def unit_share(share: SupportsFloat) -> float:
    """The share p = k/d of its coordinates a node sends, 0 < p ≤ 1 (from 1e-300 on).

    >>> unit_share(1)
    1.0
    """
    p = finite(share, "share")
    if not 1e-300 <= p <= 1.0:
        raise InvalidInput(f"share must lie in (0, 1], not {p!r}; give k/d, not k")
    return p


def finite(value: SupportsFloat, name: str) -> float:
    """A finite number.

    >>> finite(2, "error")
    2.0
    """
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{name} must be a number, not {value!r}") from None
    if not math.isfinite(number):
        raise InvalidInput(f"{name} must be finite, not {number!r}")
    return number


def energy(value: SupportsFloat, name: str) -> float:
    """A sum of squares: finite and not negative.

    >>> energy(2, "r1")
    2.0
    """
    number = finite(value, name)
    if number < 0.0:
        raise InvalidInput(f"{name} is a sum of squares and cannot be negative, but is {number!r}")
    return number
