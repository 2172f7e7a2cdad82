"""Work for all cores: Python's threads, since numba's own do not survive a fork."""

from __future__ import annotations

import functools
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

Result = TypeVar("Result")


def cores() -> int:
    """How many this machine has."""
    return os.cpu_count() or 1


def parallel_map(work: Callable[[Any], Result], pieces: Sequence[Any], threads: int) -> list[Result]:
    """The results in order, by so many threads. The work must let go of the interpreter's lock.

    The caller is one of the threads, for the others take a while to wake; whoever is free takes the next piece.
    """
    helpers = min(threads, len(pieces)) - 1
    if helpers < 1:
        return [work(piece) for piece in pieces]
    left, results = deque(enumerate(pieces)), dict[int, Result]()

    def take_turns() -> None:
        try:
            while left:
                try:
                    number, piece = left.popleft()
                except IndexError:  # another was quicker
                    return
                results[number] = work(piece)
        except BaseException:
            left.clear()
            raise

    pool = _pool(os.getpid(), threads - 1)
    futures = [pool.submit(take_turns) for _ in range(helpers)]
    try:
        take_turns()
    finally:  # after an interrupt too: what the work writes to may be gone once we return
        started = [future for future in futures if not future.cancel()]
        wait(started)
    for future in started:
        future.result()
    return [results[number] for number in range(len(pieces))]


@functools.cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Kept, since threads take half a millisecond to start; of this process alone, since they do not survive a fork."""
    return ThreadPoolExecutor(threads, "sparsemean")
