"""An O(d) memory that cannot diverge: everybody is expected to send what those heard last sent on average."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sparsemean._types import Doubles
from sparsemean.memory.base import Arrival, Memory, MemoryFacts, MemorySpec, MemoryState
from sparsemean.memory.fit import unit_ratio
from sparsemean.payload.blocks import Blocks
from sparsemean.state_tree import Tree, array_in


@dataclass(frozen=True)
class SharedStable(Memory):
    """b_j = a · c_j for all nodes, c_j the average of the values last received at coordinate j.

    Averages of raw values never feed an error back, unlike ``Shared``. The factor a ∈ [0, 1] of each block is the
    least-squares fit of last round's values on c, weighted by w², so data whose nodes disagree fall back to no memory.
    """

    @property
    def facts(self) -> MemoryFacts:
        return MemoryFacts(needs_raw=True)

    def start(self, spec: MemorySpec) -> MemoryState:
        return _Averages(spec.blocks)


class _Averages(MemoryState):
    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._average = np.zeros(blocks.dim)
        self._factor = np.ones(len(blocks.sizes))
        self._expected = np.zeros(blocks.dim)
        self._clear()

    def _clear(self) -> None:
        self._sums, self._weights = np.zeros(self._blocks.dim), np.zeros(self._blocks.dim)
        self._along, self._length = np.zeros(len(self._blocks.sizes)), np.zeros(len(self._blocks.sizes))

    def remembered(self, node: str) -> Doubles:
        return self._expected

    def mean(self, weights: Mapping[str, Doubles]) -> Doubles:
        return self._expected

    def take(self, arrivals: Sequence[Arrival]) -> None:
        for given, part in ((each.weight, part) for each in arrivals if each.payload for part in each.payload.parts):
            at, values = part.coordinates, part.values.astype(np.float64)
            weight, average = self._blocks.at(given, at), self._average[at]
            self._sums[at] += weight * values
            self._weights[at] += weight
            self._along += self._blocks.sums_at(at, weight**2 * values * average)
            self._length += self._blocks.sums_at(at, weight**2 * average * average)

    @property
    def fits(self) -> Doubles:
        return np.stack([self._along, self._length])

    def pool(self, fits: Doubles) -> None:
        self._along, self._length = fits

    def learn(self, round: int, estimate: Doubles | None) -> None:
        heard = self._weights > 0
        np.divide(self._sums, self._weights, out=self._average, where=heard)
        self._factor = unit_ratio(self._along, self._length, self._factor)
        self._expected = self._blocks.expand(self._factor) * self._average
        self._clear()

    def state(self) -> Tree:
        return {"average": self._average, "factor": self._factor}

    def restore(self, state: Tree) -> None:
        self._average, self._factor = array_in(state, "average"), array_in(state, "factor")
        self._expected = self._blocks.expand(self._factor) * self._average
