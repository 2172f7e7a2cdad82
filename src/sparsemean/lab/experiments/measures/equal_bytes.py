"""The k with which a scheme sends a wanted number of bytes.

Some payloads are as long as their vectors make them, and vectors change as a run goes on: so k is found by running.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sparsemean.lab.trace import Trace
from sparsemean.wire.frame import HEADER_BYTES

CLOSE = 0.02
"""So near the mean length of a payload comes to what is wanted, if it can, before trying ends."""
TRIES = 5


def closest(wanted: float, k: int, dim: int, play: Callable[[int], Trace]) -> tuple[int, Trace]:
    """From a first k, the one whose run had the mean length nearest to ``wanted``, header included, and that run.

    Without the header, length is about proportional to k.
    """
    tried: dict[int, tuple[float, Trace]] = {}
    while k not in tried and len(tried) < TRIES:
        trace = play(k)
        length = float(np.nanmean(trace.bytes_per_node))
        off = abs(math.log(length / wanted))
        tried[k] = (off, trace)
        if off <= CLOSE:
            break
        k = min(dim, max(2, round(k * (wanted - HEADER_BYTES) / (length - HEADER_BYTES))))  # induced needs two
    best = min(tried, key=lambda k: tried[k][0])
    return best, tried[best][1]
