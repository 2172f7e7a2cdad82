"""No memory: every value is news."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sparsemean._types import Doubles, Ints
from sparsemean.memory.base import Arrival, Memory, MemoryFacts, MemorySpec, MemoryState
from sparsemean.state_tree import Tree


@dataclass(frozen=True)
class Nothing(Memory):
    """Expects 0 of everybody; what ``memory=None`` stands for."""

    @property
    def facts(self) -> MemoryFacts:
        return MemoryFacts()

    def start(self, spec: MemorySpec) -> MemoryState:
        return _Blank()


class _Blank(MemoryState):
    def expected(self, node: str, coordinates: Ints) -> float:
        return 0.0

    def row(self, node: str) -> float:
        return 0.0

    def remembered(self, node: str) -> float:
        return 0.0

    def mean(self, weights: Mapping[str, Doubles]) -> float:
        return 0.0

    def take(self, arrival: Arrival) -> None:
        pass

    @property
    def fits(self) -> Doubles:
        return np.zeros((0, 0))

    def pool(self, fits: Doubles) -> None:
        pass

    def learn(self, round: int, estimate: Doubles | None) -> None:
        pass

    def forget(self, node: str) -> None:
        pass

    def settle(self) -> None:
        pass

    @property
    def node_bytes(self) -> int:
        return 0

    def changes(self) -> Tree:
        return None

    def redo(self, changes: Tree) -> None:
        pass

    def state(self) -> Tree:
        return None

    def restore(self, state: Tree) -> None:
        pass
