"""Work for all cores: Python's threads, since numba's own do not survive a fork."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar

Result = TypeVar("Result")


def cores() -> int:
    """How many this machine has."""
    return os.cpu_count() or 1


def spread(work: Callable[[Any], Result], pieces: Sequence[Any], threads: int) -> list[Result]:
    """The results in order, by so many threads. The work must let go of the interpreter's lock, and not call this."""
    if threads == 1 or len(pieces) == 1:
        return [work(piece) for piece in pieces]
    pool = _pool(os.getpid(), threads)
    futures = [pool.submit(work, piece) for piece in pieces]
    try:
        return [future.result() for future in futures]
    except BaseException:  # an interrupt too: what the work writes to may be gone once we return
        wait([future for future in futures if not future.cancel()])
        raise


@functools.cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Kept, since threads take half a millisecond to start; of this process alone, since they do not survive a fork."""
    return ThreadPoolExecutor(threads, "sparsemean")
