"""All shards, as seen by the coordinator: asked at once, brought to one state again where they differ."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import ray

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.decoding.summary import Summary
from sparsemean.integrations.ray import replies
from sparsemean.integrations.ray.asking import Asking, Check, first_error_of
from sparsemean.integrations.ray.pieces import Piece
from sparsemean.integrations.ray.ranges import Sharding, ShardLost
from sparsemean.integrations.ray.round_end import RoundEnd, Status
from sparsemean.integrations.ray.shard import Shard
from sparsemean.integrations.ray.usage import Usage
from sparsemean.sampling import Dealt
from sparsemean.server.estimator import Estimator
from sparsemean.server.roster import Acceptance
from sparsemean.server.rounds import Kind
from sparsemean.state_tree import Tree

RETRY = 1.0  # seconds until a disk that was full is tried again

log = logging.getLogger("sparsemean.ray")


class Shards:
    """The actors of a server, asked at once; every reply is checked, and one that cannot be right is a ``ShardLost``.

    ``sequence`` is the last record that all shards have confirmed. After a change that failed, ``agree`` brings all
    shards to one state.
    """

    def __init__(self, sharding: Sharding, options: Mapping[str, Any], timeout: float) -> None:
        # A call does no harm twice, so Ray may repeat it when an actor is back; without a journal it would be empty.
        again = -1 if sharding.journal is not None else 0
        chosen = {"scheduling_strategy": "SPREAD", **options, "max_restarts": again, "max_task_retries": again}
        self._sharding, self._timeout = sharding, timeout
        self._like = Estimator(sharding.run, None, 0, 0).summary()  # of no coordinates
        self._finite = replies.bounded(sharding.run)
        made: Any = ray.remote(Shard).options(**chosen)
        self.actors: list[Any] = [made.remote(sharding, number) for number in range(sharding.shards)]
        self._asking = Asking(self.actors, timeout, sharding.journal is not None)
        self.sequence = -1
        self.under_way: Sequence[int] = ()  # last records of changes that some shards may have made, and others not
        self._round: int | None = None  # the open round, once the shards have agreed on one
        self._ending = False  # whether such a change ends the round

    def accept(self, round: int, cut: Sequence[Sequence[Piece]]) -> None:
        """Hand each shard its pieces: one row of ``cut`` for each payload, one column for each shard."""
        arguments = [(self.sequence, round, list(column)) for column in zip(*cut, strict=True)]
        self._change("accept", arguments, len(cut), replies.sequence_from(self.sequence + len(cut)))

    def forget(self, round: int, node: str) -> None:
        """Drop all that is remembered of a node."""
        self._change("forget", [(self.sequence, round, node)] * len(self.actors), 1)

    def deal(self, round: int, terms: Dealt) -> None:
        """Fix what nodes go by in the open round."""
        self._change("deal", [(self.sequence, round, terms)] * len(self.actors), 1)

    def _change(
        self, method: str, arguments: Sequence[tuple[Any, ...]], records: int, check: Check | None = None
    ) -> None:
        self.under_way = [self.sequence + records]
        first_error_of(self._asking.each(method, arguments, check or _done))
        self._changed(records)

    def _changed(self, records: int) -> None:
        self.sequence, self.under_way, self._ending = self.sequence + records, (), False

    def summary(self, accepted: Mapping[str, Acceptance]) -> Summary:
        """Summary of the open round over all ranges; ``accepted`` are those who came."""

        def check(_: int, reply: Any) -> Summary:
            return replies.summary(reply, self._like, accepted, self._finite)

        found: list[Summary] = self._asking.all("summary", check, self.sequence)
        first = found[0]
        for number, other in enumerate(found):
            if not first.of_same_nodes(other):
                raise ShardLost(
                    f"shards 0 and {number} answered summary() with those of different nodes; {self._asking.remedy}"
                )
        return reduce(add, found)

    def end(self, kind: Kind, summary: Summary, most_nodes: int) -> None:
        """End the round in all shards."""
        self.under_way, self._ending = [self.sequence + 1], True
        self._end(RoundEnd(self.sequence, kind, summary, most_nodes))
        self._changed(1)
        self._round = None if self._round is None else self._round + 1

    def _end(self, ending: RoundEnd) -> None:
        """End the round in every shard; where some disks are full and others not, retry until all have ended it."""
        latest = time.monotonic() + self._timeout
        while True:
            answers = self._asking.each("end", [(ending,)] * len(self.actors), _done)
            failed = [answer for answer in answers if isinstance(answer, sm.JournalError)]
            if len(failed) in (0, len(answers)) or time.monotonic() > latest:
                first_error_of(answers)
                return
            log.warning("round not ended yet: %s", failed[0])
            time.sleep(RETRY)

    def result(self, round: int, nodes: tuple[str, ...]) -> sm.Estimate:
        """The estimate of the round that ended last, with these nodes."""
        found = self._result(round, nodes, replies.estimate)
        assert found is not None  # or the check has refused it
        return found

    def last_result(self, round: int, nodes: tuple[str, ...]) -> sm.Estimate | None:
        """The same; None where the round was skipped."""
        return self._result(round, nodes, replies.last_estimate)

    def _result(self, round: int, nodes: tuple[str, ...], check: Callable[..., Any]) -> sm.Estimate | None:
        """Ask one shard after the other, so that only one range is in flight."""
        mean, counts = np.empty(self._sharding.run.dim), np.empty(self._sharding.run.dim, np.int32)
        most = len(nodes) * max(map(len, self._sharding.run.layouts))
        whole: sm.Estimate | None = None
        for number in range(len(self.actors)):
            lo, hi = self._sharding.range(number)

            def checked(_: int, reply: Any, size: int = hi - lo) -> Any:
                return check(reply, round, nodes, size, most, self._finite)

            found: sm.Estimate | None = self._asking.one(number, "result", checked)
            if number and (found is None) != (whole is None):
                raise ShardLost(
                    f"shards 0 and {number} answered result() for rounds that differ; {self._asking.remedy}"
                )
            if found is not None:
                mean[lo:hi], counts[lo:hi] = found.mean, found.counts
                whole = found if whole is None else whole
        return None if whole is None else replace(whole, mean=mean, counts=counts)

    def roll(self) -> tuple[Tree, list[Acceptance], Dealt | None]:
        """What the first shard knows but for coordinates, as all of them do."""
        blocks = len(self._sharding.run.blocks)
        found: tuple[Tree, list[Acceptance], Dealt | None] = self._asking.one(
            0, "roll", lambda _, reply: replies.roll(reply, self._round or 0, blocks)
        )
        return found

    def remembered(self, node: str) -> Doubles:
        """What the memory puts in place of this node's vector."""

        def check(number: int, reply: Any) -> Doubles:
            lo, hi = self._sharding.range(number)
            return replies.vector(reply, hi - lo, self._finite)

        return np.concatenate(self._asking.all("remembered", check, node))

    def digests(self) -> list[str]:
        """The digest of each shard."""
        return self._asking.all("digest", lambda _, reply: replies.digest(reply))

    def usage(self) -> list[Usage]:
        """What each shard takes."""
        return self._asking.all("usage", lambda number, reply: replies.usage(reply, *self._sharding.range(number)))

    def agree(self, era: int = 0) -> list[Status]:
        """Bring all shards to one state, whatever failed before: an end is completed, what only some have is undone.

        Shards refuse batches of eras before ``era`` from then on.
        """
        states: list[Status] = self._asking.all("status", self._status, era)
        newest = max(state.round for state in states)
        if any(state.round < newest for state in states):
            ahead = next(number for number, state in enumerate(states) if state.round == newest)
            ending = self._asking.one(ahead, "ending", lambda _, reply: replies.ending(reply, self._like))
            behind = {(state.round, state.sequence) for state in states if state.round < newest}
            if ending is None or behind != {(newest - 1, ending.after)}:
                raise sm.DamagedJournal(
                    f"the shards stand at rounds {sorted({state.round for state in states})}, which one server never "
                    "leaves behind; restore a copy of all their journals"
                )
            self._end(ending)
            states = self._asking.all("status", self._status)
        shortest = min(state.sequence for state in states)
        if any(state.sequence > shortest for state in states):
            if self._sharding.durable_accepts and any(state.before > shortest for state in states):
                raise sm.DamagedJournal(
                    f"of the shards, some have {shortest + 1} records and some more, which all of them had; restore a "
                    "copy of all their journals"
                )
            self._asking.all("rewind", _done, shortest)
            states = self._asking.all("status", self._status)
        if len({(state.round, state.sequence) for state in states}) > 1:
            raise ShardLost(f"the shards do not come to one state, but to {states!r:.300}; {self._asking.remedy}")
        self.sequence, self._round = shortest, newest
        self.under_way, self._ending = (), False
        return states

    def _status(self, _: int, reply: Any) -> Status:
        """Where a shard stands: where this coordinator left it, before or after the change under way."""
        state, last = replies.status(reply), max(self.under_way, default=self.sequence)
        if self._round is None:  # a new one knows nothing but that shards without a journal are new, too
            if self._sharding.journal is None and (state.round, state.sequence) != (self._sharding.round, -1):
                raise ValueError(f"{state}, having only just begun")
            return state
        # With durability "round" a host that lost its power may have lost records that were confirmed.
        kept = self._sharding.durable_accepts or self._sharding.journal is None
        possible = state.sequence in (self.sequence, *self.under_way) if kept else state.sequence <= last
        if not possible or not self._round <= state.round <= self._round + self._ending:
            raise ValueError(f"{state}, after record {self.sequence} of round {self._round}, which it had confirmed")
        return state

    def stop(self) -> None:
        """Close journals and end processes."""
        if ray.is_initialized():
            for actor in self.actors:
                try:
                    ray.get(actor.close.remote(), timeout=min(self._timeout, 60.0))
                except Exception:
                    log.debug("a shard could not be closed in peace", exc_info=True)
                ray.kill(actor)
        self.actors = []


def _done(_: int, reply: Any) -> None:
    """The answer to a change says nothing."""
    replies.nothing(reply)
