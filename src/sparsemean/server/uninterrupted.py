"""Changes that no signal can cut in half.

Python raises KeyboardInterrupt, and runs every other signal handler, in the main thread: between two instructions,
wherever it happens to be. So a change of state that the main thread asks for is made by another thread, and only waited
for here: an interrupt ends the waiting, never the change.
"""

from __future__ import annotations

import contextvars
import functools
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")


def uninterrupted(work: Callable[[], Result], interrupted: threading.Event | None = None) -> Result:
    """Call ``work`` where no signal handler runs, and return what it returns or raise what it raises.

    An interrupt while it waits is raised once the work has ended, so that nothing goes on behind the caller's back; a
    second one is raised at once, and the work goes on. Whatever lock the work needs it must take itself.

    Parameters
    ----------
    work
        Called once, or not at all if the interrupt came before it began. It sees the caller's context variables.
    interrupted : threading.Event, optional
        Set when an interrupt came while the work was under way: the work may look, and stop where nothing has changed.

    >>> uninterrupted(lambda: 6 * 7)
    42
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    try:
        jobs = _jobs(os.getpid())
    except RuntimeError:  # the interpreter is shutting down and starts no more threads
        return work()
    job: _Job[Result] = _Job(work)
    try:
        jobs.put(job)
        job.ended.acquire()
    except BaseException:
        if not job.claimed.acquire(blocking=False):  # it has begun, or else it never will
            if interrupted is not None:
                interrupted.set()
            try:
                if not job.done:  # else the lock may be ours already
                    job.ended.acquire()
            except BaseException:
                _jobs.cache_clear()  # whatever comes next need not wait for this
                raise
        raise
    return job.result()


class _Job(Generic[Result]):
    """Work for the other thread; who gets the lock ``claimed`` decides whether it is done or dropped."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._work, self._context = work, contextvars.copy_context()
        self._results: list[Result] = []
        self._failure: BaseException | None = None
        self.done = False
        self.claimed, self.ended = threading.Lock(), threading.Lock()
        self.ended.acquire()

    def run(self) -> None:
        """Do it, unless its caller has given it up."""
        if self.claimed.acquire(blocking=False):
            try:
                self._results.append(self._context.run(self._work))
            except BaseException as failure:
                self._failure = failure
            del self._work
            self.done = True
            self.ended.release()

    def result(self) -> Result:
        """What came of it."""
        failure, self._failure = self._failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # whose traceback holds this very frame
        return self._results.pop()


@functools.cache
def _jobs(process: int) -> SimpleQueue[_Job[Any]]:
    """The queue of a thread of this process, which does not survive a fork."""
    jobs: SimpleQueue[_Job[Any]] = SimpleQueue()

    def work() -> None:
        while True:
            jobs.get().run()

    threading.Thread(target=work, name="sparsemean-changes", daemon=True).start()
    return jobs
