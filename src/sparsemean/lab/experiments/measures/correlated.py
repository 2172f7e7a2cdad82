"""The measures "alike" and "alike-means": single rounds of equally correlated vectors, some nodes perhaps absent."""

from __future__ import annotations

import math

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.client import Client
from sparsemean.encoders import RandK
from sparsemean.encoders.size import count
from sparsemean.evaluation import exact_error
from sparsemean.lab.byte_budget import largest_k
from sparsemean.lab.experiments.measures.rounds import LEAST, PROBES
from sparsemean.lab.experiments.prepare import scheme_of
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.tables import TableRow
from sparsemean.run import Run
from sparsemean.server import Server
from sparsemean.simulation import play_round
from sparsemean.wire.frame import HEADER_BYTES

VARYING = ("mse", "nmse", "exact", "error", "error_se", "bytes_per_node")
"""Columns that differ from trial to trial."""


def correlated_vectors(nodes: int, dim: int, ratio: float, seed: int) -> Doubles:
    """Unit vectors in directions drawn at random, every two with the inner product ``ratio``/(n − 1): R2/R1 is exact.

    Each is a common direction and one of the node's own, of orthonormal ones; dim > nodes.

    >>> vectors = correlated_vectors(3, 50, 1.0, seed=0)
    >>> (vectors @ vectors.T).round(12).tolist()
    [[1.0, 0.5, 0.5], [0.5, 1.0, 0.5], [0.5, 0.5, 1.0]]
    """
    rng, common = np.random.default_rng(seed), ratio / (nodes - 1)
    directions = np.linalg.qr(rng.normal(size=(dim, nodes + 1))).Q.T
    vectors: Doubles = math.sqrt(common) * directions[0] + math.sqrt(1 - common) * directions[1:]
    return vectors


def measure(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """One row per trial; ``nmse`` is relative to the mean of ‖x_i‖², ``bytes_per_node`` without the header.

    k is the setting's share of the coordinates or, where it has none, the largest with which values and scales take no
    more than ``bytes``. Of the nodes that are asked the part ``absent`` does not send, others in every trial; with
    ``pool`` every trial asks other nodes, out of so many. With ``spread`` nodes have lognormal weights with this σ, and
    with ``proportional`` they send in proportion to them, k on average. ``exact`` is the expected error given what the
    decoder has learned, ``apart`` is 1 − (R2/R1)/(n − 1): 1 for orthogonal vectors, 0 for equal ones.
    """
    n, dim, ratio = setting.nodes, int(setting.option("dim", 65536)), float(setting.option("ratio", 0.0))
    vectors, came = correlated_vectors(n, dim, ratio, setting.seed), n - round(n * float(setting.option("absent", 0.0)))
    r1, r2 = theory.correlation(vectors)
    known = theory.optimal_ratio(r1, r2, n) * (came - 1) / (n - 1)  # of those who come, on average over trials
    k, rng = _k(setting, vectors), np.random.default_rng(setting.seed)
    spread, pool = float(setting.option("spread", 0.0)), int(setting.option("pool", n))
    given = rng.lognormal(sigma=spread, size=n) if spread else np.ones(n)
    sizes = theory.sizes_for_weights(given, k, dim) if setting.option("proportional", 0) else [k] * pool
    run = Run(scheme_of(setting, tuple(sorted(set(sizes), reverse=True)), known), dim, setting.seed)
    server, clients = Server(run), [Client(run, str(node), RandK(size)) for node, size in enumerate(sizes)]
    rows: list[TableRow] = []
    for trial in range(int(setting.option("trials", 1))):
        asked = [clients[node] for node in rng.permutation(len(clients))[:n]] if len(clients) > n else clients
        present = np.sort(rng.permutation(n)[:came])
        server.plans({client.node: client.encoder for client in asked})
        weights, classes = np.isin(np.arange(n), present) * given, np.array([client.choice for client in asked])
        exact = exact_error(server, [client.node for client in asked], vectors, weights, classes)
        estimate = play_round(server, [asked[node] for node in present], vectors[present], given[present])
        mse = float(np.sum((estimate.mean - np.average(vectors, axis=0, weights=weights)) ** 2))
        row: TableRow = {
            "round": trial,
            "dim": dim,
            "ratio": r2 / r1,
            "apart": abs(round(1 - r2 / r1 / (n - 1), 9)),
            "k": k,
        }
        row |= {"mse": mse, "nmse": mse * n / r1, "exact": None if exact is None else exact + (estimate.rounding or 0)}
        row |= {"error": estimate.error, "error_se": estimate.error_se}
        row |= {"error_is_bound": 1} if estimate.error_is_bound else {}
        rows.append(row | {"bytes_per_node": estimate.bytes / came - HEADER_BYTES})
    return rows


def averaged(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """One row: the means over the trials, at least two, of ``measure``; ``mse_se`` is the standard error of ``mse``."""
    trials = measure(setting, data_dir)
    varying = {name: np.array([row[name] for row in trials], np.float64) for name in VARYING}  # NaN for None
    means: TableRow = {name: None if math.isnan(mean := column.mean()) else mean for name, column in varying.items()}
    return [{**trials[0], **means, "mse_se": float(varying["mse"].std(ddof=1)) / math.sqrt(len(trials))}]


def _k(setting: Setting, vectors: Doubles) -> int:
    if setting.share is not None:
        return count(setting.share, vectors.shape[1])
    wanted = HEADER_BYTES + float(setting.option("bytes", 26000))
    return largest_k(lambda k: scheme_of(setting, k), wanted, vectors, LEAST, PROBES)
