"""The paper's O(nd) memory: each node is expected to send what it last sent (Section 4, eq. 9)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.memory.base import Facts, Memory, Recollection, Setting
from sparsemean.memory.table import Row, Table
from sparsemean.payload import Floats, Ints, Part


@dataclass(frozen=True)
class PerNode(Memory):
    """b_ij = what node i last sent at coordinate j; 0 before that, and again after ``forget_after`` rounds without."""

    forget_after: int | None = None

    def __post_init__(self) -> None:
        check_forget_after(self.forget_after)

    @property
    def facts(self) -> Facts:
        return Facts(needs_raw=True, per_node=True)

    def start(self, setting: Setting) -> Recollection:
        return Table(setting.blocks, partial(LastValues, setting.dtype), self.forget_after)


def check_forget_after(rounds: int | None) -> None:
    """Refuse a number of rounds that would forget before it remembers."""
    if rounds is not None and rounds < 1:
        raise InvalidInput(f"forget_after is a number of rounds, at least 1; got {rounds}")


class LastValues(Row):
    """The last value at each coordinate."""

    def __init__(self, dtype: np.dtype[np.floating[Any]], dim: int) -> None:
        self._last = np.zeros(dim, dtype)

    def values(self) -> Floats:
        return self._last

    def expected(self, coordinates: Ints) -> Floats:
        return self._last[coordinates]

    def receive(self, part: Part) -> None:
        self._last[part.coordinates] = part.values

    def clear(self, coordinates: Ints) -> None:
        self._last[coordinates] = 0.0
