"""The measure "alike": single rounds of Gaussian vectors with a given R2/R1, at a given number of bytes."""

from __future__ import annotations

import math

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.lab.byte_budget import largest_k
from sparsemean.lab.experiments.measures.rounds import LEAST, PROBES
from sparsemean.lab.experiments.prepare import scheme_of
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.tables import TableRow
from sparsemean.run import Run
from sparsemean.simulation import simulate
from sparsemean.wire.frame import HEADER_BYTES


def correlated_vectors(nodes: int, dim: int, ratio: float, seed: int) -> Doubles:
    """A common Gaussian vector plus one of each node's own, so that R2/R1 is about ``ratio``."""
    rng, common = np.random.default_rng(seed), ratio / (nodes - 1)
    return math.sqrt(common) * rng.normal(size=dim) + math.sqrt(1 - common) * rng.normal(size=(nodes, dim))


def measure(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """One row per trial; ``nmse`` is relative to the mean of ‖x_i‖², ``bytes_per_node`` without the header."""
    dim, ratio = int(setting.option("dim", 65536)), float(setting.option("ratio", 0.0))
    vectors = correlated_vectors(setting.nodes, dim, ratio, setting.seed)
    wanted = HEADER_BYTES + float(setting.option("bytes", 26000))
    k = largest_k(lambda k: scheme_of(setting, k), wanted, vectors, LEAST, PROBES)
    run, trials = Run(scheme_of(setting, k), dim, setting.seed), int(setting.option("trials", 1))
    (r1, r2), mean = theory.correlation(vectors), vectors.mean(axis=0)
    rows: list[TableRow] = []
    for trial, estimate in enumerate(simulate(run, np.broadcast_to(vectors, (trials, *vectors.shape)))):
        mse = float(np.sum((estimate.mean - mean) ** 2))
        size = estimate.bytes / setting.nodes - HEADER_BYTES
        row: TableRow = {
            "round": trial,
            "dim": dim,
            "ratio": r2 / r1,
            "k": k,
            "mse": mse,
            "nmse": mse * setting.nodes / r1,
        }
        rows.append(row | {"error": estimate.error, "error_se": estimate.error_se, "bytes_per_node": size})
    return rows
