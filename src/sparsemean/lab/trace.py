"""Play a task with a scheme through the real bytes, and record errors and objective of every round."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np

from sparsemean._names import Missing
from sparsemean._types import Doubles, Floats, Ints
from sparsemean.client import Client
from sparsemean.errors import InvalidInput
from sparsemean.evaluation import Truth, exact_error, truth
from sparsemean.lab.tasks.base import Task
from sparsemean.payload.blocks import Blocks
from sparsemean.run import Run
from sparsemean.schemes import Scheme
from sparsemean.server import Server
from sparsemean.simulation import play_round

State = TypeVar("State")


@dataclass(frozen=True, eq=False)
class Trace:
    """One entry per round in every array; NaN where a number is not known.

    - ``objective``: of the task, after the round's step; ``start`` is the one before the first round
    - ``mse``: ‖estimate − mean‖², the mean being the true weighted one of each block; ``nmse``: relative to the
      weighted mean of ‖x_i‖²
    - ``exact``: the expectation of ``mse``, given what the server remembers and the scales of few-bit values;
      ``error`` and ``error_se``: the server's own estimate of it; ``error_is_bound``: 1 where it is but an upper bound
    - ``ratio``: the true R2/R1 of the nodes' vectors
    - ``bytes_per_node``: NaN for the exact mean, which no bytes carry
    - ``metrics``: those of the task, after the round's step

    A run whose numbers grow beyond ``task.largest`` ends there; its remaining rounds have infinite objective and mse.
    """

    start: float
    round: Ints
    objective: Doubles
    mse: Doubles
    nmse: Doubles
    exact: Doubles
    error: Doubles
    error_se: Doubles
    error_is_bound: Doubles
    ratio: Doubles
    bytes_per_node: Doubles
    metrics: Mapping[str, Doubles]

    def rows(self) -> list[dict[str, float | int | None]]:
        """One plain dict per round, metrics among the columns, None for what is not known.

        ``error_is_bound`` is left out where the server never states a bound.
        """
        left_out = ("start", "metrics", *(() if np.any(self.error_is_bound > 0) else ("error_is_bound",)))
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in left_out}
        columns = {name: column.tolist() for name, column in {**own, **self.metrics}.items()}
        lines = (dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True))
        return [{name: None if math.isnan(value) else value for name, value in line.items()} for line in lines]


@dataclass(frozen=True, eq=False)
class _Answer:
    """What the server gave for a round, and what is known of its error."""

    mean: Doubles
    exact: float | None = 0.0
    error: float | None = None
    error_se: float | None = None
    error_is_bound: bool = False
    bytes: float = math.nan


class _Session:
    """A server and its clients."""

    def __init__(self, run: Run, nodes: int, missing: Missing) -> None:
        self._server = Server(run, missing)
        choices = len(run.encoders)
        self._clients = [Client(run, str(node), run.encoders[node % choices]) for node in range(nodes)]

    def answer(self, vectors: Floats, weights: Doubles | None) -> _Answer:
        nodes = [client.node for client in self._clients]
        classes = np.array([client.choice for client in self._clients])
        exact = exact_error(self._server, nodes, vectors, weights, classes)
        given = np.ones(len(nodes)) if weights is None else weights
        estimate = play_round(self._server, self._clients, vectors, given)
        if exact is not None:
            exact += estimate.rounding or 0.0
        said = (estimate.error, estimate.error_se, estimate.error_is_bound)
        return _Answer(estimate.mean, exact, *said, estimate.bytes / len(nodes))


def play(task: Task[State], scheme: Scheme | None, rounds: int, seed: int = 0, missing: Missing = "drop") -> Trace:
    """Play the task from its start. The same arguments give the same trace, to the bit on one machine and thread count.

    Parameters
    ----------
    task
        What is played.
    scheme
        None gives the task the exact mean, the reference for all schemes. Where a scheme lets nodes choose their
        encoder, they take turns.
    rounds
        How many.
    seed
        Of the task's start and of the run.
    missing
        As ``Server`` takes it.

    Examples
    --------
    >>> from sparsemean import named
    >>> from sparsemean.lab.tasks import Quadratic
    >>> trace = play(Quadratic([[1.0], [3.0]], rate=0.5), named("identity"), rounds=3)
    >>> trace.start, trace.objective.tolist(), trace.bytes_per_node.tolist()
    (4.0, [1.0, 0.25, 0.0625], [68.0, 68.0, 68.0])
    """
    if rounds < 0:
        raise InvalidInput(f"rounds is a number from 0 on, got {rounds!r}")
    blocks = Blocks(task.blocks or (task.dim,))
    session = None if scheme is None else _Session(Run(scheme, task.dim, seed, blocks.sizes), task.nodes, missing)
    state = task.start(seed)
    start, names = task.objective(state), list(task.metrics(state))
    lines: list[dict[str, float | None]] = []
    with np.errstate(over="ignore", invalid="ignore"):
        while len(lines) < rounds:
            vectors, weights = task.vectors(state, len(lines)), task.weights(state)
            if not _bounded(vectors, task.largest):
                break
            true = truth(vectors, weights, blocks)
            answer = _Answer(true.mean) if session is None else session.answer(vectors, weights)
            if not _bounded(answer.mean, task.largest):
                break
            state = task.step(state, answer.mean)
            objective = task.objective(state)
            if not math.isfinite(objective):
                break
            lines.append({"objective": objective, **_judged(answer, true, blocks), **task.metrics(state)})
    return _trace(start, lines, rounds, names)


def _bounded(values: Floats, largest: float) -> bool:
    return bool(np.abs(values).max() <= largest)  # NaN compares as false


def _judged(answer: _Answer, true: Truth, blocks: Blocks) -> dict[str, float | None]:
    """The columns that compare the answer with the truth."""
    off = (answer.mean - true.mean) * blocks.expand((true.nodes > 0).astype(np.float64))
    mse = float(off @ off)
    return {
        "mse": mse,
        "nmse": mse / true.energy if true.energy > 0 else math.inf if mse > 0 else 0.0,
        "exact": answer.exact,
        "error": answer.error,
        "error_se": answer.error_se,
        "error_is_bound": float(answer.error_is_bound),
        "ratio": true.ratio,
        "bytes_per_node": answer.bytes,
    }


def _trace(start: float, lines: list[dict[str, float | None]], rounds: int, metrics: list[str]) -> Trace:
    lost: dict[str, float | None] = {"objective": math.inf, "mse": math.inf, "nmse": math.inf}
    lines = lines + [lost] * (rounds - len(lines))

    def column(name: str) -> Doubles:
        values = [line.get(name) for line in lines]
        return np.array([math.nan if value is None else value for value in values], np.float64)

    measured = {f.name: column(f.name) for f in fields(Trace) if f.name not in ("start", "round", "metrics")}
    return Trace(start, np.arange(rounds), metrics={name: column(name) for name in metrics}, **measured)
