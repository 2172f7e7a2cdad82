"""The measure "rounds": a task played round by round with a scheme."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from sparsemean._types import Floats
from sparsemean.encoders.size import count
from sparsemean.errors import DivergenceWarning
from sparsemean.evaluation import truth
from sparsemean.lab.byte_budget import largest_k
from sparsemean.lab.experiments.prepare import k_of, scheme_of, task_of
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.tables import TableRow
from sparsemean.lab.tasks import Quadratic, Task
from sparsemean.lab.trace import play
from sparsemean.payload.blocks import Blocks
from sparsemean.run import Run
from sparsemean.schemes import Scheme, named
from sparsemean.wire.frame import HEADER_BYTES

QUARTERS = 4  # of a run, at whose beginnings vectors are taken
PROBES = 40  # vectors on which lengths of payloads are measured
LEAST = 2  # k: induced sends at least one coordinate of each kind


def measure(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """One row a round; ``start`` is the objective before the first, ``k`` the number of coordinates sent.

    With the option ``budget="bytes"`` k is not the setting's share of the coordinates, but the largest with which
    payloads are on average no longer than rand-k's with float32 values at that share; with ``budget="bits"`` they take,
    header apart, no more bytes than the share of the coordinates has. With ``thin`` every second node sends that
    share instead.

    >>> setting = Setting("quadratic", "quadratic", "normal", "rand-k", 0.1, rounds=2, nodes=3, options=(("dim", 20),))
    >>> [sorted(row)[:4] for row in measure(setting)]
    [['bound', 'bytes_per_node', 'error', 'error_se'], ['bound', 'bytes_per_node', 'error', 'error_se']]
    """
    task = task_of(setting, data_dir)
    k = k_of(setting, task.dim)
    budget = setting.option("budget", "")
    if k is not None and budget:
        wanted = Run(named("rand-k", k), task.dim).payload_bytes if budget == "bytes" else HEADER_BYTES + k
        vectors = typical_vectors(task, setting.seed, setting.rounds)
        k = largest_k(lambda k: scheme_of(setting, k), wanted, vectors, LEAST, PROBES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # that it diverges is among what is shown
        trace = play(task, _scheme(setting, k, task.dim), setting.rounds, setting.seed)
    rows: list[TableRow] = [{**line, "start": trace.start, "k": k} for line in trace.rows()]
    if isinstance(task, Quadratic):
        for row, bound in zip(rows, task.bound(np.arange(1, len(rows) + 1)).tolist(), strict=True):
            row["bound"] = bound
    return rows


def typical_vectors(task: Task[Any], seed: int, rounds: int) -> Floats:
    """All nodes' vectors of four rounds of a run with exact means; those of the first round alone are not typical."""
    state, blocks, chosen = task.start(seed), Blocks(task.blocks or (task.dim,)), []
    sampled = {quarter * rounds // QUARTERS for quarter in range(QUARTERS)}
    for round in range(max(sampled) + 1):
        vectors = task.vectors(state, round)
        chosen += [vectors] if round in sampled else []
        state = task.step(state, truth(vectors, task.weights(state), blocks).mean)
    return np.concatenate(chosen)


def _scheme(setting: Setting, k: int | None, dim: int) -> Scheme | None:
    thin = float(setting.option("thin", 0.0))
    if k is None:
        return None
    return scheme_of(setting, k) if not thin else scheme_of(setting, (k, count(thin, dim)))
