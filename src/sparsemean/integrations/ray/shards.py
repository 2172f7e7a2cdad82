"""All shards, as seen by the front: asked at once, brought to one state again where they differ."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

import sparsemean as sm
from sparsemean.core import Summary
from sparsemean.integrations.ray.ending import Ending, Kind, Status
from sparsemean.integrations.ray.pieces import Piece
from sparsemean.integrations.ray.ranges import Plan, ShardLost
from sparsemean.integrations.ray.shard import Shard

RETRY = 1.0  # seconds until a disk that was full is tried again

log = logging.getLogger("sparsemean.ray")


class Shards:
    """The actors of a server. ``sound`` is False while a change is under way, and after one that failed."""

    def __init__(self, plan: Plan, options: Mapping[str, Any], timeout: float) -> None:
        # A call does no harm twice, so Ray may repeat it when an actor is back; without a journal it would be empty.
        again = -1 if plan.journal is not None else 0
        chosen = {"scheduling_strategy": "SPREAD", **options, "max_restarts": again, "max_task_retries": again}
        self._plan, self._timeout = plan, timeout
        made: Any = ray.remote(Shard).options(**chosen)
        self.actors: list[Any] = [made.remote(plan, number) for number in range(plan.shards)]
        self.sequence, self.sound = -1, False

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """The answer of every shard."""
        return _all_of(self._asked(method, [arguments] * len(self.actors)))

    def _asked(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Answers and errors in order; nothing is under way any more when it returns."""
        calls = [getattr(actor, method).remote(*each) for actor, each in zip(self.actors, arguments, strict=True)]
        latest = time.monotonic() + self._timeout
        return [self._answer(number, call, latest) for number, call in enumerate(calls)]

    def _answer(self, number: int, call: Any, latest: float) -> Any:
        try:
            return ray.get(call, timeout=max(0.0, latest - time.monotonic()))
        except RayTaskError as failed:
            if isinstance(failed.cause, sm.SparseMeanError):
                return failed.cause
            raise
        except RayActorError as gone:
            log.error("shard %d is gone: %s", number, gone)
            return ShardLost(f"shard {number} of {len(self.actors)} died, and its coordinates with it; {self._remedy}")
        except GetTimeoutError:
            return ShardLost(f"shard {number} did not answer for {self._timeout:g} seconds; see timeout=")

    @property
    def _remedy(self) -> str:
        return "make a new RayServer" + ("; with journal= it would go on by itself" if not self._plan.journal else "")

    def accept(self, round: int, offers: Sequence[Sequence[Piece]]) -> None:
        """Hand each shard its pieces: one row of ``offers`` for each payload, one column for each shard."""
        self._change(
            "accept", [(self.sequence, round, list(column)) for column in zip(*offers, strict=True)], len(offers)
        )

    def forget(self, round: int, node: str) -> None:
        """Drop all that is remembered of a node."""
        self._change("forget", [(self.sequence, round, node)] * len(self.actors), 1)

    def _change(self, method: str, arguments: Sequence[tuple[Any, ...]], records: int) -> None:
        self.sound = False
        _all_of(self._asked(method, arguments))
        self.sequence, self.sound = self.sequence + records, True

    def summary(self) -> Summary:
        """What all ranges together know of the open round."""
        found: list[Summary] = self.ask("summary", self.sequence)
        return reduce(add, found)

    def end(self, kind: Kind, summary: Summary, most_nodes: int) -> None:
        """End the round in all shards."""
        self.sound = False
        self._end(Ending(self.sequence, kind, summary, most_nodes))
        self.sequence, self.sound = self.sequence + 1, True

    def _end(self, ending: Ending) -> None:
        """Where a disk is full, nothing has happened if it is so for all; else those that could wait for the others."""
        latest = time.monotonic() + self._timeout
        while True:
            answers = self._asked("end", [(ending,)] * len(self.actors))
            failed = [answer for answer in answers if isinstance(answer, sm.JournalError)]
            if len(failed) in (0, len(answers)) or time.monotonic() > latest:
                _all_of(answers)
                return
            log.warning("round not ended yet: %s", failed[0])
            time.sleep(RETRY)

    def result(self) -> sm.Estimate | None:
        """The estimate of the round that ended last, one range after the other: only one of them is under way."""
        mean, counts = np.empty(self._plan.run.dim), np.empty(self._plan.run.dim, np.int32)
        for number, actor in enumerate(self.actors):
            answer = self._answer(number, actor.result.remote(), time.monotonic() + self._timeout)
            found: sm.Estimate | None = _all_of([answer])[0]
            if found is None:
                return None
            here = slice(*self._plan.range(number))
            mean[here], counts[here] = found.mean, found.counts
        return None if found is None else replace(found, mean=mean, counts=counts)

    def agree(self) -> list[Status]:
        """Bring all shards to one state, whenever the last front died: an end is completed, all else is undone."""
        states: list[Status] = self.ask("status")
        newest = max(state.round for state in states)
        if any(state.round < newest for state in states):
            ahead = next(actor for actor, state in zip(self.actors, states, strict=True) if state.round == newest)
            ending = ray.get(ahead.ending.remote(), timeout=self._timeout)
            behind = {(state.round, state.sequence) for state in states if state.round < newest}
            if ending is None or behind != {(newest - 1, ending.after)}:
                raise sm.DamagedJournal(
                    f"the shards stand at rounds {sorted({state.round for state in states})}, which one server never "
                    "leaves behind; restore a copy of all their journals"
                )
            self._end(ending)
            states = self.ask("status")
        shortest = min(state.sequence for state in states)
        if any(state.sequence > shortest for state in states):
            if self._plan.durable_accepts and any(state.before > shortest for state in states):
                raise sm.DamagedJournal(
                    f"of the shards, some have {shortest + 1} records and some more, which all of them had; restore a "
                    "copy of all their journals"
                )
            self.ask("rewind", shortest)
            states = self.ask("status")
        self.sequence, self.sound = shortest, True
        return states

    def stop(self) -> None:
        """Let go of journals and processes."""
        if ray.is_initialized():
            for actor in self.actors:
                try:
                    ray.get(actor.close.remote(), timeout=min(self._timeout, 60.0))
                except Exception:
                    log.debug("a shard could not be closed in peace", exc_info=True)
                ray.kill(actor)
        self.actors = []


def _all_of(answers: list[Any]) -> list[Any]:
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
