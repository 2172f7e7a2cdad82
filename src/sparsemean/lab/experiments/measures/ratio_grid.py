"""The measure "ratio-grid": error of the Rand-k-Spatial family against R2/R1 (algorithm of Appendix B)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.lab.experiments.prepare import Latest
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.tables import TableRow
from sparsemean.run import Run
from sparsemean.schemes import named

Weighting = str | float
DECODERS: dict[str, Weighting | None] = {
    "rand-k": "one",
    "rand-k-spatial-max": "max",
    "rand-k-spatial-avg": "avg",
    "rand-k-spatial-opt": None,  # the ratio of the vectors themselves
}


_draws: Latest[npt.NDArray[np.bool_]] = Latest()


def measure(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """One row every ``step`` flipped signs: ``mse`` is the mean over ``trials`` draws, ``exact`` Theorem 1's.

    All rows use the same draws of coordinates, so a curve is smoother than its ``mse_se`` says.
    """
    n, dim = setting.nodes, int(setting.option("dim", 100))
    trials, step = int(setting.option("trials", 1000)), int(setting.option("step", 10))
    run = Run(named("rand-k", setting.share), dim, setting.seed)
    share, sent = run.share or 0.0, _draws.get((run, n, trials), lambda: draws(run, n, trials))
    counts = sent.sum(axis=1)
    rows: list[TableRow] = []
    for flips, vectors in sign_flips(n, dim, step):
        r1, r2 = theory.correlation(vectors)
        ratio = theory.optimal_ratio(r1, r2, n)
        chosen = DECODERS[setting.scheme]
        T = ratio if chosen is None else chosen
        plain = (sent * vectors).sum(axis=1) / (n * share)
        estimates = plain * theory.gains(T, n, share)[counts]
        errors = np.sum((estimates - vectors.mean(axis=0)) ** 2, axis=1)
        measured: TableRow = {"mse": float(errors.mean()), "mse_se": float(errors.std(ddof=1) / np.sqrt(trials))}
        exact = theory.spatial_mse(r1, r2, n, share, T)
        rows.append(
            {"round": flips, "ratio": r2 / r1, **measured, "nmse": float(errors.mean()) * n / r1, "exact": exact}
        )
    return rows


def draws(run: Run, n: int, trials: int) -> npt.NDArray[np.bool_]:
    """(trials, n, d): whether node i sends coordinate j."""
    sent = np.zeros((trials, n, run.dim), np.bool_)
    for trial in range(trials):
        for node in range(n):
            sent[trial, node, run.coordinates(str(node), trial)[0]] = True
    return sent


def sign_flips(n: int, dim: int, step: int) -> Iterator[tuple[int, Doubles]]:
    """Half of the vectors all 1/√d, the other half turned from −1/√d to it entry by entry: R2/R1 from −1 to n − 1.

    >>> [(flips, theory.correlation(vectors)[1]) for flips, vectors in sign_flips(2, 4, 2)]
    [(0, -2.0), (2, 0.0), (4, 2.0)]
    """
    vectors = np.full((n, dim), 1 / np.sqrt(dim))
    turning = n - n // 2
    for flips in range(0, turning * dim + 1, step):
        whole, rest = divmod(flips, turning)
        vectors[n - turning :, whole:] = -1 / np.sqrt(dim)
        vectors[n - turning :, :whole] = 1 / np.sqrt(dim)
        vectors[n - turning : n - turning + rest, whole : whole + 1] = 1 / np.sqrt(dim)
        yield flips, vectors.copy()
