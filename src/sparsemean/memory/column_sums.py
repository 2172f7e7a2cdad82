"""A weighted sum of rows, kept while single entries of the rows change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from sparsemean.blocks import Blocks
from sparsemean.payload import Doubles, Ints

if TYPE_CHECKING:
    from sparsemean.memory.table import Row

CANCELLED = 1e-6  # a sum this small against what left it has lost six of its sixteen digits


class ColumnSums:
    """``sums`` is Σ_i w_i b_i over the nodes in ``weights``; it follows every change of a weight or a row."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.weights: dict[str, Doubles] = {}
        self.sums = np.zeros(blocks.dim)

    def reweigh(self, node: str, weight: Doubles, rows: Mapping[str, Row]) -> None:
        """Give the node another weight; O(d) where it has a row."""
        before = self.weights.get(node)
        change = weight if before is None else weight - before
        if np.any(weight):
            self.weights[node] = weight
        else:
            self.weights.pop(node, None)
        if np.any(change) and node in rows:
            moved = self._blocks.spread(change) * rows[node].values()
            self.sums += moved
            self._repair(np.flatnonzero(np.abs(self.sums) < CANCELLED * np.abs(moved)), rows)

    def carry(self, node: str, coordinates: Ints, before: Doubles, rows: Mapping[str, Row]) -> None:
        """Carry a change of the node's row at these coordinates into the sums."""
        if node in self.weights:
            weight = self._blocks.at(self.weights[node], coordinates)
            sums = self.sums[coordinates] + weight * (rows[node].values()[coordinates] - before)
            self.sums[coordinates] = sums
            self._repair(coordinates[np.abs(sums) < CANCELLED * np.abs(weight * before)], rows)

    def _repair(self, coordinates: Ints, rows: Mapping[str, Row]) -> None:
        """Sum anew where a far larger value left, which takes the digits of the others with it. Rare, O(n) each."""
        if coordinates.size:
            self.sums[coordinates] = 0.0
            for node, weight in self.weights.items():
                if node in rows:
                    known = rows[node].values()[coordinates]
                    self.sums[coordinates] += self._blocks.at(weight, coordinates) * known
