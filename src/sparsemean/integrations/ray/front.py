"""One front: opens and checks payloads, cuts them by range and hands them to the shards. What Ray runs as an actor."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sparsemean as sm
from sparsemean.inputs import payload_pairs
from sparsemean.integrations.ray.offers import (
    Admitted,
    Answered,
    Ask,
    Asks,
    Delivered,
    Failed,
    Offer,
    Outcome,
    Refused,
    Standing,
    Ticket,
    View,
)
from sparsemean.integrations.ray.pieces import Piece, pieces
from sparsemean.integrations.ray.ranges import Sharding, ShardLost
from sparsemean.integrations.ray.turns import Withdrawn
from sparsemean.server.local import Entry
from sparsemean.server.server import BATCH, Answer
from sparsemean.server.submissions import Weight, submission_of

QUIET, BUSY = 1.0, 0.02  # seconds after which the sequencer is answered though there is nothing new
PAUSE = 0.05  # seconds until a batch that was withdrawn is offered again

# Given the shards, a ticket, and a column of pieces for each shard.
Deliver = Callable[[Sequence[Any], Ticket, list[list[Piece]]], list[int | sm.SparseMeanError]]


class Front:
    """Takes payloads of any nodes, and holds nothing that would be missed: whoever has no answer sends again.

    It never calls the process that has the ``RayServer``: that one asks, with ``exchange``, and brings the answers.

    Parameters
    ----------
    sharding : Sharding
        Which shard has which coordinates.
    clip : Clip, optional
        As in ``Server``.
    deliver : callable
        Hands a batch to the shards; returns the last record of each, or the error in its place.
    timeout : float
        How many seconds batches are offered again that shards did not take.
    """

    def __init__(self, sharding: Sharding, clip: sm.Clip | None, deliver: Deliver, timeout: float) -> None:
        self._sharding, self._clip, self._deliver, self._timeout = sharding, clip, deliver, timeout
        self._life = uuid.uuid4().hex  # so that no answer to the process before is taken for one to this
        self._changed = threading.Condition()
        self._asks: dict[str, Ask] = {}
        self._answers: dict[str, Answered] = {}
        self._asked = 0
        self._news = False
        self._view: View | None = None

    def exchange(self, answers: Mapping[str, Answered]) -> Asks:
        """Take answers; wait a little for something new to ask, and return all that is unanswered."""
        with self._changed:
            for key in answers.keys() & self._asks.keys():
                self._answers[key] = answers[key]
                del self._asks[key]
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._news, BUSY if self._asks else QUIET)
            self._news = False
            return Asks(self._life, dict(self._asks))

    def _ask(self, ask: Ask) -> Any:
        """The sequencer's answer; raises one that is an error."""
        with self._changed:
            key = f"{self._life} {self._asked}"
            self._asked, self._asks[key], self._news = self._asked + 1, ask, True
            self._changed.notify_all()
            self._changed.wait_for(lambda: key in self._answers)
            answer = self._answers.pop(key)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def accept_many(
        self,
        payloads: Iterable[tuple[str, bytes]] | Mapping[str, bytes] | Path | str,
        weights: Mapping[str, Weight] | None = None,
    ) -> list[tuple[str, Answer]]:
        """As ``Server.accept_many``: a receipt means that all shards have the payload."""
        given: Mapping[str, Weight] = {} if weights is None else weights
        if not isinstance(given, Mapping):
            raise sm.InvalidInput("weights are a dict of node and weight")
        answers: list[tuple[str, Answer]] = []
        for batch in self._batches(payload_pairs(payloads)):
            found = self._accept([(node, blob, given.get(node, 1.0)) for node, blob in batch])
            answers.extend((node, answer) for (node, _), answer in zip(batch, found, strict=True))
        return answers

    def _batches(self, pairs: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
        batch: list[tuple[str, bytes]] = []
        room = self._sharding.batch_bytes
        for node, blob in pairs:
            batch.append((node, blob))
            room -= len(blob) if isinstance(blob, bytes) else 0
            if len(batch) == BATCH or room < 0:
                yield batch
                batch, room = [], self._sharding.batch_bytes
        if batch:
            yield batch

    def _accept(self, given: Sequence[tuple[str, bytes, Weight]]) -> list[Answer]:
        """An answer to each, as many of them in one batch as can be."""
        try:
            found = self._opened(given)
        except sm.SparseMeanError as broken:  # the server has no sound state to judge by
            return [broken] * len(given)
        answers: dict[int, Answer] = {i: each for i, each in enumerate(found) if not isinstance(each, _Cut)}
        waiting = {i: each for i, each in enumerate(found) if isinstance(each, _Cut)}
        latest = time.monotonic() + self._timeout
        while waiting:
            answers |= self._offered(waiting, time.monotonic() > latest)
            waiting = {i: each for i, each in waiting.items() if i not in answers}
            if waiting:
                time.sleep(PAUSE)
        return [answers[i] for i in range(len(given))]

    def _opened(self, given: Sequence[tuple[str, bytes, Weight]]) -> list[_Cut | sm.SparseMeanError]:
        """Each payload cut by range, or why it cannot be read; by the newest terms, before any is refused."""
        view = self._view or self._newest()
        found = [self._cut(view, *each) for each in given]
        if any(isinstance(each, sm.SparseMeanError) for each in found):
            newest = self._newest()
            if newest.version != view.version:
                found = [
                    self._cut(newest, *payload) if isinstance(each, sm.SparseMeanError) else each
                    for payload, each in zip(given, found, strict=True)
                ]
            if errors := [each for each in found if isinstance(each, sm.SparseMeanError)]:
                self._ask(Refused(errors))
        return found

    def _newest(self) -> View:
        view: View = self._ask(Refused([]))
        self._view = view
        return view

    def _cut(self, view: View, node: str, blob: bytes, weight: Weight) -> _Cut | sm.SparseMeanError:
        run, roster = self._sharding.run, view.roster
        try:
            submission = submission_of(run, self._clip, roster, node, blob, weight)
        except sm.SparseMeanError as refused:
            return refused
        acceptance, afresh = roster.acceptance(submission)
        entry = Entry(acceptance, afresh, submission.payload)
        return _Cut(Offer.of(submission, acceptance), pieces(run, self._sharding.bounds, entry, submission.plan))

    def _offered(self, waiting: Mapping[int, _Cut], last: bool) -> dict[int, Answer]:
        """Offer all that wait and hand over what is taken; those without an answer are to be offered again.

        With ``last`` they are not: what shards did not take is answered with the reason.
        """
        try:
            admitted: Admitted = self._ask([each.offer for each in waiting.values()])
        except sm.SparseMeanError as broken:
            return dict.fromkeys(waiting, broken)
        verdicts = dict(zip(waiting, admitted.verdicts, strict=True))
        answers: dict[int, Answer] = {i: each for i, each in verdicts.items() if not isinstance(each, Standing)}
        if admitted.ticket is not None:
            batch = [i for i, each in verdicts.items() if each is Standing.IN]
            failure = self._handed_over(admitted.ticket, [waiting[i] for i in batch])
            if failure is None:
                answers |= {i: waiting[i].offer.receipt for i in batch}
            elif last or not isinstance(failure, ShardLost | Withdrawn):
                answers |= dict.fromkeys(batch, failure)
        return answers

    def _handed_over(self, ticket: Ticket, batch: Sequence[_Cut]) -> sm.SparseMeanError | None:
        """None once all shards have the batch, or else why it was withdrawn."""
        assert self._view is not None  # or nothing would have been cut
        columns = [list(column) for column in zip(*(each.pieces for each in batch), strict=True)]
        replies = self._deliver(self._view.shards, ticket, columns)
        sequences = [reply for reply in replies if isinstance(reply, int)]
        failed = next((reply for reply in replies if not isinstance(reply, int)), None)
        try:
            outcome = self._ask(Delivered(ticket, sequences) if failed is None else Failed(ticket, str(failed)))
        except sm.SparseMeanError as broken:
            return broken
        if outcome is Outcome.CONFIRMED:
            return None
        return failed or Withdrawn("the batch was under way when another failed; make the call again")


@dataclass(frozen=True, slots=True)
class _Cut:
    """A payload: what the sequencer judges, and a piece for each shard."""

    offer: Offer
    pieces: list[Piece]
