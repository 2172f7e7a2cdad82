"""The paper's O(nd) memory: each node is expected to send what it last sent (Section 4, eq. 9)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sparsemean._types import Floats, Ints
from sparsemean.memory.base import Memory, MemoryFacts, MemorySpec, MemoryState
from sparsemean.memory.rows import Row
from sparsemean.memory.table import RowTable
from sparsemean.payload import Part
from sparsemean.theory.arguments import whole

LAST_ROUND = (1 << 63) - 1


@dataclass(frozen=True)
class PerNode(Memory):
    """b_ij = what node i last sent at coordinate j, 0 before that: Rand-k-Temporal (Section 4).

    Parameters
    ----------
    forget_after : int, optional
        Rounds after which a value that was not sent again counts as never sent.
    """

    forget_after: int | None = None

    def __post_init__(self) -> None:
        if self.forget_after is not None:
            object.__setattr__(self, "forget_after", checked_age(self.forget_after))

    @property
    def facts(self) -> MemoryFacts:
        return MemoryFacts(needs_raw=True, per_node=True, verbatim=True, forgets=self.forget_after is not None)

    def start(self, spec: MemorySpec) -> MemoryState:
        return RowTable(spec, partial(LastValues, spec.dtype), self.forget_after)


def checked_age(forget_after: int) -> int:
    """After how many rounds something is forgotten: 1 to 2^63 − 1."""
    return whole(
        forget_after, "forget_after", 1, LAST_ROUND, "rounds are numbered up to there; leave it out to forget nothing"
    )


class LastValues(Row):
    """The last value at each coordinate."""

    shown = "last"

    def __init__(self, dtype: np.dtype[np.floating[Any]], dim: int) -> None:
        super().__init__(last=np.zeros(dim, dtype))

    def expected(self, coordinates: Ints) -> Floats:
        return self.arrays["last"][coordinates]

    def replaced_by(self, part: Part) -> Floats:
        return part.remembered

    def receive(self, at: Ints | slice, part: Part) -> None:
        self.arrays["last"][at] = part.remembered
