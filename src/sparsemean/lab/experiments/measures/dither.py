"""The measure "dither": rounds of Gaussian vectors in few bits, with a common scale or with each node's own."""

from __future__ import annotations

import numpy as np

from sparsemean.decoding import Spatial
from sparsemean.encoders import RandK
from sparsemean.encoders.size import count
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.tables import TableRow
from sparsemean.lab.tasks import new_vectors
from sparsemean.run import Run
from sparsemean.sampling import Balanced
from sparsemean.schemes import Scheme
from sparsemean.simulation import simulate
from sparsemean.wire.frame import HEADER_BYTES
from sparsemean.wire.values import value_name

SETTLED = 6  # rounds until the common scale is learnt


def measure(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """One row: ``nmse``, relative to the squared norm of the mean, and bytes without the header, of the later rounds.

    Vectors are drawn anew in every round, every two with this ``correlation``. All is sent where there is no share.
    """
    n, dim, kind = setting.nodes, int(setting.option("dim", 1000)), setting.scheme.partition(" ")[2]
    k = dim if setting.share is None else count(setting.share, dim)
    correlation, rng = float(setting.option("correlation", 0.0)), np.random.default_rng(setting.seed)
    draw = Balanced(common_scale=bool(setting.option("common", 1)))
    run = Run(Scheme(RandK(k, draw=draw), Spatial("learned"), values=value_name(kind)), dim, setting.seed)
    vectors = new_vectors(n, dim, setting.rounds, correlation, rng)
    played = list(zip(simulate(run, vectors), vectors.mean(axis=1), strict=True))[SETTLED:]
    mse = [float(np.sum((estimate.mean - mean) ** 2)) for estimate, mean in played]
    relative = [error / float(mean @ mean) for error, (_, mean) in zip(mse, played, strict=True)]
    sent = float(np.mean([estimate.bytes / n - HEADER_BYTES for estimate, _ in played]))
    return [{"round": 0, "k": k, "mse": float(np.mean(mse)), "nmse": float(np.mean(relative)), "bytes_per_node": sent}]
