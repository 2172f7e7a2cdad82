"""The server's copy of the states that Difference encoders keep (DIANA)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from sparsemean._types import Ints
from sparsemean.encoders import Difference
from sparsemean.errors import IncompatibleScheme
from sparsemean.memory.base import Memory, MemoryFacts, MemorySpec, MemoryState
from sparsemean.memory.rows import Row
from sparsemean.memory.table import RowTable
from sparsemean.payload import Part


@dataclass(frozen=True)
class Offset(Memory):
    """Adds mean(h_i) to the decoded differences; h_i ← h_i + step · difference, as at the node."""

    @property
    def facts(self) -> MemoryFacts:
        return MemoryFacts(per_node=True, adds_offset=True)

    def start(self, spec: MemorySpec) -> MemoryState:
        if not isinstance(spec.encoder, Difference):
            raise IncompatibleScheme(f"Offset follows the state of a Difference encoder, not {spec.encoder!r}")
        dim = spec.blocks.dim if spec.dim is None else spec.dim
        return RowTable(spec, partial(NodeState, spec.encoder.step_in(dim)))


class NodeState(Row):
    """h_i as the node has it: the same additions in the same order."""

    shown = "h"

    def __init__(self, step: float, dim: int) -> None:
        super().__init__(h=np.zeros(dim))
        self._step = step

    def expected(self, coordinates: Ints) -> float:
        return 0.0

    def receive(self, at: Ints | slice, part: Part) -> None:
        self.arrays["h"][at] += self._step * part.scale * part.values.astype(np.float64)
