"""No memory: 0 is expected of everybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparsemean._types import Doubles
from sparsemean.memory.base import Memory, MemoryFacts, MemorySpec, MemoryState
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
    def remembered(self, node: str) -> float:
        return 0.0

    def rows(self, nodes: Sequence[str]) -> list[float]:
        return [0.0] * len(nodes)

    def mean(self, weights: Mapping[str, Doubles]) -> float:
        return 0.0

    def learn(self, round: int, estimate: Doubles | None) -> None:
        pass

    def state(self) -> Tree:
        return None

    def restore(self, state: Tree) -> None:
        pass
