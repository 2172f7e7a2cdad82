"""Timing: medians of repeats, which alternate with those of the baselines."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Work = Callable[[], Any]
Clock = Callable[[], Mapping[str, float]]
"""Does some work once, and tells the seconds of each part of it by name."""

FEWEST, MOST = 3, 101
SHORTEST = 0.2  # seconds: what is quick is repeated for so long


@dataclass(frozen=True)
class Timing:
    """Seconds: the median of the repeats, and the quartiles round it.

    >>> Timing.of([1.0, 2.0, 3.0, 4.0, 5.0]) + Timing.of([1.0, 1.0, 1.0])
    Timing(low=3.0, median=4.0, high=5.0, repeats=3)
    """

    low: float
    median: float
    high: float
    repeats: int

    @staticmethod
    def of(seconds: Sequence[float]) -> Timing:
        """From single measurements."""
        low, median, high = np.quantile(seconds, [0.25, 0.5, 0.75]).tolist()
        return Timing(low, median, high, len(seconds))

    def __add__(self, other: Timing) -> Timing:
        """One after the other."""
        fewer = min(self.repeats, other.repeats)
        return Timing(self.low + other.low, self.median + other.median, self.high + other.high, fewer)

    def times(self, count: int) -> Timing:
        """The same so many times."""
        return Timing(count * self.low, count * self.median, count * self.high, self.repeats)


def clock_of(name: str, work: Work, twice: bool = False) -> Clock:
    """A clock for work that is one part; with ``twice``, right after it was done before, with warm caches."""

    def clock() -> dict[str, float]:
        if twice:
            work()
        start = time.perf_counter()
        work()
        return {name: time.perf_counter() - start}

    return clock


def in_turn(clocks: Iterable[Clock], repeats: int, longest: float = 2.0) -> dict[str, Timing]:
    """Run each clock once to warm up, then all of them ``repeats`` times in turn, so that load by others hits all.

    What is quick is repeated more often, and after ``longest`` seconds three times are enough.

    >>> sorted(in_turn([clock_of("a", lambda: None), clock_of("b", lambda: None)], 3))
    ['a', 'b']
    """
    clocks = list(clocks)
    for clock in clocks:
        clock()
    seconds: dict[str, list[float]] = defaultdict(list)
    start = time.perf_counter()
    for done in range(1, MOST + 1):
        for clock in clocks:
            for name, took in clock().items():
                seconds[name].append(took)
        spent = time.perf_counter() - start
        if (done >= repeats and spent >= SHORTEST) or (done >= min(FEWEST, repeats) and spent >= longest):
            break
    return {name: Timing.of(took) for name, took in seconds.items()}
