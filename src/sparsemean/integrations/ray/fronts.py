"""All fronts, as seen by the process that has the server: actors, each asked by a thread what it waits for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ray
from ray.exceptions import RayError

import sparsemean as sm
from sparsemean.integrations.ray import replies
from sparsemean.integrations.ray.asking import Asking
from sparsemean.integrations.ray.front import Front
from sparsemean.integrations.ray.offers import Answered, Asks, Ticket
from sparsemean.integrations.ray.pieces import Piece
from sparsemean.integrations.ray.ranges import Sharding

CALLS = 8  # of nodes at a time in one front
RETRY = 0.1  # seconds until a front that did not answer is asked again

Answers = Callable[[int, Asks], Mapping[str, Answered]]

log = logging.getLogger("sparsemean.ray")


class Fronts:
    """The actors, and a thread for each that carries what it asks to the sequencer, and the answers back.

    A front that dies begins anew, and Ray makes the calls of its callers again: payloads that were accepted are
    duplicates then.

    Parameters
    ----------
    number : int
        How many there are.
    sharding, clip, timeout
        As for ``Front``.
    answers : callable
        Answers what a front asks, or some of it; called in several threads.
    lost : callable
        Told the number of a front whose process is gone.
    """

    def __init__(
        self,
        number: int,
        sharding: Sharding,
        clip: sm.Clip | None,
        timeout: float,
        answers: Answers,
        lost: Callable[[int], object],
    ) -> None:
        self._answers, self._lost, self._over = answers, lost, threading.Event()
        delivery = Delivery(timeout, sharding.journal is not None)
        remote: Any = ray.remote
        made = remote(
            max_restarts=-1,
            max_task_retries=-1,
            max_concurrency=CALLS,
            concurrency_groups={"sequencer": 1},
            scheduling_strategy="SPREAD",
        )(Front)
        self.actors = tuple(made.remote(sharding, clip, delivery, timeout) for _ in range(number))
        self._threads = [threading.Thread(target=self._carry, args=(i,), daemon=True) for i in range(number)]
        for thread in self._threads:
            thread.start()

    def _carry(self, number: int) -> None:
        exchange = self.actors[number].exchange.options(concurrency_group="sequencer", max_task_retries=0)
        answers: Mapping[str, Answered] = {}
        life = None
        while not self._over.is_set():
            try:
                asks: Asks = ray.get(exchange.remote(answers))
                if life not in (None, asks.life):
                    self._lost(number)
                life = asks.life
                answers = self._answers(number, asks) if asks.open else {}
            except RayError as gone:
                if not self._over.is_set():
                    if life is not None:
                        log.warning("front %d does not answer: %s", number, str(gone).partition("\n")[0])
                    self._lost(number)
                    answers, life = {}, None
                    time.sleep(RETRY)
            except Exception:
                log.exception("what front %d asked cannot be answered", number)
                answers = {}
                time.sleep(RETRY)

    def stop(self) -> None:
        """End processes and threads."""
        self._over.set()
        if ray.is_initialized():
            for actor in self.actors:
                ray.kill(actor)
        for thread in self._threads:
            thread.join(10.0)


class Delivery:
    """Hands the batches of a front to the shards, all at once."""

    def __init__(self, timeout: float, durable: bool) -> None:
        self._timeout, self._durable = timeout, durable

    def __call__(self, shards: Sequence[Any], ticket: Ticket, columns: list[list[Piece]]) -> list[Any]:
        """The last record of each shard then, or its error; a batch may wait in a shard for those before it."""
        arguments = [(ticket.after, ticket.round, column, ticket.turn) for column in columns]
        asking = Asking(shards, self._timeout, self._durable)
        return asking.each("accept", arguments, replies.sequence_from(ticket.turn.safe))
