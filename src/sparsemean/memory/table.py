"""A row per node with running column sums, so that a round costs O(nk + d) and never walks the n × d table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from sparsemean.blocks import Blocks
from sparsemean.memory.base import Arrival, Recollection
from sparsemean.memory.column_sums import ColumnSums
from sparsemean.payload import Doubles, Floats, Ints, Part


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
    """Rows by node. ``_present`` sums the rows of those in the round, ``_everyone``, where asked for, all alike."""

    def __init__(
        self,
        blocks: Blocks,
        make_row: Callable[[int], Row],
        forget_after: int | None = None,
        everyone: bool = False,
    ) -> None:
        self._blocks = blocks
        self._make_row = make_row
        self._forget_after = forget_after
        self._rows: dict[str, Row] = {}
        self._present = ColumnSums(blocks)
        self._everyone = ColumnSums(blocks) if everyone else None
        self._pending: list[Arrival] = []
        self._seen: dict[str, Ints] = {}
        self._received: deque[tuple[int, str, Ints]] = deque()

    def expected(self, node: str, coordinates: Ints) -> Doubles | float:
        row = self._rows.get(node)
        if row is None:
            return 0.0
        values = row.expected(coordinates)
        return values if isinstance(values, float) else values.astype(np.float64)

    def row(self, node: str) -> Floats | float:
        row = self._rows.get(node)
        return 0.0 if row is None or isinstance(row.expected(np.empty(0, np.int64)), float) else row.values()

    def remembered(self, node: str) -> Floats | float:
        row = self._rows.get(node)
        return 0.0 if row is None else row.values()

    def mean(self, weights: Mapping[str, Doubles]) -> Doubles:
        for node in [node for node in self._present.weights if node not in weights]:
            self._present.reweigh(node, np.zeros(len(self._blocks.sizes)), self._rows)
        for node, weight in weights.items():
            self._present.reweigh(node, weight, self._rows)
        total = np.sum(list(weights.values()), axis=0)
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        return self._present.sums * self._blocks.spread(inverse)

    def everyone(self) -> Doubles:
        """Σ_i b_i over all rows, whoever takes part."""
        return self._everyone.sums if self._everyone is not None else np.zeros(self._blocks.dim)

    @property
    def pending(self) -> bool:
        """Whether something was taken that is still to be learnt."""
        return bool(self._pending)

    def take(self, arrival: Arrival) -> None:
        self._pending.append(arrival)

    def learn(self, round: int, estimate: Doubles | None) -> None:
        for arrival in self._pending:
            row = self._row(arrival.node)
            for part in arrival.payload.parts if arrival.payload else ():
                before = row.values()[part.coordinates].astype(np.float64)
                row.receive(part)
                self._carry(arrival.node, part.coordinates, before)
                self._note(round, arrival.node, part.coordinates)
        self._pending = []
        self._expire(round)

    def _row(self, node: str) -> Row:
        if node not in self._rows:
            self._rows[node] = self._make_row(self._blocks.dim)
            if self._everyone is not None:
                self._everyone.reweigh(node, np.ones(len(self._blocks.sizes)), self._rows)
        return self._rows[node]

    def forget(self, node: str) -> None:
        if node in self._rows:
            for sums in self._kept():
                sums.reweigh(node, np.zeros(len(self._blocks.sizes)), self._rows)
            del self._rows[node]
            self._seen.pop(node, None)

    def _kept(self) -> list[ColumnSums]:
        return [self._present] if self._everyone is None else [self._present, self._everyone]

    def _carry(self, node: str, coordinates: Ints, before: Doubles) -> None:
        for sums in self._kept():
            sums.carry(node, coordinates, before, self._rows)

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
