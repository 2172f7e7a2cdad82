"""The paper's O(d) memory: every node is expected to send the previous estimate (end of Section 4, Appendix D)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sparsemean._types import Doubles, Ints
from sparsemean.memory.base import Arrival, Memory, MemoryFacts, MemorySpec, MemoryState
from sparsemean.state_tree import Tree, array_in


@dataclass(frozen=True)
class Shared(Memory):
    """b_i = last round's estimate for all i. It feeds its own error back and diverges where n·k is small against d.

    The server warns when the factor of that feedback, ``theory.feedback_factor``, is 1 or more.
    """

    @property
    def facts(self) -> MemoryFacts:
        return MemoryFacts(needs_raw=True)

    def start(self, spec: MemorySpec) -> MemoryState:
        return _Previous(np.zeros(spec.blocks.dim))


class _Previous(MemoryState):
    def __init__(self, estimate: Doubles) -> None:
        self.estimate = estimate

    def expected(self, node: str, coordinates: Ints) -> Doubles:
        return self.estimate[coordinates]

    def row(self, node: str) -> Doubles:
        return self.estimate

    def remembered(self, node: str) -> Doubles:
        return self.estimate

    def mean(self, weights: Mapping[str, Doubles]) -> Doubles:
        return self.estimate

    def take(self, arrival: Arrival) -> None:
        pass

    @property
    def fits(self) -> Doubles:
        return np.zeros((0, 0))

    def pool(self, fits: Doubles) -> None:
        pass

    def learn(self, round: int, estimate: Doubles | None) -> None:
        if estimate is not None:
            self.estimate = estimate.copy()

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
        return {"estimate": self.estimate}

    def restore(self, state: Tree) -> None:
        self.estimate = array_in(state, "estimate")
