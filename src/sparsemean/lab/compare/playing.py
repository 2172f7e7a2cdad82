"""Play schemes on the same vectors through the real bytes: one result each, as soon as its seeds are played."""

from __future__ import annotations

import math
import os
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.errors import DivergenceWarning, InvalidInput
from sparsemean.lab.compare.budget import Budget
from sparsemean.lab.compare.given_vectors import GivenVectors
from sparsemean.lab.tasks import StreamTask
from sparsemean.lab.trace import Trace, play
from sparsemean.run import Run
from sparsemean.schemes import Scheme

ALONE = 2_000_000  # values sent in all below which starting processes takes longer than the work


@dataclass(frozen=True)
class Result:
    """One scheme. Errors are relative, Σ‖estimate − mean‖² / Σ_t mean_i ‖x_i‖², averaged over seeds.

    Parameters
    ----------
    scheme
        Its name, and the kind of its values where that is not float32.
    bytes_per_node
        Bytes per node and round, header included.
    nmse, nmse_se
        The measured error, and its standard error over seeds.
    exact
        The error predicted by the formulas given the server's memory; None where there is no formula.
    server_estimate, server_bound
        The server's own estimate of the error, None where it makes none; and whether it is but an upper bound, since no
        two nodes send the same coordinate.
    unbiased, node_state
        Facts about the scheme.
    diverges
        Whether its memory feeds its own error back by a factor of 1 or more.
    over_budget
        Whether it takes more bytes than were allowed, as whole vectors may.
    nmse_by_round
        Mean over seeds.
    k
        How many coordinates a payload has; d where whole vectors are sent, None where that changes (``auto``).
    """

    scheme: str
    bytes_per_node: float
    nmse: float
    nmse_se: float
    exact: float | None
    server_estimate: float | None
    unbiased: bool
    node_state: bool
    diverges: bool
    over_budget: bool
    nmse_by_round: tuple[float, ...]
    server_bound: bool = False
    k: int | None = None


@dataclass(frozen=True)
class Entry:
    """A scheme to be played, under its name, and the budget that it was made for."""

    name: str
    scheme: Scheme
    budget: Budget


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
    rounds = len(given.rounds)
    work = [(given.task, entry.scheme, rounds, seed) for entry in entries for seed in range(seeds)]
    small = given.rounds.size * len(work) < ALONE
    traces = _traces(work, 1 if small else (jobs or os.cpu_count() or 1))
    done = 0
    for entry in entries:
        own = []
        for _ in range(seeds):
            own.append(next(traces))
            done += 1
            progress(done, len(work))
        yield _result(entry, own, given)


_Work = tuple[StreamTask, Scheme, int, int]


def _play(work: _Work) -> Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # the table shows it
        return play(*work)


def _traces(work: Sequence[_Work], jobs: int) -> Iterator[Trace]:
    """The traces in order, one process per job."""
    if jobs == 1:
        yield from map(_play, work)
        return
    # Ctrl-C reaches all processes of a terminal; this one stops the others.
    ignored = (signal.SIGINT, signal.SIG_IGN)
    with ProcessPoolExecutor(jobs, get_context("spawn"), signal.signal, ignored) as pool:
        yield from pool.map(_play, work)


def _diverges(run: Run, nodes: int) -> bool:
    T, share = run.scheme.decoder.T(Belief(), nodes), run.share
    feedback = run.scheme.memory.facts.feedback
    if not feedback or T is None or share is None:
        return False
    return feedback * theory.feedback_factor(T, nodes, share) >= 1.0


def _result(entry: Entry, traces: Sequence[Trace], given: GivenVectors) -> Result:
    scheme, energy, run = entry.scheme, given.energy, Run(entry.scheme, given.task.dim)
    bytes_per_node = float(np.mean([np.nanmean(trace.bytes_per_node) for trace in traces]))
    errors = np.array([trace.mse.sum() for trace in traces]) / energy if energy else np.zeros(len(traces))
    spread = float(errors.std(ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else math.nan
    return Result(
        scheme=entry.name,
        bytes_per_node=bytes_per_node,
        nmse=float(errors.mean()),
        nmse_se=spread,
        exact=_relative([trace.exact for trace in traces], energy),
        server_estimate=_relative([trace.error for trace in traces], energy),
        unbiased=scheme.unbiased,
        node_state=scheme.node_state,
        diverges=_diverges(run, given.correlation.nodes),
        over_budget=not entry.budget.allows(bytes_per_node),
        nmse_by_round=tuple(np.mean([trace.nmse for trace in traces], axis=0).tolist()),
        server_bound=any(bool(np.any(trace.error_is_bound > 0)) for trace in traces),
        k=None if run.auto else sum(layout.count for layout in run.layout),
    )


def _relative(columns: Sequence[Doubles], energy: float) -> float | None:
    total = float(np.mean([column.sum() for column in columns]))
    return None if math.isnan(total) else total / energy if energy else 0.0
