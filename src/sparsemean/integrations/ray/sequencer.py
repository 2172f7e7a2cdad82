"""The sequencer: one order for the batches of all fronts, and which of them all shards have."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Set
from dataclasses import dataclass

from sparsemean.integrations.ray.offers import Delivered, Failed, Offer, Outcome, Ticket
from sparsemean.integrations.ray.turns import Turn


@dataclass(frozen=True, slots=True)
class Flight:
    """A batch that has a ticket, and is not known to be in all shards."""

    front: int
    ticket: Ticket
    offers: list[Offer]

    @property
    def last(self) -> int:
        """Its last record."""
        return self.ticket.after + len(self.offers)


class Sequencer:
    """Gives tickets in one order, and follows how far each shard has come. Thread-safe.

    Shards add batches in the order of tickets, so that a batch that all shards have implies all before it. A batch that
    fails, or whose front dies, leaves a hole: what was given after it cannot be added. ``trouble`` says so; the shards
    are brought to one state, and ``restart`` withdraws what is not in all of them, behind which nobody has a receipt.

    Parameters
    ----------
    shards : int
        How many there are.
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        self.era = 0
        self.trouble: str | None = None
        self._came = threading.Condition()
        self._flights: deque[Flight] = deque()
        self._nodes: set[str] = set()
        self._ended: dict[int, int] = {}  # the last record of each era that is over
        self._stand(-1)

    def _stand(self, sequence: int) -> None:
        self._given = self._safe = sequence
        self._reached = [sequence] * self._shards

    @property
    def under_way(self) -> list[int]:
        """The last record of each batch that has a ticket and was not yet ``settled``."""
        return [flight.last for flight in self._flights]

    @property
    def nodes(self) -> Set[str]:
        """Of whom a payload is under way."""
        return self._nodes

    def issue(self, front: int, round: int, offers: list[Offer]) -> Ticket:
        """A ticket for these, the next in order."""
        with self._came:
            ticket = Ticket(self._given, round, Turn(self.era, self._safe))
            self._flights.append(Flight(front, ticket, offers))
            self._nodes.update(offer.receipt.node for offer in offers)
            self._given += len(offers)
            return ticket

    def note(self, report: Delivered | Failed) -> None:
        """Note what a front says of its batch."""
        with self._came:
            if report.ticket.turn.era != self.era:
                return
            if isinstance(report, Failed):
                self.trouble = self.trouble or report.reason
            elif max(report.sequences) > self._given:
                self.trouble = self.trouble or f"a shard says it has record {max(report.sequences)}, which none has"
            else:
                self._reached = [max(pair) for pair in zip(self._reached, report.sequences, strict=True)]
            self._came.notify_all()

    def lost(self, front: int) -> None:
        """The process of a front is gone: what it had under way may be in some shards only."""
        with self._came:
            if any(flight.front == front for flight in self._flights):
                self.trouble = self.trouble or f"front {front} is gone"
                self._came.notify_all()

    def settled(self) -> list[Flight]:
        """The batches that all shards have, in order, since it was asked last."""
        with self._came:
            return self._taken(min(self._reached))

    def _taken(self, sequence: int) -> list[Flight]:
        taken = []
        while self._flights and self._flights[0].last <= sequence:
            taken.append(self._flights.popleft())
        for flight in taken:
            self._safe = flight.last
            self._nodes.difference_update(offer.receipt.node for offer in flight.offers)
        return taken

    def wait(self, seconds: float) -> bool:
        """Wait until all that has a ticket is in all shards; False if there is trouble, or the time is over."""
        with self._came:
            self._came.wait_for(lambda: self.trouble or min(self._reached) >= self._given, seconds)
            return self.trouble is None and min(self._reached) >= self._given

    def moved(self, sequence: int) -> None:
        """All shards have made changes of other kinds, up to this record, while nothing was under way."""
        with self._came:
            self._stand(sequence)

    def restart(self, sequence: int) -> list[Flight]:
        """A new era, after the shards came to one state at this record; returns the batches that all have after all."""
        with self._came:
            taken = self._taken(sequence)
            self._flights.clear()
            self._nodes.clear()
            self._ended[self.era] = sequence
            self.era, self.trouble = self.era + 1, None
            self._stand(sequence)
            return taken

    def outcome(self, ticket: Ticket) -> Outcome | None:
        """What became of a batch; None while it is under way."""
        era = ticket.turn.era
        with self._came:
            if era < self.era:
                return Outcome.CONFIRMED if ticket.after < self._ended[era] else Outcome.WITHDRAWN
            return Outcome.CONFIRMED if ticket.after < self._safe else None
