"""The largest size that keeps a budget."""

from __future__ import annotations

from collections.abc import Callable


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
