"""One shard: the rounds of a range of coordinates, with a journal of its own. What Ray runs as an actor."""

from __future__ import annotations

import time
from collections.abc import Sequence

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.decoding.summary import Summary
from sparsemean.integrations.ray.calls import (
    MOST,
    check_end,
    check_end_summary,
    check_same,
    opened,
    opened_piece,
    pieces_in,
    terms_dealt,
)
from sparsemean.integrations.ray.pieces import Piece
from sparsemean.integrations.ray.ranges import Sharding, ShardLost
from sparsemean.integrations.ray.round_end import RoundEnd, Status, is_whole
from sparsemean.integrations.ray.turns import Batch, Turn, Turns
from sparsemean.integrations.ray.usage import Usage, array_bytes, peak_bytes
from sparsemean.journal import Journal, Record
from sparsemean.sampling import Dealt
from sparsemean.server.local import Entry, LocalRounds
from sparsemean.server.roster import Acceptance, Roster
from sparsemean.state_tree import Tree, branch

PATIENCE = 30.0  # seconds until the process that had the journal before must be gone


class Shard:
    """Takes pieces of payloads and ends rounds as it is told.

    Every change says after which record it comes, so that it is harmless to ask for it again: Ray may run a call whose
    answer is lost. A process that dies comes back with what its journal holds, when it is asked next.

    A call that cannot be right is refused with a typed error before anything is written down or counted.
    """

    def __init__(self, sharding: Sharding, number: int) -> None:
        self._sharding, self._number = sharding, number
        self._range = sharding.range(number)
        self._journal: Journal | None = None
        self._rounds: LocalRounds | None = None
        self._counted = -1  # records so far, less one, where no journal counts them
        self._before = -1
        self._end: RoundEnd | None = None
        self._result: sm.Estimate | None = None  # until the next change, when the coordinator has surely got it
        self._told: Summary | None = None  # of the open round, until the next change
        self._turns = Turns()

    def status(self, era: int = 0) -> Status:
        """Where it stands; from now on it takes turns of this era, or of a later one."""
        rounds = self._ready()
        self._turns.begin(era)
        return Status(rounds.roster.round, self._sequence, self._before, rounds.node_bytes[0])

    def roll(self) -> tuple[Tree, list[Acceptance], Dealt | None]:
        """What the coordinator has forgotten: all that is known but for coordinates, who came, and by which terms."""
        rounds = self._ready()
        state: Tree = {**rounds.roster.state(), **rounds.assessment.state(), "memory": None}
        return state, list(rounds.roster.accepted.values()), rounds.roster.dealt

    def accept(self, after: int, round: int, pieces: Sequence[Piece], turn: Turn | None = None) -> int:
        """Count the pieces, all or none; returns the last record, and with a journal all up to it is safe.

        With a ``turn`` it may be before the turn of these, which then wait: the call that brings what is missing before
        them counts them too.
        """
        rounds, given = self._ready(), pieces_in(pieces)
        if turn is not None:
            self._turns.check(turn)
        early = turn is not None and is_whole(after, self._sequence + 1, MOST)
        if not early and not self._due(after, len(given), turn is not None):
            check_same(rounds.roster, given)
            return self._sequence
        safe = after if turn is None else turn.safe
        payloads = opened(rounds.roster, round, given, *self._range)
        entries = [
            Entry(piece.acceptance, piece.afresh, payload) for piece, payload in zip(given, payloads, strict=True)
        ]
        batch = Batch(after, safe, entries, [piece.record(safe) for piece in given] if rounds.durable else [])
        if early:
            self._turns.wait(batch)
            return self._sequence
        due = self._turns.due(batch)
        entries = [entry for each in due for entry in each.entries]
        rounds.add(entries, [record for each in due for record in each.records])
        self._changed(max(each.safe for each in due), len(entries))
        return self._sequence

    def forget(self, after: int, round: int, node: str) -> None:
        """Drop all that is remembered of a node."""
        rounds = self._ready()
        if not isinstance(node, str) or not node:
            raise sm.InvalidInput(f"a node is named by a non-empty string, got {node!r:.100}")
        if self._due(after, 1):
            opened = rounds.roster.round
            if round != opened or node in rounds.roster.accepted:
                raise sm.InvalidInput(f"node {node!r} cannot be forgotten in round {round!r}; {opened} is open")
            rounds.forget(node)
            self._changed(after, 1)

    def deal(self, after: int, round: int, terms: Dealt) -> None:
        """Fix what nodes go by in the open round."""
        rounds = self._ready()
        given = terms_dealt(terms, len(self._sharding.run.encoders), rounds.roster.in_epoch)
        if not self._due(after, 1):
            if rounds.roster.dealt != given:
                raise sm.InvalidInput(f"the slots of round {round!r} were dealt to other nodes, or with another ratio")
            return
        if round != rounds.roster.round or rounds.roster.begun or not self._sharding.run.planned:
            raise sm.InvalidInput(f"slots cannot be dealt in round {round!r}; {rounds.roster.round} is open")
        rounds.deal(given)
        self._changed(after, 1)

    def summary(self, after: int) -> Summary:
        """What this range adds to what is known of the open round."""
        rounds = self._ready()
        if not self._due(after, 0):
            raise ShardLost(f"shard {self._number} has changed meanwhile; make a new RayServer")
        return self._summary(rounds)

    def _summary(self, rounds: LocalRounds) -> Summary:
        if self._told is None:
            self._told = rounds.summary()
        return self._told

    def end(self, end: RoundEnd) -> None:
        """End the round, of which ``result`` tells then."""
        rounds, end = self._ready(), check_end(end)
        if not self._due(end.after, 1):
            if self._end is None or (self._end.after, self._end.kind) != (end.after, end.kind):
                raise sm.InvalidInput(f"no round has ended after record {end.after} in shard {self._number}")
            return
        check_end_summary(end.summary, self._summary(rounds))
        prepared = rounds.prepare(end.kind, end.summary)
        estimate, _ = rounds.end(prepared, end.most_nodes, {"ending": end.tree()})  # the coordinator tells the warning
        self._changed(end.after, 1)
        self._end, self._result = end, estimate

    def result(self) -> sm.Estimate | None:
        """The estimate of the round that ended last: mean and counts of this range, and all else as of all ranges."""
        rounds = self._ready()
        return rounds.last_estimate() if self._result is None and rounds.durable else self._result

    def ending(self) -> RoundEnd | None:
        """How the last round ended."""
        self._ready()
        return self._end

    def rewind(self, sequence: int) -> None:
        """Undo what came after a record of the open round, since not all shards have it and nobody was promised it."""
        rounds = self._ready()
        if self._journal is None:
            raise ShardLost("shards disagree, and there is no journal to go back to; make a new RayServer")
        first = -1 if self._end is None else self._end.after + 1
        if not is_whole(sequence, first, self._sequence):
            raise sm.InvalidInput(f"the open round has records {first + 1} to {self._sequence}; no way to {sequence!r}")
        self._journal.rewind(sequence)
        self._rebuild(rounds, self._journal)

    def remembered(self, node: str) -> Doubles:
        """What the memory puts in place of this node's vector, in this range."""
        if not isinstance(node, str):
            raise sm.InvalidInput(f"a node is named by a string, got {node!r:.100}")
        return self._ready().expected(node)

    def digest(self) -> str:
        """Changes with any part of the state."""
        return self._ready().digest()

    def usage(self) -> Usage:
        """What it takes."""
        rounds = self._ready()
        arrays = array_bytes((rounds.roster, rounds.estimator, self._result))
        return Usage(*self._range, len(rounds.roster.known), arrays, peak_bytes())

    def close(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()
        self._journal = self._rounds = None

    @property
    def _sequence(self) -> int:
        return self._counted if self._journal is None else self._journal.sequence

    def _due(self, after: int, records: int, others: bool = False) -> bool:
        """Whether a change is still to be made; refuses one that does not follow on what is known here.

        Where there are ``others`` that make changes, theirs may have followed on it.
        """
        if is_whole(after, -1, MOST):
            if self._sequence == after:
                return True
            beyond = self._sequence - after - records
            if beyond == 0 or (others and beyond > 0):
                return False
        raise ShardLost(
            f"shard {self._number} stands at record {self._sequence}, not {after!r:.100}; make a new RayServer"
        )

    def _changed(self, safe: int, records: int) -> None:
        self._result, self._told, self._before = None, None, safe
        if self._journal is None:
            self._counted += records

    def _ready(self) -> LocalRounds:
        """The rounds; rebuilt from the journal in a new process, and after a change that failed half-way."""
        durable = self._sharding.journal is not None
        if self._rounds is None and not durable:
            self._rounds = self._fresh()
        elif durable and (self._rounds is None or not self._rounds.sound):
            self._journal = self._opened() if self._journal is None else self._journal
            rounds = self._fresh()
            self._rebuild(rounds, self._journal)
            self._rounds = rounds
        assert self._rounds is not None
        if not self._rounds.sound:
            raise ShardLost(f"shard {self._number} failed in the middle of a change; make a new RayServer")
        return self._rounds

    def _fresh(self) -> LocalRounds:
        given = self._sharding
        return LocalRounds(given.run, given.missing, given.round, given.batch_bytes, self._read, *self._range)

    def _opened(self) -> Journal:
        folder = self._sharding.folder(self._number)
        assert folder is not None
        binding = self._sharding.binding(self._number, self._sharding.run.agreed())
        latest = time.monotonic() + PATIENCE
        while True:
            try:
                return Journal(folder, binding, self._sharding.durable_accepts)
            except (sm.ForeignJournal, sm.DamagedJournal):
                raise
            except sm.JournalError:  # perhaps in use by the process that died and has not quite gone
                if time.monotonic() > latest:
                    raise
                time.sleep(0.1)

    def _rebuild(self, rounds: LocalRounds, journal: Journal) -> None:
        """Rebuild the state from the journal."""
        self._before, self._told, self._result = -1, None, None
        note = rounds.open(journal)
        try:
            self._end = None if note is None else RoundEnd.of_tree(branch(note, "ending"))
        except (ValueError, TypeError) as error:
            raise sm.DamagedJournal(f"how the last round ended cannot be read: {error}; restore a copy") from None
        if self._end is not None and journal.sequence == self._end.after + 1:
            self._before = self._end.after

    def _read(self, roster: Roster, record: Record) -> Entry | None:
        """A record of the open round; ``_before`` follows, since what came after it others may not have."""
        if record.kind != "accept":
            self._before = record.sequence - 1
            return None
        piece, self._before = Piece.recorded(record.round, record.node, record.weight, record.payload)
        payload = opened_piece(roster, record.round, piece, *self._range)
        return Entry(piece.acceptance, piece.afresh, payload)
