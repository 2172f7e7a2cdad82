"""Play schemes on the same vectors through the real bytes, in this process or in several."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import count, islice
from multiprocessing import get_context
from types import TracebackType

from sparsemean.errors import DivergenceWarning, InvalidInput
from sparsemean.lab.compare.given_vectors import GivenVectors
from sparsemean.lab.compare.result import Entry, Result, result_of
from sparsemean.lab.tasks import StreamTask
from sparsemean.lab.trace import Trace, play
from sparsemean.schemes import Scheme

ALONE = 2_000_000  # values sent in all below which starting processes takes longer than the work

Game = tuple[StreamTask, Scheme, int, int]
"""Arguments of ``play``: what, by which scheme, how many rounds, which seed."""


class Players:
    """Plays games, by processes once there is enough to play; a context that ends them.

    Parameters
    ----------
    jobs
        Number of processes; all cores by default.

    Examples
    --------
    >>> from sparsemean import named
    >>> with Players() as players:
    ...     (trace,) = players.traces([(StreamTask([[[1.0], [3.0]]]), named("identity"), 1, 0)])
    >>> trace.mse.tolist()
    [0.0]
    """

    def __init__(self, jobs: int | None = None) -> None:
        self._jobs = jobs or os.cpu_count() or 1
        self._pool: ProcessPoolExecutor | None = None

    def traces(self, games: Sequence[Game]) -> Iterator[Trace]:
        """The trace of each game, in order."""
        size = sum(task.nodes * task.dim * rounds for task, _, rounds, _ in games)
        if self._jobs == 1 or (self._pool is None and size < ALONE):
            return iter(map(_play, games))
        if self._pool is None:
            ignored = (signal.SIGINT, signal.SIG_IGN)
            self._pool = ProcessPoolExecutor(self._jobs, get_context("spawn"), signal.signal, ignored)
        with _interrupts_held():
            return iter(self._pool.map(_play, games))

    def play(
        self,
        given: GivenVectors,
        wanted: Sequence[tuple[Entry, range]],
        after: Callable[[], None] = lambda: None,
    ) -> Iterator[tuple[Entry, list[Trace]]]:
        """Each entry with its traces, one for each of its seeds; ``after`` is called after every game."""
        games = [(given.task, entry.scheme, len(given.rounds), seed) for entry, seeds in wanted for seed in seeds]
        traces = self.traces(games)
        for entry, seeds in wanted:
            own = []
            for trace in islice(traces, len(seeds)):
                own.append(trace)
                after()
            yield entry, own

    def __enter__(self) -> Players:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Ctrl-C reaches all processes of a terminal; those that are started here never hear it: this one stops them."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _play(game: Game) -> Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # the table shows it
        return play(*game)


def played(
    given: GivenVectors,
    entries: Sequence[Entry],
    seeds: int,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Iterator[Result]:
    """The result of each entry, in order; closing the iterator, or Ctrl-C, stops all processes.

    Parameters
    ----------
    given
        What is played.
    entries
        The schemes.
    seeds
        How often each is played.
    jobs
        Number of processes; all cores by default. Little work is done in this one.
    progress
        Called with (done, total) after every run.
    """
    if seeds < 1:
        raise InvalidInput(f"seeds is a number from 1 on, got {seeds}")
    done, wanted = count(1), [(entry, range(seeds)) for entry in entries]
    with Players(jobs) as players:
        for entry, traces in players.play(given, wanted, lambda: progress(next(done), seeds * len(entries))):
            yield result_of(entry, traces, given)
