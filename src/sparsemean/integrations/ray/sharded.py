"""Rounds in shards: the roster and the assessment are here, all coordinates are in Ray's actors."""

from __future__ import annotations

import copy
import time
from collections.abc import Collection, Iterator, Set
from contextlib import contextmanager

import sparsemean as sm
from sparsemean._types import Counts, Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.integrations.ray.offers import Delivered, Failed, Offer, Outcome, Ticket
from sparsemean.integrations.ray.pieces import pieces
from sparsemean.integrations.ray.ranges import Sharding, ShardLost
from sparsemean.integrations.ray.round_end import Status
from sparsemean.integrations.ray.sequencer import Flight, Sequencer
from sparsemean.integrations.ray.shards import Shards
from sparsemean.sampling import Dealt
from sparsemean.server.assessment import Assessment
from sparsemean.server.fingerprint import fingerprint
from sparsemean.server.local import Entry
from sparsemean.server.roster import Roster, Submission
from sparsemean.server.rounds import Kind, Prepared, Rounds, assessed, concluded


class ShardedRounds(Rounds):
    """Every change is made in all shards, and then here; after one that failed, the shards are brought to one state.

    Batches of fronts have tickets: they are added in that order, and entered here once all shards have them. Every
    other change waits until none is under way.

    Parameters
    ----------
    sharding : Sharding
        Which shard has which coordinates.
    shards : Shards
        The actors.
    patience : float
        How many seconds batches may be under way before their tickets are withdrawn.
    """

    def __init__(self, sharding: Sharding, shards: Shards, patience: float) -> None:
        self._sharding, self._patience = sharding, patience
        self._shards: Shards | None = shards
        self._sequencer = Sequencer(sharding.shards)
        self._version = 0
        self.sound = False
        self._node_bytes = max(state.node_bytes for state in self._agree(shards))

    @property
    def shards(self) -> Shards:
        """The actors; refused after ``close``."""
        if self._shards is None:
            raise sm.InvalidInput("this server was closed; make a new one")
        return self._shards

    def _learn_state(self, shards: Shards) -> None:
        """Restore roster and assessment from what the shards have agreed on."""
        state, accepted, dealt = shards.roll()
        run = self._sharding.run
        roster, assessment = Roster(run, self._sharding.missing, self._sharding.round), Assessment(run)
        try:
            roster.restore(copy.deepcopy(state))
            assessment.restore(copy.deepcopy(state))
        except (ValueError, TypeError, KeyError) as wrong:
            raise ShardLost(f"shard 0 answered roll() with a malformed state: {wrong}; make the call again") from None
        roster.accepted = {each.receipt.node: each for each in accepted}
        if dealt is not None:
            roster.deal(dealt)
        self.roster, self.assessment = roster, assessment

    def _agree(self, shards: Shards) -> list[Status]:
        """Bring the shards to one state, and know it here; what fronts have under way is in all of them, or void."""
        sound, before = self.sound, shards.sequence
        self.sound = False
        states = shards.agree(self._sequencer.era + 1)
        flights = self._sequencer.restart(shards.sequence)
        if sound and shards.sequence >= before:
            self._enter(flights)
        else:
            self._learn_state(shards)
        self._version += 1
        self.sound = True
        return states

    @contextmanager
    def _asking(self) -> Iterator[Shards]:
        """The shards; after an answer that is an error, or cannot be right, they have to agree first."""
        shards, self.sound = self.shards, False
        yield shards
        self._sequencer.moved(shards.sequence)
        self._version += 1
        self.sound = True

    @property
    def version(self) -> int:
        """Changes whenever payloads may have to be read by other terms."""
        return self._version

    @property
    def under_way(self) -> Set[str]:
        """Nodes of which a payload has a ticket, and is not entered."""
        return self._sequencer.nodes

    def issue(self, front: int, offers: list[Offer]) -> Ticket:
        """A ticket for these payloads, none of which is accepted or under way."""
        ticket = self._sequencer.issue(front, self.roster.round, offers)
        self.shards.under_way = self._sequencer.under_way
        return ticket

    def note(self, report: Delivered | Failed) -> None:
        """Note how a batch went; any thread may, at any time."""
        self._sequencer.note(report)

    def front_lost(self, front: int) -> None:
        """The process of a front is gone; any thread may tell, at any time."""
        self._sequencer.lost(front)

    def outcome(self, ticket: Ticket) -> Outcome | None:
        """What became of a batch; None while it is under way."""
        return self._sequencer.outcome(ticket)

    def _enter(self, flights: list[Flight]) -> None:
        """Enter what all shards have, in the order of tickets, in which they added it."""
        for flight in flights:
            self.roster.accepted.update((offer.receipt.node, offer.acceptance) for offer in flight.offers)

    @property
    def durable(self) -> bool:
        return self._sharding.journal is not None

    @property
    def node_bytes(self) -> tuple[int, int]:
        return self._node_bytes, -(-self._sharding.run.payload_bytes // self._sharding.shards)

    def ready(self) -> Roster:
        shards = self.shards
        if not self.sound or self._sequencer.trouble:
            self._agree(shards)
        if flights := self._sequencer.settled():
            self._enter(flights)
            shards.sequence, shards.under_way = flights[-1].last, self._sequencer.under_way
        return self.roster

    def settled(self) -> Roster:
        roster, latest = self.ready(), time.monotonic() + self._patience
        while self._sequencer.under_way:
            if not self._sequencer.wait(latest - time.monotonic()) and time.monotonic() > latest:
                self._agree(self.shards)
            roster = self.ready()
        return roster

    def accept(self, submissions: Collection[Submission]) -> None:
        if not submissions:
            return
        entries = [Entry(*self.roster.acceptance(each), each.payload) for each in submissions]
        run, bounds = self._sharding.run, self._sharding.bounds
        with self._asking() as shards:
            round = self.roster.round
            plans = [self.roster.plan(entry.acceptance.receipt.node, round) for entry in entries]
            cut = [pieces(run, bounds, entry, plan) for entry, plan in zip(entries, plans, strict=True)]
            shards.accept(round, cut)
            for entry in entries:
                self.roster.accepted[entry.acceptance.receipt.node] = entry.acceptance

    def deal(self, terms: Dealt) -> None:
        with self._asking() as shards:
            shards.deal(self.roster.round, terms)
            self.roster.deal(terms)

    def prepare(self, kind: Kind) -> Prepared:
        with self._asking() as shards:
            summary = shards.summary(self.roster.accepted)
        return assessed(self.roster, self.assessment, kind, summary)

    def end(self, prepared: Prepared, most_nodes: int) -> tuple[sm.Estimate | None, str | None]:
        with self._asking() as shards:
            shards.end(prepared.kind, prepared.summary, most_nodes)
            result = self._ended(shards) if prepared.kind == "close" else None
            estimate, warning, *_ = concluded(self.roster, self.assessment, prepared, result, most_nodes)
        return estimate, warning

    def _ended(self, shards: Shards) -> tuple[Doubles, Counts]:
        """Mean and counts of the round that has just ended in the shards."""
        try:
            found = shards.result(self.roster.round, tuple(self.roster.accepted))
        except ShardLost as lost:
            raise ShardLost(
                f"{lost}. Round {self.roster.round} has ended in the shards; with a journal, last_estimate() has its "
                "estimate"
            ) from lost
        return found.mean, found.counts

    def forget(self, node: str) -> None:
        with self._asking() as shards:
            shards.forget(self.roster.round, node)
            self.roster.forget(node)

    def expected(self, node: str) -> Doubles:
        return self.shards.remembered(node)

    def beliefs(self) -> tuple[Belief, ...]:
        return self.assessment.beliefs()

    def last_estimate(self) -> sm.Estimate | None:
        return self.shards.last_result(self.roster.round - 1, self.roster.last_nodes) if self.durable else None

    def digest(self) -> str:
        self.settled()
        return fingerprint([self.roster, self.assessment, self.shards.digests()])

    def close(self) -> None:
        if self._shards is not None:
            self._shards.stop()
        self._shards, self.sound = None, True
