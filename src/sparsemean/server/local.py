"""Rounds in this process: roster, assessment and estimator, with the one order that makes changes durable.

The order in which a round ends::

    prepare   summary, decode: nothing has changed that could be seen
    compute   the estimate, and what is learnt from it, in memory alone
    write     the state, the end of the round and what is to be written into rows go to the journal, which syncs
    settle    rows are written in place

A crash before *write* is complete leaves the journal with the open round and all it had accepted: the round is closed
again. A crash after it leaves the state after the round, and recovery writes the rows again from the journal. A payload
is in the journal before it is counted, so what has a receipt is never lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparsemean._names import Missing
from sparsemean._types import Doubles, Floats
from sparsemean.codec import pack_sketch
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.summary import Summary
from sparsemean.errors import BrokenServer, DamagedJournal, InvalidInput, JournalError, SparseMeanError
from sparsemean.inputs import vector_of
from sparsemean.memory import Arrival
from sparsemean.memory.rows import InMemory, Shelf
from sparsemean.payload import Payload
from sparsemean.results import Estimate
from sparsemean.run import Run
from sparsemean.sampling import Dealt
from sparsemean.server.assessment import Assessment
from sparsemean.server.estimator import Estimator
from sparsemean.server.fingerprint import fingerprint
from sparsemean.server.roster import Acceptance, Roster, Submission
from sparsemean.server.rounds import Kind, Prepared, Rounds, assessed, concluded
from sparsemean.state_tree import Tree, branch

if TYPE_CHECKING:
    from sparsemean.journal import Journal, Record


class Entry(NamedTuple):
    """A payload to be counted; ``afresh`` if its node begins with it, whatever was known of the node."""

    acceptance: Acceptance
    afresh: bool
    payload: Payload | None


class LocalRounds(Rounds):
    """The rounds of a server, or of the shard of one that has the coordinates [lo, hi).

    Parameters
    ----------
    run : Run
    missing : {"drop", "carry"}
    round : int
        The first round, where no journal says otherwise.
    batch_bytes : int
        Payloads wait in memory up to this size, and are then folded into the totals in one pass.
    read : callable
        Reads a record of the open round in the journal: (roster, record) → entry, None where it is no payload.
    lo, hi : int
        The range of coordinates; by default all.
    """

    def __init__(
        self,
        run: Run,
        missing: Missing,
        round: int,
        batch_bytes: int,
        read: Callable[[Roster, Record], Entry | None],
        lo: int = 0,
        hi: int | None = None,
    ) -> None:
        self._run, self._missing, self._first_round = run, missing, round
        self._batch_bytes = batch_bytes
        self._read = read
        self._range = (lo, hi)
        self._journal: Journal | None = None
        self.sound, self._closed = True, False
        self._begin(round)

    def _begin(self, round: int, shelf: Shelf | None = None) -> None:
        self.roster = Roster(self._run, self._missing, round)
        self.assessment = Assessment(self._run)
        self._shelf = InMemory() if shelf is None else shelf
        self.estimator = Estimator(self._run, self._shelf, *self._range)
        self._follow()
        self._empty_queue()

    def _follow(self) -> None:
        """A round begins: its payloads and its estimate go by its own run, where ``Auto`` chooses one."""
        self.assessment.run = self.estimator.run = self.roster.open_run

    def _empty_queue(self) -> None:
        self._queue: dict[str, Arrival] = {}
        self._queued_bytes = 0

    def open(self, journal: Journal) -> Tree:
        """Keep changes in this journal from now on, and go on from what it holds.

        Returns the state after its last round, with the note that ``end`` was given; None before the first.
        """
        self._journal = journal
        return self._recover()

    @property
    def durable(self) -> bool:
        return self._journal is not None

    @property
    def node_bytes(self) -> tuple[int, int]:
        return self.estimator.memory.node_bytes, self._run.payload_bytes

    def ready(self) -> Roster:
        if self._closed:
            raise JournalError("the server is closed; make a new one")
        if self._journal is not None:
            self._journal.check_process()
        if not self.sound:
            if self._journal is None:
                raise BrokenServer(
                    "an error in the middle of a change left this server's state incomplete; make a new server, with "
                    "journal= if it should recover by itself"
                )
            self._recover()
        return self.roster

    @contextmanager
    def _changing(self, harmless: type[Exception] | tuple[()] = ()) -> Iterator[None]:
        """An error within leaves the state incomplete, unless it is ``harmless``."""
        try:
            yield
        except harmless:
            raise
        except BaseException:
            self.sound = False
            raise

    def enqueue(self, submission: Submission) -> bool:
        acceptance, afresh = self.roster.acceptance(submission)
        held = _held_bytes(submission.payload)
        if self._journal is not None or afresh or self._queued_bytes + held > self._batch_bytes:
            return False
        self._wait(acceptance, submission.payload, held)
        return True

    def accept(self, submissions: Collection[Submission]) -> None:
        entries = [Entry(*self.roster.acceptance(each), each.payload) for each in submissions]
        self.add(entries, [(each.receipt.node, each.weight.tobytes(), each.blob) for each in submissions])

    def add(self, entries: Sequence[Entry], records: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Count payloads of the open round, all or none; ``records`` are what the journal keeps of them."""
        if self._journal is not None and records:
            with self._changing(harmless=JournalError):
                self._journal.accept(self.roster.round, records)
        with self._changing():
            for entry in entries:
                self._count(entry)

    def _count(self, entry: Entry) -> None:
        if entry.afresh:
            self.estimator.memory.begin_afresh(entry.acceptance.receipt.node)
        self._wait(entry.acceptance, entry.payload, _held_bytes(entry.payload))
        if self._queued_bytes > self._batch_bytes:
            self._fold()

    def _wait(self, acceptance: Acceptance, payload: Payload | None, held: int) -> None:
        """Let a payload wait in the queue. Its line in the roster decides: before it, what is in the queue is void."""
        node = acceptance.receipt.node
        self._queue.pop(node, None)
        self._queued_bytes += held
        self._queue[node] = Arrival(node, acceptance.weight, payload)
        self.roster.accepted[node] = acceptance

    def _fold(self) -> None:
        arrivals = [arrival for node, arrival in self._queue.items() if node in self.roster.accepted]
        self.estimator.fold(arrivals, self.roster.sent_before, self.roster.look)
        self._empty_queue()

    def deal(self, terms: Dealt) -> None:
        if self._journal is not None:  # before it is told: nodes will go by it, whatever becomes of this process
            with self._changing(harmless=JournalError):
                self._journal.deal(self.roster.round, terms)
        with self._changing():
            self.roster.deal(terms)

    def refer_to(self, reference: Floats) -> None:
        if self._journal is not None:  # as plans are: payloads that come later are read by it
            with self._changing(harmless=JournalError):
                self._journal.refer(self.roster.round, reference)
        with self._changing():
            self.roster.refer_to(reference)

    def summary(self) -> Summary:
        """What this range adds to the summary of the open round."""
        with self._changing():
            self._fold()
            return self.estimator.summary()

    def prepare(self, kind: Kind, summary: Summary | None = None) -> Prepared:
        """See ``Rounds.prepare``; ``summary`` is that of all ranges, where this is one of several."""
        prepared = assessed(self.roster, self.assessment, kind, self.summary() if summary is None else summary)
        prepared = replace(prepared, unresolved=self.estimator.totals.unresolved)
        if kind == "skip":
            return prepared
        everyone = np.sum(list(prepared.weights.values()), axis=0) if self._missing == "carry" else None
        innovation, counts = self.estimator.innovation(prepared.beliefs, everyone)
        return replace(prepared, innovation=innovation, counts=counts)

    def end(
        self, prepared: Prepared, most_nodes: int, note: dict[str, Tree] | None = None
    ) -> tuple[Estimate | None, str | None]:
        """See ``Rounds.end``, and the order above; ``note`` is kept with the state."""
        journal, memory, round = self._journal, self.estimator.memory, self.roster.round
        with self._changing():
            estimate, warning = self._computed(prepared, most_nodes)
            if journal is not None:
                journal.end(prepared.kind, round, {**self.state(), **(note or {})}, estimate, memory.changes())
            memory.settle()
            if journal is not None:
                journal.settled()
        return estimate, warning

    def _computed(self, prepared: Prepared, most_nodes: int) -> tuple[Estimate | None, str | None]:
        """The estimate, and the state after the round, but for rows on the shelf."""
        estimator, round, result = self.estimator, self.roster.round, None
        if prepared.innovation is not None and prepared.counts is not None:
            result = estimator.mean(prepared.innovation, prepared.weights), prepared.counts
        estimate, warning, forgotten, past = concluded(self.roster, self.assessment, prepared, result, most_nodes)
        for node in forgotten:
            estimator.memory.forget(node)
        estimator.learn(round, None if estimate is None else estimate.mean, prepared.summary, past)
        self._follow()
        return estimate, warning

    def forget(self, node: str) -> None:
        if self._journal is not None:
            with self._changing(harmless=JournalError):
                self._journal.forget(self.roster.round, node)
        with self._changing():
            self._forget(node)

    def _forget(self, node: str) -> None:
        # A hybrid memory takes its common average anew only where nobody has come yet: without folding first, the
        # result would depend on when payloads are folded.
        if self._queue:
            self._fold()
        self.estimator.memory.forget(node)
        self.roster.forget(node)

    def expected(self, node: str) -> Doubles:
        lo, hi = self._range
        return np.zeros((self._run.dim if hi is None else hi) - lo) + self.estimator.memory.remembered(node)

    def sketch(self, node: str) -> bytes:
        expected = partial(self.estimator.memory.expected, node)
        return pack_sketch(self._run, node, self.roster.round, expected)

    def beliefs(self) -> tuple[Belief, ...]:
        return self.assessment.beliefs()

    def last_estimate(self) -> Estimate | None:
        return None if self._journal is None else self._journal.last_estimate()

    def digest(self) -> str:
        with self._changing():
            self._fold()  # when payloads are folded is not part of the state
        return fingerprint([self.roster, self.assessment, self.estimator])

    def state(self) -> dict[str, Tree]:
        """All of it between two rounds, but for rows on a shelf."""
        return {**self.roster.state(), **self.assessment.state(), "memory": self.estimator.memory.state()}

    def saved(self) -> Tree:
        if self._journal is not None:
            raise InvalidInput("the rounds of this server are in its journal; open a server with that, or copy it")
        if self.roster.begun:
            raise InvalidInput(
                f"plans of round {self.roster.round} are told, or payloads came; save() after close_round(), before "
                "the next round begins"
            )
        assert isinstance(self._shelf, InMemory)  # a shelf in files belongs to a journal
        return {**self.state(), "rows": self._shelf.tree()}

    def restore(self, saved: Tree) -> None:
        self.sound = False
        self._begin(self._first_round, InMemory(branch(saved, "rows")))
        self.roster.restore(saved)
        self.assessment.restore(saved)
        self.estimator.memory.restore(branch(saved, "memory"))
        self._follow()
        self.sound = True

    def _recover(self) -> Tree:
        """Rebuild the state from the journal.

        Rows are written once more by the rounds since their last sync; then the state after the last round is restored;
        then the records of the open round are replayed.
        """
        from sparsemean.journal.log import readable  # a node has no use for a database

        assert self._journal is not None
        self.sound = False
        held = self._journal.recovered()
        try:
            with readable("the state in the journal"):
                first = next(held.records, None)
                self._begin(self._first_round if first is None else first.round, self._journal.shelf)
                for changes in held.changes:
                    self.estimator.memory.replay(changes)
                if held.state is not None:
                    self.roster.restore(held.state)
                    self.assessment.restore(held.state)
                    self.estimator.memory.restore(branch(held.state, "memory"))
                    self._follow()
                for record in chain([] if first is None else [first], held.records):
                    entry = self._read(self.roster, record)
                    if entry is not None:
                        self._count(entry)
                    elif record.kind == "forget":
                        self._forget(record.node)
                    elif record.kind == "refer":
                        self.roster.refer_to(vector_of(record.reference, self._run.dim))
                    else:
                        self.roster.deal(record.dealt)
        except JournalError:
            raise
        except SparseMeanError as error:
            raise DamagedJournal(f"a record of the journal does not fit its state: {error}") from error
        self.sound = True
        return held.state

    def close(self) -> None:
        if self._journal is not None:
            self._closed = self.sound = True
            self._journal.close()


def _held_bytes(payload: Payload | None) -> int:
    return 0 if payload is None else payload.held_bytes
