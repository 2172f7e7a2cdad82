"""Asking all shards at once: every reply is checked, and one that cannot be right is a ``ShardLost``."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

import sparsemean as sm
from sparsemean.integrations.ray.ranges import ShardLost

Check = Callable[[int, Any], Any]  # number of a shard and its reply; returns the reply, or raises what is wrong

log = logging.getLogger("sparsemean.ray")


class Asking:
    """Calls to the actors of a server.

    Parameters
    ----------
    actors : list of handles
        One for each shard, in order.
    timeout : float
        How many seconds an answer may take.
    durable : bool
        Whether shards that die come back; errors say so.
    """

    def __init__(self, actors: Sequence[Any], timeout: float, durable: bool) -> None:
        self.actors, self.timeout, self._durable = list(actors), timeout, durable

    def all(self, method: str, check: Check, *arguments: Any) -> list[Any]:
        """The answer of every shard to the same question; raises the first error."""
        return first_error_of(self.each(method, [arguments] * len(self.actors), check))

    def each(self, method: str, arguments: Sequence[tuple[Any, ...]], check: Check) -> list[Any]:
        """Answers and errors in order; nothing is under way any more when it returns."""
        calls = [getattr(actor, method).remote(*each) for actor, each in zip(self.actors, arguments, strict=True)]
        latest = time.monotonic() + self.timeout
        return [self._answer(number, method, call, latest, check) for number, call in enumerate(calls)]

    def one(self, number: int, method: str, check: Check, *arguments: Any) -> Any:
        """The answer of one shard; raises its error."""
        call = getattr(self.actors[number], method).remote(*arguments)
        return first_error_of([self._answer(number, method, call, time.monotonic() + self.timeout, check)])[0]

    def _answer(self, number: int, method: str, call: Any, latest: float, check: Check) -> Any:
        """The reply, or the error that is to be raised in its place."""
        shard = f"shard {number} of {len(self.actors)}"
        try:
            reply = ray.get(call, timeout=max(0.0, latest - time.monotonic()))
        except RayTaskError as failed:
            if isinstance(failed.cause, sm.SparseMeanError):
                return failed.cause
            log.error("%s failed in %s(): %s", shard, method, failed)
            return ShardLost(f"{shard} failed in {method}() with {failed.cause!r:.200}; {self.remedy}")
        except RayActorError as gone:
            log.error("shard %d is gone: %s", number, gone)
            return ShardLost(f"{shard} died, and its coordinates with it; {self._new_server}")
        except GetTimeoutError:
            return ShardLost(f"{shard} did not answer {method}() for {self.timeout:g} seconds; see timeout=")
        except Exception as failed:  # whatever else Ray, or reading the reply, may raise
            log.exception("the answer of %s to %s() cannot be read", shard, method)
            return ShardLost(f"the answer of {shard} to {method}() cannot be read: {failed!r:.200}; {self.remedy}")
        try:
            return check(number, reply)
        except Exception as wrong:
            log.error("%s answered %s() with %s", shard, method, wrong)
            return ShardLost(f"{shard} answered {method}() with {wrong!s:.300}; {self.remedy}")

    @property
    def _new_server(self) -> str:
        return "make a new RayServer" + ("; with journal= it would go on by itself" if not self._durable else "")

    @property
    def remedy(self) -> str:
        """What to do about an answer that cannot be right."""
        same = "make the call again; if that fails, see that all hosts have the same sparsemean, and "
        return same + self._new_server


def first_error_of(answers: list[Any]) -> list[Any]:
    """The answers; raises the first that is an error."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers
