"""A sliding window: each node is expected to send the average of what it last sent (end of Section 4's rule for b)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sparsemean._types import Floats, Ints
from sparsemean.memory.base import Memory, MemoryFacts, MemorySpec, MemoryState
from sparsemean.memory.per_node import checked_age
from sparsemean.memory.rows import Row
from sparsemean.memory.table import RowTable
from sparsemean.payload import Part
from sparsemean.theory.arguments import whole

LARGEST = 1 << 16
WHY = "every node keeps as many values for each coordinate, and an average over so many hardly moves any more"


@dataclass(frozen=True)
class Window(Memory):
    """b_ij = average of the last ``size`` values node i sent at coordinate j. ``size=1`` is PerNode.

    Parameters
    ----------
    size : int, default 3
        Values kept per node and coordinate, 1 to 65,536; a node takes 12 + 4·size bytes a coordinate (float32 values).
    forget_after : int, optional
        Rounds after which a value that was not sent again counts as never sent.
    """

    size: int = 3
    forget_after: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size, the values a window holds,", 1, LARGEST, WHY))
        if self.forget_after is not None:
            object.__setattr__(self, "forget_after", checked_age(self.forget_after))

    @property
    def facts(self) -> MemoryFacts:
        return MemoryFacts(
            needs_raw=True, per_node=True, verbatim=self.size == 1, forgets=self.forget_after is not None
        )

    def start(self, spec: MemorySpec) -> MemoryState:
        return RowTable(spec, partial(Ring, spec.dtype, self.size), self.forget_after)


class Ring(Row):
    """The last few values at each coordinate, and their average."""

    shown = "average"

    def __init__(self, dtype: np.dtype[np.floating[Any]], size: int, dim: int) -> None:
        # A blank row is of zeros that take no memory, so that the server can first say what a node would take.
        ring = np.broadcast_to(np.zeros((), dtype), (size, dim))
        super().__init__(ring=ring, received=np.zeros(dim, np.int32), average=np.zeros(dim))

    def expected(self, coordinates: Ints) -> Floats:
        return self.arrays["average"][coordinates]

    def receive(self, at: Ints | slice, part: Part) -> None:
        ring, received, average = (self.arrays[name] for name in ("ring", "received", "average"))
        at = np.arange(average.size)[at]
        ring[received[at] % len(ring), at] = part.values
        received[at] += 1
        average[at] = ring[:, at].sum(axis=0, dtype=np.float64) / np.minimum(received[at], len(ring))
