"""A sliding window: each node is expected to send the average of what it last sent (end of Section 4's rule for b)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sparsemean.memory.base import Facts, Memory, Recollection, Setting
from sparsemean.memory.rows import Row
from sparsemean.memory.table import Table
from sparsemean.payload import Floats, Ints, Part
from sparsemean.theory.arguments import whole


@dataclass(frozen=True)
class Window(Memory):
    """b_ij = average of the last ``size`` values node i sent at coordinate j. ``size=1`` is PerNode."""

    size: int = 3
    forget_after: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size, the values a window holds,", 1))
        if self.forget_after is not None:
            object.__setattr__(self, "forget_after", whole(self.forget_after, "forget_after", 1))

    @property
    def facts(self) -> Facts:
        return Facts(needs_raw=True, per_node=True, verbatim=self.size == 1, forgets=self.forget_after is not None)

    def start(self, setting: Setting) -> Recollection:
        return Table(setting, partial(Ring, setting.dtype, self.size), self.forget_after)


class Ring(Row):
    """The last few values at each coordinate, and their average."""

    def __init__(self, dtype: np.dtype[np.floating[Any]], size: int, dim: int) -> None:
        super().__init__(ring=np.zeros((size, dim), dtype), received=np.zeros(dim, np.int32), average=np.zeros(dim))

    def values(self) -> Floats:
        return self.arrays["average"]

    def expected(self, coordinates: Ints) -> Floats:
        return self.arrays["average"][coordinates]

    def receive(self, at: Ints | slice, part: Part) -> None:
        ring, received, average = (self.arrays[name] for name in ("ring", "received", "average"))
        at = np.arange(average.size)[at]
        ring[received[at] % len(ring), at] = part.values
        received[at] += 1
        average[at] = ring[:, at].sum(axis=0, dtype=np.float64) / np.minimum(received[at], len(ring))
