"""Payloads that arrive together are accepted together: one write to the journal, one pass over the totals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from sparsemean.results import Receipt
from sparsemean.server.server import BATCH, Answer


class Waiting(NamedTuple):
    """A payload whose sender waits for an answer."""

    node: str
    blob: bytes
    weight: float
    answer: asyncio.Future[Receipt]


class Batches:
    """Collects what arrives while the batch before is being accepted.

    Parameters
    ----------
    accept : callable
        Takes a batch in which each node occurs once, and returns an answer to each.
    """

    def __init__(self, accept: Callable[[list[Waiting]], Awaitable[list[Answer]]]) -> None:
        self._accept = accept
        self._waiting: list[Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def add(self, node: str, blob: bytes, weight: float) -> Receipt:
        """The receipt; raises what the server refuses the payload with."""
        loop = asyncio.get_running_loop()
        waiting = Waiting(node, blob, weight, loop.create_future())
        self._waiting.append(waiting)
        if self._task is None:
            self._task = loop.create_task(self._drain())
        return await asyncio.shield(waiting.answer)  # one who leaves does not take the others' answers along

    async def _drain(self) -> None:
        while self._waiting:
            batch = self._next()
            try:
                answers: list[Answer | Exception] = [*await self._accept(batch)]
            except Exception as failure:
                answers = [failure] * len(batch)
            for waiting, answer in zip(batch, answers, strict=True):
                if isinstance(answer, Exception):
                    waiting.answer.set_exception(answer)
                    waiting.answer.exception()  # seen, also where its sender has left
                else:
                    waiting.answer.set_result(answer)
        self._task = None

    def _next(self) -> list[Waiting]:
        """Those that wait longest; of a node one, since a batch has one weight for each."""
        batch: dict[str, Waiting] = {}
        left: list[Waiting] = []
        for waiting in self._waiting:
            if len(batch) < BATCH and waiting.node not in batch:
                batch[waiting.node] = waiting
            else:
                left.append(waiting)
        self._waiting = left
        return list(batch.values())
