"""A task played round by round with a scheme."""

from __future__ import annotations

import warnings

import numpy as np

from sparsemean.encoders.size import count
from sparsemean.errors import DivergenceWarning
from sparsemean.lab.experiments.measures.equal_bytes import most_within, typical_vectors
from sparsemean.lab.experiments.prepare import task_of
from sparsemean.lab.experiments.scheme import k_of, scheme_of
from sparsemean.lab.experiments.setting import Row, Setting
from sparsemean.lab.tasks import Quadratic
from sparsemean.lab.trace import play
from sparsemean.run import Run
from sparsemean.schemes import Scheme, named
from sparsemean.wire.frame import HEADER_BYTES


def _scheme(setting: Setting, k: int | None, dim: int) -> Scheme | None:
    thin = float(setting.option("thin", 0.0))
    if k is None:
        return None
    return scheme_of(setting, k) if not thin else scheme_of(setting, (k, count(thin, dim)))


def measure(setting: Setting, data_dir: str | None = None) -> list[Row]:
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
        k = most_within(lambda k: scheme_of(setting, k), wanted, typical_vectors(task, setting.seed, setting.rounds))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # that it diverges is among what is shown
        trace = play(task, _scheme(setting, k, task.dim), setting.rounds, setting.seed)
    rows: list[Row] = [{**line, "start": trace.start, "k": k} for line in trace.rows()]
    if isinstance(task, Quadratic):
        for row, bound in zip(rows, task.bound(np.arange(1, len(rows) + 1)).tolist(), strict=True):
            row["bound"] = bound
    return rows
