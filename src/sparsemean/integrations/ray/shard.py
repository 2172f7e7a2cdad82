"""One shard: the rounds of a range of coordinates, with a journal of its own. What Ray runs as an actor."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

import sparsemean as sm
from sparsemean.core import (
    Acceptance,
    Doubles,
    Journal,
    Record,
    Rounds,
    Shelf,
    Summary,
    Tree,
    branch,
    fingerprint,
    rebuilt,
)
from sparsemean.integrations.ray.calls import (
    MOST,
    check_ending,
    check_ending_summary,
    check_same,
    opened,
    opened_piece,
    pieces_in,
)
from sparsemean.integrations.ray.ending import Ending, Status, is_whole
from sparsemean.integrations.ray.pieces import Piece
from sparsemean.integrations.ray.ranges import Plan, ShardLost
from sparsemean.integrations.ray.usage import Usage, array_bytes, peak_bytes

PATIENCE = 30.0  # seconds until the process that had the journal before must be gone


class Shard:
    """Takes pieces of payloads and ends rounds as it is told.

    Every change says after which record it comes, so that it is harmless to ask for it again: Ray may run a call whose
    answer is lost. A process that dies comes back with what its journal holds, when it is asked next.

    A call that cannot be right is refused with a typed error before anything is written down or counted. The order of
    a change is: check and open what came; append it to the journal; count it.
    """

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan, self._number = plan, number
        self._range = plan.range(number)
        self._journal: Journal | None = None
        self._rounds: Rounds | None = None
        self._counted = -1  # records so far, less one, where no journal counts them
        self._before = -1
        self._ending: Ending | None = None
        self._broken = False  # by an error in the middle of a change, where no journal has the state before it
        self._result: sm.Estimate | None = None  # until the next change, when the front has surely got it
        self._told: Summary | None = None  # of the open round, until the next change

    def status(self) -> Status:
        """Where it stands."""
        rounds = self._held()
        return Status(rounds.round, self._sequence, self._before, rounds.memory.node_bytes)

    def roll(self) -> tuple[Tree, list[Acceptance]]:
        """All that is known but for coordinates, and who came in the open round: what the front has forgotten."""
        rounds = self._held()
        state = rounds.state()
        return ({**state, "memory": None} if isinstance(state, dict) else None), list(rounds.accepted.values())

    def accept(self, after: int, round: int, pieces: Sequence[Piece]) -> None:
        """Count the pieces, all or none; with a journal they are safe then."""
        rounds, given = self._held(), pieces_in(pieces)
        if not self._due(after, len(given)):
            check_same(rounds, given)
            return
        payloads = opened(rounds, round, given, *self._range)
        if self._journal is not None:
            self._journal.accept(round, [piece.record(after) for piece in given])
        with self._changing(after, len(given)):
            for piece, payload in zip(given, payloads, strict=True):
                rounds.count(piece.taken, piece.afresh, payload)

    def forget(self, after: int, round: int, node: str) -> None:
        """Drop all that is remembered of a node."""
        rounds = self._held()
        if not isinstance(node, str) or not node:
            raise sm.InvalidInput(f"a node is named by a non-empty string, got {node!r:.100}")
        if self._due(after, 1):
            if round != rounds.round or node in rounds.accepted:
                raise sm.InvalidInput(f"node {node!r} cannot be forgotten in round {round!r}; {rounds.round} is open")
            if self._journal is not None:
                self._journal.forget(round, node)
            with self._changing(after, 1):
                rounds.forget(node)

    def summary(self, after: int) -> Summary:
        """What this range adds to what is known of the open round."""
        rounds = self._held()
        if not self._due(after, 0):
            raise ShardLost(f"shard {self._number} has changed meanwhile; make a new RayServer")
        return self._summary(rounds)

    def _summary(self, rounds: Rounds) -> Summary:
        if self._told is None:
            with self._guarded():
                self._told = rounds.summary()
        return self._told

    def end(self, ending: Ending) -> None:
        """End the round, of which ``result`` tells then."""
        rounds, ending = self._held(), check_ending(ending)
        if not self._due(ending.after, 1):
            if self._ending is None or (self._ending.after, self._ending.kind) != (ending.after, ending.kind):
                raise sm.InvalidInput(f"no round has ended after record {ending.after} in shard {self._number}")
            return
        check_ending_summary(ending.summary, self._summary(rounds))
        round, result = rounds.round, None
        decoded = rounds.decoded(ending.summary) if ending.kind == "close" else None  # which changes nothing
        with self._changing(ending.after, 1):
            if decoded is None:
                rounds.skip(ending.summary, ending.most_nodes)
            else:
                rounds.divergence(decoded)  # which the front tells
                result = rounds.close(ending.summary, decoded, ending.most_nodes)
            if self._journal is not None:
                state = rounds.state()
                kept: Tree = {**state, "ending": ending.tree()} if isinstance(state, dict) else None
                self._journal.end(ending.kind, round, kept, result, rounds.memory.changes())
            rounds.memory.settle()
            if self._journal is not None:
                self._journal.settled()
        self._ending, self._result = ending, result

    def result(self) -> sm.Estimate | None:
        """The estimate of the round that ended last: mean and counts of this range, and all else as of all ranges."""
        self._held()
        if self._result is None and self._journal is not None:
            return self._journal.last_estimate()
        return self._result

    def ending(self) -> Ending | None:
        """How the last round ended."""
        self._held()
        return self._ending

    def rewind(self, sequence: int) -> None:
        """Undo what came after a record of the open round, since not all shards have it and nobody was promised it."""
        self._held()
        if self._journal is None:
            raise ShardLost("shards disagree, and there is no journal to go back to; make a new RayServer")
        first = -1 if self._ending is None else self._ending.after + 1
        if not is_whole(sequence, first, self._sequence):
            raise sm.InvalidInput(f"the open round has records {first + 1} to {self._sequence}; no way to {sequence!r}")
        self._journal.rewind(sequence)
        self._recover(self._journal)

    def remembered(self, node: str) -> Doubles:
        """What the memory puts in place of this node's vector, in this range."""
        lo, hi = self._range
        if not isinstance(node, str):
            raise sm.InvalidInput(f"a node is named by a string, got {node!r:.100}")
        return np.zeros(hi - lo) + self._held().memory.remembered(node)

    def digest(self) -> str:
        """Changes with any part of the state."""
        rounds = self._held()
        with self._guarded():
            rounds.fold()  # when pieces are added to the totals is not part of the state
        return fingerprint(vars(rounds))

    def usage(self) -> Usage:
        """What it takes."""
        rounds = self._held()
        return Usage(*self._range, len(rounds.known), array_bytes((rounds, self._result)), peak_bytes())

    def close(self) -> None:
        """Let go of the journal."""
        if self._journal is not None:
            self._journal.close()
        self._journal = self._rounds = None

    @property
    def _sequence(self) -> int:
        return self._counted if self._journal is None else self._journal.sequence

    def _due(self, after: int, records: int) -> bool:
        """Whether a change is still to be made; refuses one that does not follow on what is known here."""
        if not is_whole(after, -1, MOST) or self._sequence not in (after, after + records):
            raise ShardLost(
                f"shard {self._number} stands at record {self._sequence}, not {after!r:.100}; make a new RayServer"
            )
        return self._sequence == after

    @contextmanager
    def _changing(self, after: int, records: int) -> Iterator[None]:
        """Where a change fails half-way, take the state from the journal again."""
        self._result, self._told, self._before = None, None, after
        with self._guarded():
            yield
        if self._journal is None:
            self._counted += records

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """What fails within leaves a state that is not used again."""
        try:
            yield
        except BaseException:
            self._broken = self._journal is None
            if not self._broken:
                self._rounds = None
            raise

    def _held(self) -> Rounds:
        """The state, which a new process takes from the journal first."""
        if self._broken:
            raise ShardLost(f"shard {self._number} failed in the middle of a change; make a new RayServer")
        if self._rounds is None:
            if self._plan.journal is None:
                self._rounds = self._fresh(self._plan.round)
            else:
                self._journal = self._opened() if self._journal is None else self._journal
                self._recover(self._journal)
        assert self._rounds is not None
        return self._rounds

    def _fresh(self, round: int, shelf: Shelf | None = None) -> Rounds:
        plan = self._plan
        return Rounds(plan.run, plan.missing, round, plan.batch_bytes, shelf, *self._range)

    def _opened(self) -> Journal:
        folder = self._plan.folder(self._number)
        assert folder is not None
        binding = self._plan.binding(self._number, json.loads(self._plan.run.to_json()))
        latest = time.monotonic() + PATIENCE
        while True:
            try:
                return Journal(folder, binding, self._plan.durable_accepts)
            except (sm.ForeignJournal, sm.DamagedJournal):
                raise
            except sm.JournalError:  # perhaps in use by the process that died and has not quite gone
                if time.monotonic() > latest:
                    raise
                time.sleep(0.1)

    def _recover(self, journal: Journal) -> None:
        """Rebuild the state from the journal."""
        self._before, self._told = -1, None
        rounds, state = rebuilt(journal, self._plan.round, self._fresh, self._replay)
        try:
            self._ending = None if state is None else Ending.of_tree(branch(state, "ending"))
        except (ValueError, TypeError) as error:
            raise sm.DamagedJournal(f"how the last round ended cannot be read: {error}; restore a copy") from None
        if self._ending is not None and journal.sequence == self._ending.after + 1:
            self._before = self._ending.after
        self._rounds = rounds

    def _replay(self, rounds: Rounds, record: Record) -> None:
        """Take a record of the open round again."""
        if record.kind == "forget":
            rounds.forget(record.node)
            self._before = record.sequence - 1
        else:
            piece, self._before = Piece.recorded(record.round, record.node, record.weight, record.payload)
            rounds.count(piece.taken, piece.afresh, opened_piece(rounds, record.round, piece, *self._range))
