"""Group commit: one thread handles everything that concurrent callers have queued."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class _Ticket(Generic[Item, Answer]):
    def __init__(self, item: Item) -> None:
        self.item = item
        self.answer: Answer | None = None
        self.failure: BaseException | None = None
        self.done = False


class GroupCommit(Generic[Item, Answer]):
    """Batch calls from many threads into one call of ``work``, so that they share one fsync.

    The first thread to arrive leads: it takes all queued items, calls ``work`` once and hands out the answers. Threads
    that arrive meanwhile queue up for the next leader. An exception of ``work`` is raised in every thread of its batch.

    Parameters
    ----------
    work : callable
        Called with the queued items, in order of arrival; returns one answer per item.

    >>> GroupCommit(lambda items: [2 * item for item in items])(21)
    42
    """

    def __init__(self, work: Callable[[Sequence[Item]], Sequence[Answer]]) -> None:
        self._work = work
        self._waiting: list[_Ticket[Item, Answer]] = []
        self._enter, self._turn = threading.Lock(), threading.Lock()

    def __call__(self, item: Item) -> Answer:
        ticket: _Ticket[Item, Answer] = _Ticket(item)
        with self._enter:
            self._waiting.append(ticket)
        with self._turn:
            if not ticket.done:
                with self._enter:
                    batch, self._waiting = self._waiting, []
                self._answer(batch)
        if ticket.failure is not None:
            raise ticket.failure
        return ticket.answer  # type: ignore[return-value]  # set where there is no failure

    def _answer(self, batch: list[_Ticket[Item, Answer]]) -> None:
        try:
            for ticket, answer in zip(batch, self._work([ticket.item for ticket in batch]), strict=True):
                ticket.answer = answer
        except BaseException as failure:
            for ticket in batch:
                ticket.failure = failure
        for ticket in batch:
            ticket.done = True
