"""A row per node with running column sums, so that a round costs O(nk + d) and never walks the n × d table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sparsemean.blocks import Blocks
from sparsemean.memory.base import Arrival, Recollection
from sparsemean.payload import Doubles, Floats, Ints, Part

CANCELLED = 1e-6  # a sum this small against what left it has lost six of its sixteen digits


class Row(ABC):
    """What is known of one node."""

    @abstractmethod
    def values(self) -> Floats:
        """b_i: what this row adds to the mean of the memory."""

    @abstractmethod
    def expected(self, coordinates: Ints) -> Floats | float:
        """What is subtracted from values sent at these coordinates."""

    @abstractmethod
    def receive(self, part: Part) -> None:
        """Take in the values of one part."""

    @abstractmethod
    def clear(self, coordinates: Ints) -> None:
        """Forget these coordinates."""


class Table(Recollection):
    """Rows by node. ``_sums`` is Σ_i w_i b_i over the nodes in ``_weights``; both follow every change of a row."""

    def __init__(self, blocks: Blocks, make_row: Callable[[int], Row], forget_after: int | None = None) -> None:
        self._blocks = blocks
        self._make_row = make_row
        self._forget_after = forget_after
        self._rows: dict[str, Row] = {}
        self._weights: dict[str, Doubles] = {}
        self._sums = np.zeros(blocks.dim)
        self._seen: dict[str, Ints] = {}
        self._received: deque[tuple[int, str, Ints]] = deque()

    def expected(self, node: str, coordinates: Ints) -> Doubles | float:
        row = self._rows.get(node)
        if row is None:
            return 0.0
        values = row.expected(coordinates)
        return values if isinstance(values, float) else values.astype(np.float64)

    def remembered(self, node: str) -> Floats | float:
        row = self._rows.get(node)
        return 0.0 if row is None else row.values()

    def mean(self, weights: Mapping[str, Doubles]) -> Doubles:
        for node in [node for node in self._weights if node not in weights]:
            self._reweigh(node, np.zeros(len(self._blocks.sizes)))
        for node, weight in weights.items():
            self._reweigh(node, weight)
        total = np.sum(list(weights.values()), axis=0)
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        return self._sums * self._blocks.spread(inverse)

    def learn(self, round: int, arrivals: Sequence[Arrival], estimate: Doubles | None) -> None:
        for arrival in arrivals:
            row = self._rows.get(arrival.node)
            if row is None:
                row = self._rows[arrival.node] = self._make_row(self._blocks.dim)
            for part in arrival.payload.parts if arrival.payload else ():
                before = row.values()[part.coordinates].astype(np.float64)
                row.receive(part)
                self._carry(arrival.node, part.coordinates, before)
                self._note(round, arrival.node, part.coordinates)
        self._expire(round)

    def forget(self, node: str) -> None:
        if node in self._rows:
            self._reweigh(node, np.zeros(len(self._blocks.sizes)))
            del self._rows[node]
            self._seen.pop(node, None)

    def _reweigh(self, node: str, weight: Doubles) -> None:
        before = self._weights.get(node)
        change = weight if before is None else weight - before
        if np.any(weight):
            self._weights[node] = weight
        else:
            self._weights.pop(node, None)
        if np.any(change) and node in self._rows:
            moved = self._blocks.spread(change) * self._rows[node].values()
            self._sums += moved
            self._repair(np.flatnonzero(np.abs(self._sums) < CANCELLED * np.abs(moved)))

    def _carry(self, node: str, coordinates: Ints, before: Doubles) -> None:
        """Carry a change of the node's row at these coordinates into the sums."""
        if node in self._weights:
            weight = self._blocks.at(self._weights[node], coordinates)
            sums = self._sums[coordinates] + weight * (self._rows[node].values()[coordinates] - before)
            self._sums[coordinates] = sums
            self._repair(coordinates[np.abs(sums) < CANCELLED * np.abs(weight * before)])

    def _repair(self, coordinates: Ints) -> None:
        """Sum anew where a far larger value left, which takes the digits of the others with it. Rare, O(n) each."""
        if coordinates.size:
            self._sums[coordinates] = 0.0
            for node, weight in self._weights.items():
                if node in self._rows:
                    known = self._rows[node].values()[coordinates]
                    self._sums[coordinates] += self._blocks.at(weight, coordinates) * known

    def _note(self, round: int, node: str, coordinates: Ints) -> None:
        if self._forget_after is not None:
            seen = self._seen.setdefault(node, np.full(self._blocks.dim, -1, np.int64))
            seen[coordinates] = round
            self._received.append((round, node, coordinates))

    def _expire(self, round: int) -> None:
        """Clear what was last received ``forget_after`` rounds ago: only those coordinates are looked at."""
        while self._forget_after is not None and self._received and self._received[0][0] <= round - self._forget_after:
            received, node, coordinates = self._received.popleft()
            if node in self._seen:
                old = coordinates[self._seen[node][coordinates] == received]
                before = self._rows[node].values()[old].astype(np.float64)
                self._rows[node].clear(old)
                self._carry(node, old, before)
