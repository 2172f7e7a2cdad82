"""A row per node with running column sums, so that a round costs O(nk + d) and never walks the n × d table."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from sparsemean._types import Array, Doubles, Floats, Ints
from sparsemean.errors import DamagedJournal
from sparsemean.kernels import Changes, Columns, Sample, add_scaled, carry, threads_for
from sparsemean.kernels import put as put_samples
from sparsemean.kernels.listed import ListedChanges, Lost, carry_listed, put_listed, threads_for_lists
from sparsemean.kernels.tiled import Tiled
from sparsemean.memory.base import Arrival, MemorySpec, MemoryState
from sparsemean.memory.column_sums import ColumnSums
from sparsemean.memory.row_check import MASK, row_check
from sparsemean.memory.rows import Row, RowChange, clear, picked, put, replaced, row_with
from sparsemean.payload import Payload
from sparsemean.state_tree import Tree, array_in, branch, names_in

SEEN = "seen"  # the array of a row that says when it was last written: round + 1, 0 for never


class RowTable(MemoryState):
    """Rows by node. ``_present`` sums the rows of those in the round with their weights, ``_everyone`` all rows.

    ``learn`` computes what rows will hold and leaves them as they are; ``settle`` writes it into them. So whoever keeps
    rows on a disk can first make sure that the change is known there.
    """

    def __init__(
        self,
        spec: MemorySpec,
        make_row: Callable[[int], Row],
        forget_after: int | None = None,
        everyone: bool = False,
        name: str = "rows",
    ) -> None:
        self._blocks = spec.blocks
        self._forget_after = forget_after
        self._blank = self._made(make_row)
        self._shown = self._blank.shown
        # Offset: rows add to the mean, but nodes send differences already, so that nothing is subtracted.
        self._expects_nothing = isinstance(self._blank.expected(np.empty(0, np.int64)), float)
        self._section = spec.shelf.section(name, self._blank)
        self._rows: dict[str, Row] = {}
        self._places: dict[str, int] = {}
        self._present = ColumnSums(spec.blocks)
        self._everyone = ColumnSums(spec.blocks) if everyone else None
        self._pending: list[Arrival] = []
        self._changes: dict[str, list[RowChange]] = {}
        self._fresh: list[str] = []
        # What may have to be forgotten: where each node sent, by round. What was sent again since is dropped when that
        # has twice as many coordinates as there are, so that it is short however late things are forgotten.
        self._received: deque[tuple[int, dict[str, Ints]]] = deque()
        self._received_sizes: dict[str, int] = {}
        most = (forget_after or 0) * spec.most_sent
        self._received_bytes = 8 * min(most, 2 * self._blocks.dim + spec.most_sent)  # of one node

    def _made(self, make_row: Callable[[int], Row]) -> Row:
        row = make_row(self._blocks.dim)
        if self._forget_after is not None:
            row.arrays[SEEN] = np.zeros(self._blocks.dim, np.int64)
        for array in row.arrays.values():
            array.flags.writeable = False  # every new row has these very arrays, until ``settle``
        return row

    def _new(self) -> Row:
        """A row that shares the arrays of all new ones, until the shelf gives it its own."""
        return row_with(self._blank, self._blank.arrays)

    @property
    def node_bytes(self) -> int:
        return sum(array.nbytes for array in self._blank.arrays.values()) + self._received_bytes

    def expected(self, node: str, coordinates: Ints) -> Doubles | float:
        row = self._rows.get(node)
        if row is None:
            return 0.0
        values = row.expected(coordinates)
        return values if isinstance(values, float) else values.astype(np.float64)

    def rows(self, nodes: Sequence[str]) -> list[Floats | float]:
        if self._expects_nothing:
            return [0.0] * len(nodes)
        found = [self._rows.get(node) for node in nodes]
        return [0.0 if row is None else row.arrays[self._shown] for row in found]

    def remembered(self, node: str) -> Floats | float:
        self.check(node)
        row = self._rows.get(node)
        return 0.0 if row is None else row.values()

    def mean(self, weights: Mapping[str, Doubles]) -> Doubles:
        before, none = self._present.weights, np.zeros(len(self._blocks.sizes))
        changed = {node: weights.get(node, none) for node in before if node not in weights}
        changed |= {node: weight for node, weight in weights.items() if np.any(weight != before.get(node, none))}
        # Either way O(d) for a node; of the sums begun anew none has lost digits.
        if len(changed) > len(weights):
            self._present.begin(weights, self._values)
        else:
            for node, weight in changed.items():
                self._reweigh(self._present, node, weight)
        total = np.sum(list(weights.values()), axis=0)
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        mean = np.empty(self._blocks.dim)
        for here, factor in zip(self._blocks.slices, inverse.tolist(), strict=True):
            add_scaled(self._present.sums[here], factor, mean[here], True)
        return mean

    def _values(self, node: str) -> Floats | None:
        row = self._rows.get(node)
        return None if row is None else row.values()

    def _reweigh(self, sums: ColumnSums, node: str, weight: Doubles) -> None:
        row = self._rows.get(node)
        sums.reweigh(node, weight, None if row is None else row.values(), self._column)

    def everyone(self) -> Doubles:
        """Σ_i b_i over all rows, whoever takes part."""
        return self._everyone.sums if self._everyone is not None else np.zeros(self._blocks.dim)

    @property
    def nodes(self) -> list[str]:
        """Who has a row."""
        return list(self._rows)

    @property
    def pending(self) -> Sequence[Arrival]:
        """What was taken, and is still to be learnt."""
        return self._pending

    def take(self, arrivals: Sequence[Arrival]) -> None:
        self._pending.extend(arrivals)

    def learn(self, round: int, estimate: Doubles | None) -> None:
        self._add_new(arrival.node for arrival in self._pending)
        samples: dict[tuple[int, ...], list[tuple[Arrival, Sample, Array]]] = {}
        listed: list[tuple[str, Tiled, Array]] = []
        for arrival in self._pending:
            sample, values = self._replacement(arrival)
            if sample is not None:
                samples.setdefault(sample.sizes, []).append((arrival, sample, values))  # by all but the key
            elif lists := self._listed(arrival):
                listed.extend(lists)
            else:
                self._replace_lists(listed)  # nodes are carried into the sums in the order in which they came
                self._receive(round, arrival)
        self._replace_lists(listed)
        for same_size in samples.values():
            self._replace(same_size)
        self._pending = []
        self._expire(round)

    def check(self, node: str) -> None:
        """Refuse a row whose bytes on the disk are no longer what was written."""
        checks = self._section.checks
        if checks is None or node not in self._rows:
            return
        if row_check(self._rows[node].arrays) != checks.get(self._places[node], 0):
            raise DamagedJournal(f"what is remembered of node {node!r} is damaged; restore a copy of the journal")

    def _receive(self, round: int, arrival: Arrival) -> None:
        node, payload = arrival.node, arrival.payload
        if payload is None or not payload.parts:
            return
        parts, (at, places) = payload.parts, _touched(payload)
        # The row as it stands is the latest: a node sends once a round, and the round before is settled.
        entries = picked(self._rows[node], at)
        before = entries.values().astype(np.float64)
        for part, place in zip(parts, places, strict=True):
            entries.receive(place, part)
        if self._forget_after is not None:
            entries.arrays[SEEN][:] = round + 1
            if not self._received or self._received[-1][0] != round:
                self._received.append((round, {}))
            self._received[-1][1][node] = at
            self._received_sizes[node] += at.size
        self._change(RowChange(node, at, entries), before)
        if self._received_sizes[node] > 2 * self._blocks.dim:
            self._drop_what_came_again(node)

    def _drop_what_came_again(self, node: str) -> None:
        for received, of_nodes in self._received:
            if node in of_nodes:
                at = of_nodes[node]
                of_nodes[node] = still = at[self._latest(node, at).arrays[SEEN] == received + 1]
                self._received_sizes[node] -= at.size - still.size
                if not still.size:
                    del of_nodes[node]
        self._received = deque(each for each in self._received if each[1])

    def _replacement(self, arrival: Arrival) -> tuple[Sample | None, Array]:
        """The sample of an arrival that only puts values in place of others, and what it puts; None for the rest."""
        # With ``forget_after``, SEEN has to be written too, and the kernel writes one array.
        parts = arrival.payload.parts if arrival.payload and self._forget_after is None else ()
        if len(parts) == 1 and isinstance(parts[0].where, Sample):
            values = self._rows[arrival.node].replaced_by(parts[0])
            if values is not None:
                return parts[0].where, values
        return None, np.empty(0)

    def _replace(self, same_size: Sequence[tuple[Arrival, Sample, Array]]) -> None:
        """Changes by samples of one size, carried into the sums all at once, tile by tile."""
        arrivals, samples, values = zip(*same_size, strict=True)
        nodes = [arrival.node for arrival in arrivals]
        rows = [self._rows[node] for node in nodes]
        none, columns = np.zeros(len(self._blocks.sizes)), self._sums()
        weights = np.array([[sums.weights.get(node, none) for node in nodes] for sums in columns])
        added = None if self._section.checks is None else np.zeros(len(nodes), np.uint64)
        lost = carry(
            Columns([sums.sums for sums in columns], weights, self._blocks.starts),
            Changes(samples, values, [row.arrays[self._shown] for row in rows]),
            threads_for(samples),
            added,
        )
        # Already those of the rows to come: the state that has them is written to the disk before the rows are.
        for node, check in zip(nodes, [] if added is None else added.tolist(), strict=added is not None):
            self._section.add_check(self._places[node], check)
        for node, sample, new, row in zip(nodes, samples, values, rows, strict=True):
            self._changes.setdefault(node, []).append(RowChange(node, sample, replaced(row, new)))
        for sums in columns:
            sums.repair(lost, self._column)

    def _listed(self, arrival: Arrival) -> list[tuple[str, Tiled, Array]]:
        """The same where coordinates are listed by tile, in parts that have none in common; empty for the rest."""
        node, payload = arrival.node, arrival.payload
        if payload is None or not payload.split or self._forget_after is not None:
            return []
        lists = [(node, part.where, self._rows[node].replaced_by(part)) for part in payload.parts]
        found = [(node, at, new) for node, at, new in lists if isinstance(at, Tiled) and new is not None]
        # A sum without the node does not change, while adding 0 · (new − old) might make 0 of −0.
        return found if len(found) == len(lists) and all(node in sums.weights for sums in self._sums()) else []

    def _replace_lists(self, listed: list[tuple[str, Tiled, Array]]) -> None:
        """Changes of lists of coordinates, carried into the sums all at once, and taken off."""
        if not listed:
            return
        nodes, where, values = zip(*listed, strict=True)
        rows, columns = [self._rows[node] for node in nodes], self._sums()
        added = None if self._section.checks is None else np.zeros(len(nodes), np.uint64)
        lost = carry_listed(
            Columns(
                [sums.sums for sums in columns],
                np.array([[sums.weights[node] for node in nodes] for sums in columns]),
                self._blocks.starts,
            ),
            ListedChanges(where, values, [row.arrays[self._shown] for row in rows]),
            threads_for_lists(where),
            added,
        )
        for node, check in zip(nodes, [] if added is None else added.tolist(), strict=added is not None):
            self._section.add_check(self._places[node], check)
        for i, (node, at, new) in enumerate(listed):
            self._changes.setdefault(node, []).append(RowChange(node, at, replaced(rows[i], new)))
            for sums, late in zip(columns, lost, strict=True):
                if late.at.size:
                    self._repair(sums, late, i, self._changes[node][-1])
        listed.clear()

    def _repair(self, sums: ColumnSums, lost: Lost, number: int, change: RowChange) -> None:
        """Sum anew where a sum was cancelled by list ``number``, and carry its change to where one was before."""
        before = lost.at[lost.since < number]
        if before.size and isinstance(change.where, Tiled):
            near, places = change.where.near(before)
            again = np.isin(near, before, assume_unique=True)
            at, new = near[again], change.entries.values()[places[again]]
            old = self._rows[change.node].values()[at].astype(np.float64)
            sums.carry(change.node, at, old, new, self._column)
        sums.repair(lost.at[lost.since == number], self._column)

    def _add_new(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            if node not in self._rows:
                self._rows[node] = self._new()
                self._received_sizes[node] = 0
                self._places[node] = self._section.reserve()
                self._fresh.append(node)
                if self._everyone is not None:  # a row that is still 0 throughout
                    self._everyone.weights[node] = np.ones(len(self._blocks.sizes))

    def _change(self, change: RowChange, before: Doubles) -> None:
        if self._section.checks is not None:
            where, old = (change.at, self._blocks.dim), self._latest(change.node, change.at)
            added = row_check(change.entries.arrays, *where) - row_check(old.arrays, *where)
            self._section.add_check(self._places[change.node], added)
        self._changes.setdefault(change.node, []).append(change)
        for sums in self._sums():
            sums.carry(change.node, change.at, before, change.entries.values(), self._column)

    def _latest(self, node: str, at: Ints) -> Row:
        """What the row of a node will hold at these coordinates, with all changes so far."""
        entries = picked(self._rows[node], at)
        for change in self._changes.get(node, ()):
            change.onto(at, entries)
        return entries

    def _column(self, node: str, at: Ints) -> Floats | None:
        return self._latest(node, at).values() if node in self._rows else None

    def _expire(self, round: int) -> None:
        """Clear what was last received ``forget_after`` rounds ago: only those coordinates are looked at."""
        while self._forget_after is not None and self._received and self._received[0][0] <= round - self._forget_after:
            received, of_nodes = self._received.popleft()
            for node, coordinates in of_nodes.items():
                self._received_sizes[node] -= coordinates.size
                # Not what was sent again since: its entry comes later in ``_received``.
                old = coordinates[self._latest(node, coordinates).arrays[SEEN] == received + 1]
                entries = self._latest(node, old)
                before = entries.values().astype(np.float64)
                clear(entries)
                self._change(RowChange(node, old, entries), before)

    def settle(self) -> None:
        for node in self._fresh:  # first of all: the place may hold the row of a node that was forgotten
            self._section.renew(self._places[node], self._rows[node])
        samples: dict[tuple[int, ...], list[tuple[Sample, Array, Array]]] = {}
        listed: list[tuple[Tiled, Array, Array]] = []
        for node, changes in self._changes.items():
            row = self._rows[node]
            for change in changes:
                if isinstance(change.where, Sample):
                    written = change.where, change.entries.arrays[self._shown], row.arrays[self._shown]
                    samples.setdefault(change.where.sizes, []).append(written)
                elif isinstance(change.where, Tiled):
                    listed.append((change.where, change.entries.arrays[self._shown], row.arrays[self._shown]))
                else:
                    put(row, change.at, change.entries)
        for same_size in samples.values():
            every = Changes(*zip(*same_size, strict=True))
            put_samples(every, threads_for(every.samples))
        if listed:
            lists = ListedChanges(*zip(*listed, strict=True))
            put_listed(lists, threads_for_lists(lists.where))
        self._fresh, self._changes = [], {}

    def forget(self, node: str) -> None:
        if node in self._rows:
            for sums in self._sums():  # while there is a row to subtract
                self._reweigh(sums, node, np.zeros(len(self._blocks.sizes)))
            del self._rows[node], self._received_sizes[node]
            for _, of_nodes in self._received:
                of_nodes.pop(node, None)
            self._received = deque(each for each in self._received if each[1])
            self._section.release(self._places.pop(node))

    def clear(self) -> None:
        """Forget every node, and what came in the round."""
        for node in list(self._rows):
            self._section.release(self._places.pop(node))
        self._rows, self._received_sizes, self._pending = {}, {}, []
        self._received.clear()
        self._present = ColumnSums(self._blocks)
        self._everyone = None if self._everyone is None else ColumnSums(self._blocks)

    def _sums(self) -> list[ColumnSums]:
        return [self._present] if self._everyone is None else [self._present, self._everyone]

    def changes(self) -> Tree:
        written = [change for changes in self._changes.values() for change in changes]
        names = self._blank.arrays if written else ()
        return {
            "fresh": np.array([self._places[node] for node in self._fresh], np.int64),
            "places": np.array([self._places[change.node] for change in written], np.int64),
            "sizes": np.array([change.at.size for change in written], np.int64),
            "at": np.concatenate([change.at for change in written]) if written else np.empty(0, np.int64),
            "arrays": {
                name: np.concatenate([change.entries.arrays[name] for change in written], axis=-1) for name in names
            },
        }

    def replay(self, changes: Tree) -> None:
        row = self._new()
        for place in array_in(changes, "fresh").tolist():
            self._section.renew(place, row)
        ends = np.cumsum(array_in(changes, "sizes"))
        places, every = array_in(changes, "places").tolist(), branch(changes, "arrays")
        for place, end, size in zip(places, ends.tolist(), array_in(changes, "sizes").tolist(), strict=True):
            here = slice(end - size, end)
            self._section.attach(place, row)
            for name, array in row.arrays.items():
                array[..., array_in(changes, "at")[here]] = array_in(every, name)[..., here]

    def state(self) -> Tree:
        received = [(round, node, at) for round, of_nodes in self._received for node, at in of_nodes.items()]
        checks = self._section.checks or {}
        return {
            "rows": self._section.described(),
            "checks": np.array([checks.get(self._places[node], 0) for node in self._rows], np.uint64).view(np.int64),
            "nodes": list(self._rows),
            "places": np.array([self._places[node] for node in self._rows], np.int64),
            "sums": [sums.state() for sums in self._sums()],
            "received": {
                "rounds": np.array([round for round, _, _ in received], np.int64),
                "nodes": [node for _, node, _ in received],
                "sizes": np.array([at.size for _, _, at in received], np.int64),
                "at": np.concatenate([at for _, _, at in received] or [np.empty(0, np.int64)]),
            },
        }

    def restore(self, state: Tree) -> None:
        self._places = dict(zip(names_in(state, "nodes"), array_in(state, "places").tolist(), strict=True))
        self._section.restore(self._places.values())
        self._rows = {node: self._new() for node in self._places}
        for node, place in self._places.items():
            self._section.attach(place, self._rows[node])
        if self._section.checks is not None:
            self._section.checks = dict(zip(self._places.values(), self._checks_in(state), strict=True))
        # Sums of the rows anew would differ in the last digits, which depend on the order of all changes so far.
        sums = branch(state, "sums")
        for each, saved in zip(self._sums(), sums if isinstance(sums, list) else [], strict=True):
            each.restore(saved)
        received = branch(state, "received")
        ends = np.cumsum(array_in(received, "sizes"))[:-1]
        at = np.split(array_in(received, "at"), ends) if names_in(received, "nodes") else []
        self._received_sizes = dict.fromkeys(self._rows, 0)
        by_round: dict[int, dict[str, Ints]] = {}
        rounds = array_in(received, "rounds").tolist()
        for round, node, coordinates in zip(rounds, names_in(received, "nodes"), at, strict=True):
            by_round.setdefault(round, {})[node] = coordinates
            self._received_sizes[node] += coordinates.size
        self._received = deque(by_round.items())

    def _checks_in(self, state: Tree) -> list[int]:
        """The checksums of rows; of what stands there where the state is of a journal of version 1, which has none."""
        if isinstance(state, dict) and "checks" in state:
            return [check & MASK for check in array_in(state, "checks").tolist()]
        return [row_check(row.arrays) for row in self._rows.values()]


def _touched(payload: Payload) -> tuple[Ints, Sequence[slice | Ints]]:
    """The coordinates of all parts, each once, and where among them those of each part stand."""
    each = [part.coordinates for part in payload.parts]
    if len(each) == 1:
        return each[0], [slice(None)]
    every = np.concatenate(each)
    if payload.split:
        ends = np.cumsum([at.size for at in each]).tolist()
        return every, [slice(end - at.size, end) for at, end in zip(each, ends, strict=True)]
    once = np.unique(every)
    return once, [np.searchsorted(once, at) for at in each]
