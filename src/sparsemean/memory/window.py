"""A sliding window: each node is expected to send the average of what it last sent (end of Section 4's rule for b)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sparsemean.memory.base import Facts, Memory, Recollection, Setting
from sparsemean.memory.table import Row, Table
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
        return Table(setting.blocks, partial(Ring, setting.dtype, self.size), self.forget_after)


class Ring(Row):
    """The last few values at each coordinate, and their average."""

    def __init__(self, dtype: np.dtype[np.floating[Any]], size: int, dim: int) -> None:
        self._ring = np.zeros((size, dim), dtype)
        self._received = np.zeros(dim, np.int32)
        self._average = np.zeros(dim)

    def values(self) -> Floats:
        return self._average

    def expected(self, coordinates: Ints) -> Floats:
        return self._average[coordinates]

    def receive(self, part: Part) -> None:
        at = part.coordinates
        self._ring[self._received[at] % len(self._ring), at] = part.values
        self._received[at] += 1
        self._average[at] = self._ring[:, at].sum(axis=0, dtype=np.float64) / np.minimum(
            self._received[at], len(self._ring)
        )

    def clear(self, coordinates: Ints) -> None:
        self._ring[:, coordinates] = 0.0
        self._received[coordinates] = 0
        self._average[coordinates] = 0.0
