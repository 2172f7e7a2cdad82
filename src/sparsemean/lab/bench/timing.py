"""How long something takes: a median of repeats, taken in turn with what it is compared with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

Work = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds: the median, and the quartiles round it."""

    low: float
    median: float
    high: float


def in_turn(works: Mapping[str, Work], repeats: int) -> dict[str, Timing]:
    """Each once to warm up, then ``repeats`` times, one after the other, so that a busy spell hits all alike.

    >>> sorted(in_turn({"a": lambda: None, "b": lambda: None}, 3))
    ['a', 'b']
    """
    for work in works.values():
        work()
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - start)
    return {name: Timing(*np.quantile(times, [0.25, 0.5, 0.75]).tolist()) for name, times in seconds.items()}
