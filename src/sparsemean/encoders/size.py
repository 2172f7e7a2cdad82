"""How many coordinates a size means in a given dimension."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import SupportsIndex, TypeAlias

from sparsemean.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class Half:
    """The smaller or larger half of a size, so that both halves together are always the whole.

    >>> count(Half(5), 100), count(Half(5, larger=True), 100)
    (2, 3)
    """

    of: int | float
    larger: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", _number(self.of))


Size: TypeAlias = int | float | Half


def checked(size: Size) -> Size:
    """The size as a plain int, float or Half; refuses what can be a size in no dimension."""
    return size if isinstance(size, Half) else _number(size)


def _number(size: int | float) -> int | float:
    if isinstance(size, bool) or not isinstance(size, SupportsIndex | float):
        raise InvalidInput(f"k is a count (an int) or a share (a float), not {size!r}")
    if isinstance(size, float):
        if not 0.0 < size < 1.0:
            raise InvalidInput(f"a share lies strictly between 0 and 1, got {size!r}; give a count as an int")
        return float(size)
    if operator.index(size) < 1:
        raise InvalidInput(f"k must be at least 1, got {size}")
    return operator.index(size)


def count(size: Size, dim: int, least: int = 0) -> int:
    """k: the count itself, or max(1, ⌊share·d + ½⌋). Only the smaller half of 1 is 0, which ``least`` may refuse.

    >>> count(0.1, 784), count(78, 784), count(0.001, 10)
    (78, 78, 1)
    """
    if isinstance(size, Half):
        whole = count(size.of, dim)
        half = whole - whole // 2 if size.larger else whole // 2
        if half < least:
            raise InvalidInput(f"the smaller half of k = {whole} is nothing to send; use a larger k")
        return half
    k = size if isinstance(size, int) else max(1, int(size * dim + 0.5))
    if k > dim:
        raise InvalidInput(f"k = {k} is more than the dimension {dim}; use a smaller k or a share such as 0.1")
    return k


def largest_within(fits: Callable[[int], bool], least: int, most: int) -> int:
    """The largest number from ``least`` to ``most`` that fits, by bisection: what fits must not depend on larger ones.

    ``least`` is not tried, so that it is the answer also where nothing fits.

    >>> largest_within(lambda k: k * k <= 50, 0, 100)
    7
    """
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if fits(middle) else (least, middle - 1)
    return least
