"""The paper's O(d) memory: every node is expected to send the previous estimate (end of Section 4, Appendix D)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sparsemean._types import Doubles
from sparsemean.memory.base import Memory, MemoryFacts, MemorySpec, MemoryState
from sparsemean.state_tree import Tree, array_in


@dataclass(frozen=True)
class Shared(Memory):
    """b_i = last round's estimate for all i. It feeds its own error back and diverges where n·k is small against d.

    The server warns when the factor of that feedback, ``theory.feedback_factor``, is 1 or more.
    """

    @property
    def facts(self) -> MemoryFacts:
        return MemoryFacts(needs_raw=True, feedback=1.0)

    def start(self, spec: MemorySpec) -> MemoryState:
        return _Previous(np.zeros(spec.blocks.dim))


class _Previous(MemoryState):
    def __init__(self, estimate: Doubles) -> None:
        self.estimate = estimate

    def remembered(self, node: str) -> Doubles:
        return self.estimate

    def mean(self, weights: Mapping[str, Doubles]) -> Doubles:
        return self.estimate

    def learn(self, round: int, estimate: Doubles | None) -> None:
        if estimate is not None:
            self.estimate = estimate.copy()

    def state(self) -> Tree:
        return {"estimate": self.estimate}

    def restore(self, state: Tree) -> None:
        self.estimate = array_in(state, "estimate")
