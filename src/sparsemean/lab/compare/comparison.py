"""Every scheme on the same vectors at the same budget."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
import numpy.typing as npt

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.errors import DivergenceWarning, InvalidInput
from sparsemean.lab.compare.budget import WHOLE_VECTORS, Budget, scheme_within
from sparsemean.lab.compare.likeness import Likeness, likeness
from sparsemean.lab.tasks import Stream
from sparsemean.lab.trace import Trace, play
from sparsemean.memory import Shared
from sparsemean.run import Run
from sparsemean.schemes import Scheme, names
from sparsemean.wire.values import LARGEST

SMALLEST = 1e-100  # squares of what is far smaller vanish
ALONE = 2_000_000  # values sent in all below which starting processes takes longer than the work


@dataclass(frozen=True)
class Result:
    """One scheme. Errors are relative, Σ‖estimate − mean‖² / Σ_t mean_i ‖x_i‖², averaged over seeds.

    ``exact`` is the prediction of the formulas given the server's memory, ``server_estimate`` what the server said of
    itself without knowing the truth; None where no formula holds. ``diverges``: its memory feeds its own error back by
    a factor of 1 or more. ``over_budget``: it takes more bytes than were allowed, as whole vectors may.
    ``nmse_by_round`` is the mean over seeds.
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


@dataclass(frozen=True)
class Comparison:
    """Results sorted by error, what was found about the vectors, and the names that did not fit the budget."""

    results: tuple[Result, ...]
    likeness: Likeness
    rounds: int
    nodes: int
    dim: int
    seeds: int
    budget: Budget
    left_out: tuple[str, ...]


def compare(
    vectors: npt.ArrayLike,
    budget: Budget,
    schemes: Sequence[str] | None = None,
    weights: npt.ArrayLike | None = None,
    seeds: int = 5,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Play each named scheme (all by default) on vectors of shape (n, d) or (rounds, n, d).

    A name may end in the kind of its values: ``"rand-k int8"``.

    >>> rng = np.random.default_rng(0)
    >>> alike = rng.normal(size=50) + 0.1 * rng.normal(size=(12, 50))
    >>> found = compare(alike, Budget(share=0.2), ["rand-k", "rand-k-spatial-max"], seeds=20)
    >>> [result.scheme for result in found.results]
    ['rand-k-spatial-max', 'rand-k']
    """
    rounds = np.asarray(vectors, np.float64)
    rounds = rounds[None] if rounds.ndim == 2 else rounds
    task = Stream(rounds, weights)
    if not np.isfinite(rounds).all():
        raise InvalidInput("the vectors hold NaN or infinity; remove or replace these values")
    size = float(np.abs(rounds).max())
    if size and not SMALLEST <= size <= LARGEST:
        raise InvalidInput(
            f"the largest value of the vectors is {size:.3g}, and squared errors need one from {SMALLEST:g} to "
            f"{LARGEST:g}; rescale them"
        )
    if seeds < 1:
        raise InvalidInput(f"seeds is a number from 1 on, got {seeds}")
    given = None if weights is None else np.asarray(weights, np.float64)
    alike = likeness(rounds, given)
    wanted = {name: scheme_within(name, budget, rounds[0], alike.ratio) for name in schemes or names()}
    fitting = {name: scheme for name, scheme in wanted.items() if scheme is not None}
    if len(fitting) < len(wanted) and {name.partition(" ")[0] for name in fitting} <= set(WHOLE_VECTORS):
        raise InvalidInput("the budget is too small for every scheme: a payload has a header of 64 bytes and one value")
    energy = float(np.sum(np.average(np.sum(rounds**2, axis=2), axis=1, weights=given)))
    work = [(task, scheme, len(rounds), seed) for scheme in fitting.values() for seed in range(seeds)]
    small = rounds.size * len(work) < ALONE
    traces: list[Trace] = []
    for trace in _played(work, 1 if small else (jobs or os.cpu_count() or 1)):
        traces.append(trace)
        progress(len(traces), len(work))
    results = [
        _result(
            name,
            scheme,
            traces[i * seeds : (i + 1) * seeds],
            energy,
            budget,
            _diverges(Run(scheme, task.dim), alike.nodes),
        )
        for i, (name, scheme) in enumerate(fitting.items())
    ]
    return Comparison(
        results=tuple(sorted(results, key=lambda result: result.nmse)),
        likeness=alike,
        rounds=len(rounds),
        nodes=task.nodes,
        dim=task.dim,
        seeds=seeds,
        budget=budget,
        left_out=tuple(name for name, scheme in wanted.items() if scheme is None),
    )


_Work = tuple[Stream, Scheme, int, int]


def _play(work: _Work) -> Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # the table shows it
        return play(*work)


def _played(work: Sequence[_Work], jobs: int) -> Iterator[Trace]:
    """The traces in order, one process per job."""
    if jobs == 1:
        yield from map(_play, work)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_play, work)


def _diverges(run: Run, nodes: int) -> bool:
    T, share = run.scheme.decoder.T(Belief(), nodes), run.share
    if not isinstance(run.scheme.memory, Shared) or T is None or share is None:
        return False
    return theory.feedback_factor(T, nodes, share) >= 1.0


def _result(
    name: str, scheme: Scheme, traces: Sequence[Trace], energy: float, budget: Budget, diverges: bool
) -> Result:
    bytes_per_node = float(np.mean([np.nanmean(trace.bytes_per_node) for trace in traces]))
    errors = np.array([trace.mse.sum() for trace in traces]) / energy if energy else np.zeros(len(traces))
    spread = float(errors.std(ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else math.nan
    return Result(
        scheme=name,
        bytes_per_node=bytes_per_node,
        nmse=float(errors.mean()),
        nmse_se=spread,
        exact=_relative([trace.exact for trace in traces], energy),
        server_estimate=_relative([trace.error for trace in traces], energy),
        unbiased=scheme.unbiased,
        node_state=scheme.node_state,
        diverges=diverges,
        over_budget=not budget.allows(bytes_per_node),
        nmse_by_round=tuple(np.mean([trace.nmse for trace in traces], axis=0).tolist()),
    )


def _relative(columns: Sequence[Doubles], energy: float) -> float | None:
    total = float(np.mean([column.sum() for column in columns]))
    return None if math.isnan(total) else total / energy if energy else 0.0
