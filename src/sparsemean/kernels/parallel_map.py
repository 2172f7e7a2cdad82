"""A map over several cores, on Python's threads, since numba's own do not survive a fork."""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

Result = TypeVar("Result")
_limit = threading.local()


def cores() -> int:
    """How many cores this machine has."""
    return os.cpu_count() or 1


@contextmanager
def at_most(threads: int) -> Iterator[None]:
    """Let the maps that this thread calls use no more threads than that, whatever they are told.

    >>> with at_most(1):
    ...     set(parallel_map(lambda piece: threading.get_ident(), [1, 2, 3], 4)) == {threading.get_ident()}
    True
    """
    before = getattr(_limit, "threads", None)
    _limit.threads = threads if before is None else min(before, threads)
    try:
        yield
    finally:
        if before is None:
            del _limit.threads
        else:
            _limit.threads = before


def parallel_map(work: Callable[[Any], Result], pieces: Sequence[Any], threads: int) -> list[Result]:
    """[work(piece) for piece in pieces] on several threads; ``work`` should release the interpreter's lock.

    The caller is one of the threads, since the others take a while to wake; whichever is free takes the next piece. An
    exception of ``work`` ends the map and is raised here, once no thread is working any more.
    """
    helpers = min(threads, len(pieces), getattr(_limit, "threads", threads)) - 1
    if helpers < 1:
        return [work(piece) for piece in pieces]
    left, results = deque(enumerate(pieces)), dict[int, Result]()

    def take_turns() -> None:
        try:
            while left:
                try:
                    number, piece = left.popleft()
                except IndexError:  # another thread took the last piece
                    return
                results[number] = work(piece)
        except BaseException:
            left.clear()
            raise

    pool = _pool(os.getpid(), threads - 1)
    futures = [pool.submit(take_turns) for _ in range(helpers)]
    try:
        take_turns()
    finally:  # after KeyboardInterrupt too: the arrays that threads write to may be freed once we return
        started = [future for future in futures if not future.cancel()]
        wait(started)
    for future in started:
        future.result()
    return [results[number] for number in range(len(pieces))]


@functools.cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """One pool per process, since threads do not survive a fork; kept, since they take half a millisecond to start."""
    return ThreadPoolExecutor(threads, "sparsemean")
