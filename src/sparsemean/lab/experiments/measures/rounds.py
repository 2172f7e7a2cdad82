"""A task played round by round with a scheme."""

from __future__ import annotations

import warnings

import numpy as np

from sparsemean.errors import DivergenceWarning
from sparsemean.lab.experiments.prepare import task_of
from sparsemean.lab.experiments.scheme import scheme_of
from sparsemean.lab.experiments.setting import Row, Setting
from sparsemean.lab.tasks import Quadratic
from sparsemean.lab.trace import play


def measure(setting: Setting, data_dir: str | None = None) -> list[Row]:
    """One row a round; ``start`` is the objective before the first, ``k`` the number of coordinates sent.

    >>> setting = Setting("quadratic", "quadratic", "normal", "rand-k", 0.1, rounds=2, nodes=3, options=(("dim", 20),))
    >>> [sorted(row)[:4] for row in measure(setting)]
    [['bound', 'bytes_per_node', 'error', 'error_se'], ['bound', 'bytes_per_node', 'error', 'error_se']]
    """
    task = task_of(setting, data_dir)
    scheme, k = scheme_of(setting, task)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # that it diverges is among what is shown
        trace = play(task, scheme, setting.rounds, setting.seed)
    rows: list[Row] = [{**line, "start": trace.start, "k": k} for line in trace.rows()]
    if isinstance(task, Quadratic):
        for row, bound in zip(rows, task.bound(np.arange(1, len(rows) + 1)).tolist(), strict=True):
            row["bound"] = bound
    return rows
