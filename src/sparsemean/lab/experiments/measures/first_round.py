"""The measure "first-round": R2/R1 of the nodes' vectors in the first round, true and as the server estimates it."""

from __future__ import annotations

import numpy as np

from sparsemean import theory
from sparsemean.lab.experiments.prepare import k_of, scheme_of, task_of
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.tables import TableRow
from sparsemean.simulation import estimate_mean


def measure(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """One row: the true R2/R1, and ``ratio_estimated`` ± ``ratio_estimated_se`` from one round of the scheme.

    Of a stream, whose first round does not depend on the seed, round ``seed`` is taken instead.
    """
    task = task_of(setting, data_dir)
    first = setting.seed if setting.task == "stream" else 0
    vectors = np.asarray(task.vectors(task.start(setting.seed), first), np.float64)
    r1, r2 = theory.correlation(vectors)
    row: TableRow = {"round": 0, "ratio": r2 / r1}
    k = k_of(setting, task.dim)
    if k is not None:
        estimate = estimate_mean(vectors, scheme_of(setting, k), setting.seed)
        row |= {"mse": float(np.sum((estimate.mean - vectors.mean(axis=0)) ** 2)), "error": estimate.error}
        row |= {"error_se": estimate.error_se, "bytes_per_node": estimate.bytes / len(vectors)}
        if estimate.correlation is not None:
            row["ratio_estimated"] = estimate.correlation.ratio
            row["ratio_estimated_se"] = estimate.correlation.ratio_se
    return [row]
