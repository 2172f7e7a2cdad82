"""What one scheme reached on the vectors: bytes, errors, and what the server said of itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Belief, Spatial
from sparsemean.lab.compare.budget import ORACLE, Budget
from sparsemean.lab.compare.given_vectors import GivenVectors
from sparsemean.lab.trace import Trace
from sparsemean.run import Run
from sparsemean.schemes import AUTO, SIZELESS, Scheme

WHOLE = ("identity", "identity float16", "identity int8")
"""Whole vectors, which are always played to compare with."""
REFERENCES = ("rand-k", *WHOLE)


@dataclass(frozen=True)
class Entry:
    """A scheme to be played, under its name, and the budget that it was made for."""

    name: str
    scheme: Scheme
    budget: Budget

    def k(self, dim: int) -> int | None:
        """How many coordinates a payload has; None where that changes (``auto``)."""
        run = Run(self.scheme, dim)
        return None if run.auto else sum(layout.count for layout in run.layout)


@dataclass(frozen=True)
class Result:
    """One scheme. Errors are relative, Σ‖estimate − mean‖² / Σ_t mean_i ‖x_i‖², averaged over seeds.

    Parameters
    ----------
    scheme
        Its name, and the kind of its values where that is not float32.
    code
        The same in Python: ``'sm.named("rand-k", k=34, values="int8")'``.
    bytes_per_node
        Bytes per node and round, header included.
    nmse, nmse_se
        The measured error over all rounds, and its standard error over seeds.
    steady, steady_se
        The same of the steady state: of the second half of the rounds.
    exact, exact_bound
        The error over all rounds that the formulas predict given the server's memory, None where there is no formula;
        and whether it is but an upper bound, since the formulas know nothing of dither that nodes share out.
    server_estimate, server_bound
        The server's own estimate of the error over all rounds, None where it makes none; and whether it is but an upper
        bound, since no two nodes send the same coordinate.
    unbiased, node_state, planned, server_memory
        Facts about the scheme: whether the error is 0 on average; whether nodes remember something; whether they need a
        plan in every round; whether the server remembers something.
    diverges
        Whether its memory feeds its own error back by a factor of 1 or more.
    over_budget
        Whether a payload may have more bytes than were allowed, as whole vectors may.
    reference
        Whether it is one of those that are always shown to compare with.
    nmse_by_round
        Mean over seeds.
    nmse_by_seed, steady_by_seed
        The errors of each seed; the same seed means the same draws for schemes that draw alike.
    k
        How many coordinates a payload has; d where whole vectors are sent, None where that changes (``auto``).
    """

    scheme: str
    code: str
    bytes_per_node: float
    nmse: float
    nmse_se: float
    steady: float
    steady_se: float
    exact: float | None
    exact_bound: bool
    server_estimate: float | None
    server_bound: bool
    unbiased: bool
    node_state: bool
    planned: bool
    server_memory: bool
    diverges: bool
    over_budget: bool
    reference: bool
    nmse_by_round: tuple[float, ...]
    nmse_by_seed: tuple[float, ...]
    steady_by_seed: tuple[float, ...]
    k: int | None = None

    @property
    def name(self) -> str:
        """The scheme's name without the kind of its values."""
        return self.scheme.partition(" ")[0]

    @property
    def seeds(self) -> int:
        """How often it was played."""
        return len(self.nmse_by_seed)

    def to_json(self) -> dict[str, Any]:
        """As plain data, with two standard errors of each error, which is what ± means."""
        doubt = {"nmse_plus_minus": 2.0 * self.nmse_se, "steady_plus_minus": 2.0 * self.steady_se}
        return {**asdict(self), **doubt, "seeds": self.seeds}


def result_of(entry: Entry, traces: Sequence[Trace], given: GivenVectors) -> Result:
    """The result of an entry that was played once with each seed from 0 on."""
    scheme, run = entry.scheme, Run(entry.scheme, given.task.dim)
    bytes_per_node = float(np.mean([np.nanmean(trace.bytes_per_node) for trace in traces]))
    errors = _relative([trace.mse for trace in traces], given.energy)
    steady = _relative([trace.mse[given.warmup :] for trace in traces], given.steady_energy)
    return Result(
        scheme=entry.name,
        code=_code(entry, given.task.dim),
        bytes_per_node=bytes_per_node,
        nmse=float(errors.mean()),
        nmse_se=_standard_error(errors),
        steady=float(steady.mean()),
        steady_se=_standard_error(steady),
        exact=_known(_relative([trace.exact for trace in traces], given.energy)),
        exact_bound=run.common_scale,
        server_estimate=_known(_relative([trace.error for trace in traces], given.energy)),
        server_bound=any(bool(np.any(trace.error_is_bound > 0)) for trace in traces),
        unbiased=scheme.unbiased,
        node_state=scheme.node_state,
        planned=scheme.encoder.facts.planned,
        server_memory=scheme.memory.facts.needs_raw or scheme.memory.facts.adds_offset,
        diverges=_diverges(run, given.correlation.nodes),
        over_budget=not entry.budget.allows(run.payload_bytes),
        reference=entry.name in REFERENCES,
        nmse_by_round=tuple(np.mean([trace.nmse for trace in traces], axis=0).tolist()),
        nmse_by_seed=tuple(errors.tolist()),
        steady_by_seed=tuple(steady.tolist()),
        k=entry.k(given.task.dim),
    )


def _relative(columns: Sequence[Doubles], energy: float) -> Doubles:
    sums = np.array([column.sum() for column in columns])
    return sums / energy if energy else np.where(np.isfinite(sums), 0.0, sums)


def _standard_error(errors: Doubles) -> float:
    return float(errors.std(ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else math.nan


def _known(errors: Doubles) -> float | None:
    mean = float(errors.mean())
    return None if math.isnan(mean) else mean


def _code(entry: Entry, dim: int) -> str:
    name, _, kind = entry.name.partition(" ")
    settings = [f'"{name}"']
    if name == AUTO:
        settings += [f"bytes={entry.budget.bytes}" if entry.budget.bytes else f"k={entry.budget.count(dim)}"]
    elif name not in SIZELESS:
        settings += [f"k={entry.k(dim)}"]
    if name == ORACLE and isinstance(entry.scheme.decoder, Spatial):
        settings += [f"ratio={entry.scheme.decoder.weighting!r}"]
    settings += [f'values="{kind}"'] if kind and kind != "float32" else []
    return f"sm.named({', '.join(settings)})"


def _diverges(run: Run, nodes: int) -> bool:
    T, share = run.scheme.decoder.T(Belief(), nodes), run.share
    feedback = run.scheme.memory.facts.feedback
    if not feedback or T is None or share is None:
        return False
    return feedback * theory.feedback_factor(T, nodes, share) >= 1.0
