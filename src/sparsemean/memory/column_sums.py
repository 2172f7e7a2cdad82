"""A weighted sum of rows, kept while single entries of the rows change."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.kernels import add_scaled
from sparsemean.kernels.at import carry_at
from sparsemean.kernels.carry import CANCELLED
from sparsemean.payload.blocks import Blocks
from sparsemean.state_tree import Tree, array_in, names_in

Column = Callable[[str, Ints], Floats | None]
"""What the row of a node holds at these coordinates; None where it has no row."""


class ColumnSums:
    """``sums`` is Σ_i w_i b_i over the nodes in ``weights``; it follows every change of a weight or a row."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.weights: dict[str, Doubles] = {}
        self.sums = np.zeros(blocks.dim)

    def reweigh(self, node: str, weight: Doubles, row: Floats | None, column: Column) -> None:
        """Give the node another weight; O(d) where it has a row."""
        before = self.weights.get(node)
        change = weight if before is None else weight - before
        if np.any(weight):  # first the weights, by which ``repair`` sums
            self.weights[node] = weight
        else:
            self.weights.pop(node, None)
        if np.any(change) and row is not None:
            moved = self._blocks.expand(change) * row
            self.sums += moved
            self.repair(np.flatnonzero(np.abs(self.sums) < CANCELLED * np.abs(moved)), column)

    def begin(self, weights: Mapping[str, Doubles], row: Callable[[str], Floats | None]) -> None:
        """These nodes and no others: O(d) for each that has a row, and nothing cancels."""
        self.weights = {node: weight for node, weight in weights.items() if np.any(weight)}
        self.sums = np.zeros(self._blocks.dim)
        for node, weight in self.weights.items():
            values = row(node)
            if values is not None:
                for here, factor in zip(self._blocks.slices, weight.tolist(), strict=True):
                    add_scaled(values[here], factor, self.sums[here], False)

    def carry(self, node: str, coordinates: Ints, before: Doubles, after: Floats, column: Column) -> None:
        """Carry a change of the node's row at these coordinates into the sums; ``column`` knows of it already."""
        if node in self.weights:
            # A large value that comes rounds the others off too, but that shows only when it leaves again.
            lost = carry_at(self.sums, self.weights[node], self._blocks.starts, coordinates, before, after)
            self.repair(lost, column)

    def repair(self, coordinates: Ints, column: Column) -> None:
        """Sum anew where a far larger value left, which takes the digits of the others with it. Rare, O(n) each."""
        if coordinates.size:
            self.sums[coordinates] = 0.0
            for node, weight in self.weights.items():
                known = column(node, coordinates)
                if known is not None:
                    self.sums[coordinates] += self._blocks.at(weight, coordinates) * known

    def state(self) -> Tree:
        """All of it."""
        weights = np.array(list(self.weights.values()), np.float64).reshape(len(self.weights), len(self._blocks.sizes))
        return {"nodes": list(self.weights), "weights": weights, "sums": self.sums}

    def restore(self, state: Tree) -> None:
        """Restore what ``state()`` returned."""
        self.weights = dict(zip(names_in(state, "nodes"), array_in(state, "weights"), strict=True))
        self.sums = array_in(state, "sums")
