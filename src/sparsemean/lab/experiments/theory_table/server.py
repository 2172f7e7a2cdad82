"""The server's own estimates from what arrives: the correlation of the nodes, and its error."""

from __future__ import annotations

import numpy as np

from sparsemean import theory
from sparsemean.lab.experiments.theory_table.agreement import equal
from sparsemean.lab.experiments.theory_table.sample_vectors import affordable, correlated, described, weather_day
from sparsemean.lab.tables import TableRow
from sparsemean.run import Run
from sparsemean.schemes import named
from sparsemean.simulation import simulate


def own_estimates(trials: int, seed: int) -> list[TableRow]:
    """R1, R2 and the error estimated without bias, from k/d = 0.1 of the coordinates."""
    rows = []
    for vectors in (correlated(1.0), weather_day()):
        n, dim = vectors.shape
        r1, r2 = theory.correlation(vectors)
        run = Run(named("rand-k-spatial-avg", 0.1, values="float64"), dim, seed)
        played = simulate(run, np.broadcast_to(vectors, (affordable(trials, vectors), n, dim)))
        correlations = [estimate.correlation for estimate in played if estimate.correlation is not None]
        exact = theory.spatial_mse(r1, r2, n, run.share or 0.0, "avg")
        text = f"{described(vectors)}, k/d = {run.share:.3g}"
        rows.append(
            equal("server-r1", f"estimated R1 over the true one, {text}", [c.r1 / r1 for c in correlations], 1.0)
        )
        rows.append(
            equal("server-r2", f"estimated R2 over the true one, {text}", [c.r2 / r2 for c in correlations], 1.0)
        )
        errors = [estimate.error / exact for estimate in played if estimate.error is not None]
        rows.append(equal("server-error", f"estimated error over the exact one, {text}", errors, 1.0))
    return rows
