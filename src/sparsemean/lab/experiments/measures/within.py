"""The measures "within" and "within-mean": a task played with a scheme that fills a byte budget, header included."""

from __future__ import annotations

import warnings

import numpy as np

from sparsemean.errors import DivergenceWarning
from sparsemean.lab.experiments.prepare import task_of
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.node_schemes import node_scheme
from sparsemean.lab.tables import TableRow
from sparsemean.lab.trace import Trace, play
from sparsemean.wire.frame import HEADER_BYTES


def measure(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """One row a round; ``bytes`` is the budget."""
    trace, _ = _played(setting, data_dir)
    return [{**line, "start": trace.start} for line in trace.rows()]


def averaged(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """One row: the means over all rounds but the first, which is before the server has seen anything.

    ``bits`` are those of a coordinate, without the header.
    """
    trace, dim = _played(setting, data_dir)
    mse, nmse, sent = (float(np.mean(each[1:])) for each in (trace.mse, trace.nmse, trace.bytes_per_node))
    return [{"round": 0, "mse": mse, "nmse": nmse, "bytes_per_node": sent, "bits": 8.0 * (sent - HEADER_BYTES) / dim}]


def _played(setting: Setting, data_dir: str | None) -> tuple[Trace, int]:
    """The trace, and the length of a vector."""
    task = task_of(setting, data_dir)
    scheme = node_scheme(setting.scheme, task.dim, int(setting.option("bytes", 0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)  # the errors show it
        return play(task, scheme, setting.rounds, setting.seed), task.dim
