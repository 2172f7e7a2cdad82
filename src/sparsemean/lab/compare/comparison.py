"""Compare schemes on the same vectors at the same budget: errors, bytes and what the server said of itself."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief
from sparsemean.errors import DivergenceWarning, InvalidInput
from sparsemean.lab.compare.budget import Budget, scheme_within
from sparsemean.lab.compare.correlation import VectorCorrelation, vector_correlation
from sparsemean.lab.tasks import StreamTask
from sparsemean.lab.trace import Trace, play
from sparsemean.run import Run
from sparsemean.schemes import SIZELESS, Scheme, names
from sparsemean.wire.values import LARGEST

SMALLEST = 1e-100  # squares of what is far smaller vanish
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


@dataclass(frozen=True)
class Comparison:
    """All results, sorted by error.

    Parameters
    ----------
    results
        One per scheme.
    correlation
        Of the vectors, between nodes and between rounds.
    rounds, nodes, dim, seeds, budget
        What was compared.
    left_out
        Names of the schemes too large for the budget.
    """

    results: tuple[Result, ...]
    correlation: VectorCorrelation
    rounds: int
    nodes: int
    dim: int
    seeds: int
    budget: Budget
    left_out: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As plain data. The correlation is called "likeness" there, as in files written by earlier versions."""
        return {"likeness" if name == "correlation" else name: value for name, value in asdict(self).items()}


def compare(
    vectors: npt.ArrayLike,
    budget: Budget,
    schemes: Sequence[str] | None = None,
    weights: npt.ArrayLike | None = None,
    seeds: int = 5,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Comparison:
    """Play each scheme on the vectors.

    Parameters
    ----------
    vectors
        Shape (n, d) or (rounds, n, d).
    budget
        What a node may send in a round.
    schemes
        Names, which may end in the kind of the values: ``"rand-k int8"``; all schemes by default.
    weights
        One number per node.
    seeds
        How often each scheme is played.
    jobs
        Number of processes; all cores by default.
    progress
        Called with (done, total) after every run.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> vectors = rng.normal(size=50) + 0.1 * rng.normal(size=(12, 50))
    >>> found = compare(vectors, Budget(share=0.2), ["rand-k", "rand-k-spatial-max"], seeds=20)
    >>> [result.scheme for result in found.results]
    ['rand-k-spatial-max', 'rand-k']
    """
    rounds = np.asarray(vectors, np.float64)
    rounds = rounds[None] if rounds.ndim == 2 else rounds
    task = StreamTask(rounds, weights)
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
    correlation = vector_correlation(rounds, given)
    wanted = {name: scheme_within(name, budget, rounds[0], correlation.ratio) for name in schemes or names()}
    fitting = {name: scheme for name, scheme in wanted.items() if scheme is not None}
    if len(fitting) < len(wanted) and {name.partition(" ")[0] for name in fitting} <= set(SIZELESS):
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
            _diverges(Run(scheme, task.dim), correlation.nodes),
        )
        for i, (name, scheme) in enumerate(fitting.items())
    ]
    return Comparison(
        results=tuple(sorted(results, key=lambda result: result.nmse)),
        correlation=correlation,
        rounds=len(rounds),
        nodes=task.nodes,
        dim=task.dim,
        seeds=seeds,
        budget=budget,
        left_out=tuple(name for name, scheme in wanted.items() if scheme is None),
    )


_Work = tuple[StreamTask, Scheme, int, int]


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
    feedback = run.scheme.memory.facts.feedback
    if not feedback or T is None or share is None:
        return False
    return feedback * theory.feedback_factor(T, nodes, share) >= 1.0


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
        server_bound=any(bool(np.any(trace.error_is_bound > 0)) for trace in traces),
    )


def _relative(columns: Sequence[Doubles], energy: float) -> float | None:
    total = float(np.mean([column.sum() for column in columns]))
    return None if math.isnan(total) else total / energy if energy else 0.0
