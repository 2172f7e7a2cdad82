"""Section 3: Rand-k-Spatial is unbiased, its error is Theorem 1's, and Theorem 2's T is the best."""

from __future__ import annotations

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Spatial
from sparsemean.encoders import RandK
from sparsemean.lab.experiments.theory_table.agreement import at_least, at_most, equal, same
from sparsemean.lab.experiments.theory_table.sample_vectors import (
    DIM,
    NODES,
    affordable,
    correlated,
    described,
    weather_day,
)
from sparsemean.lab.tables import TableRow
from sparsemean.run import Run
from sparsemean.schemes import Scheme
from sparsemean.simulation import simulate
from sparsemean.theory.binomial import pmf

Ratio = str | float


def estimates(vectors: Doubles, share: float, T: Ratio, trials: int, seed: int) -> tuple[Doubles, float]:
    """(trials, d) estimates through the real bytes, and k/d."""
    run = Run(Scheme(RandK(share), Spatial(T), values="float64"), vectors.shape[1], seed)
    played = simulate(run, np.broadcast_to(vectors, (trials, *vectors.shape)))
    return np.array([estimate.mean for estimate in played]), run.share or 0.0


def squared_errors(means: Doubles, vectors: Doubles) -> Doubles:
    return np.asarray(np.sum((means - vectors.mean(axis=0)) ** 2, axis=1))


def along_truth(means: Doubles, vectors: Doubles) -> Doubles:
    """⟨estimate, mean⟩/‖mean‖²: 1 on average if unbiased, β̄/β̄′ if scaled wrongly."""
    truth = vectors.mean(axis=0)
    return np.asarray(means @ truth / (truth @ truth))


def lemma_1(trials: int, seed: int) -> list[TableRow]:
    """The error of Rand-k, on drawn and on real vectors."""
    rows = []
    for vectors, share in ((correlated(0.0), 0.1), (correlated(1.0), 0.01), (weather_day(), 0.1)):
        means, p = estimates(vectors, share, "one", affordable(trials, vectors), seed)
        exact = theory.rand_k_mse(theory.correlation(vectors)[0], len(vectors), p)
        rows.append(equal("lemma-1", f"{described(vectors)}, k/d = {p:.3g}", squared_errors(means, vectors), exact))
    return rows


def lemma_2(trials: int, seed: int) -> list[TableRow]:
    """Unbiased with β̄ as the appendix sums it; not with the zero-truncated binomial that the text can be read as."""
    vectors, share = correlated(1.0), 0.1
    rows = []
    for T in ("one", "max", "avg", 2.0):
        means, _ = estimates(vectors, share, T, trials, seed)
        rows.append(equal("lemma-2", f"T = {T}, {described(vectors)}, k/d = 0.1", along_truth(means, vectors), 1.0))
    means, _ = estimates(vectors, share, "max", trials, seed)
    factor = literal_scale("max", NODES, share) / theory.beta_bar("max", NODES, share)
    text = f"T = max with β̄ from the zero-truncated binomial, {described(vectors)}, k/d = 0.1"
    return [*rows, equal("lemma-2-literal", text, factor * along_truth(means, vectors), factor)]


def literal_scale(T: Ratio, n: int, share: float) -> float:
    """β̄ with E over M | M ≥ 1, M ~ Binomial(n, p), as the formula before Lemma 2 can be read.

    >>> round(literal_scale("one", 10, 0.1), 9)
    10.0
    """
    count = pmf(n, share)[1:]
    return float(1.0 / (share * np.sum(count / count.sum() / theory.weights(T, n))))


def theorem_1(trials: int, seed: int) -> list[TableRow]:
    """The error of any T, on vectors of low to high correlation."""
    rows = []
    for vectors in (correlated(0.0), correlated(1.0), correlated(4.0), weather_day()):
        r1, r2 = theory.correlation(vectors)
        for T in ("max", "avg"):
            means, p = estimates(vectors, 0.1, T, affordable(trials, vectors), seed)
            exact = theory.spatial_mse(r1, r2, len(vectors), p, T)
            text = f"T = {T}, {described(vectors)}, k/d = {p:.3g}"
            rows.append(equal("theorem-1", text, squared_errors(means, vectors), exact))
    return rows


def cross_terms(trials: int, seed: int) -> list[TableRow]:
    """The proof of Theorem 1 counts each pair of nodes once, the theorem twice: only twice fits the measured error."""
    vectors, share, T = correlated(1.0), 0.1, "max"
    r1, r2 = theory.correlation(vectors)
    means, p = estimates(vectors, share, T, trials, seed)
    measured = squared_errors(means, vectors)
    twice, once = (theory.spatial_mse(r1, pairs, NODES, p, T) for pairs in (r2, r2 / 2))
    text = f"T = {T}, {described(vectors)}, k/d = {p:.3g}"
    return [
        equal("theorem-1-twice", f"error over that with 2 Σ Σ ⟨x_i, x_l⟩, {text}", measured / twice, 1.0),
        equal("theorem-1-once", f"error over that with Σ Σ ⟨x_i, x_l⟩, {text}", measured / once, twice / once),
    ]


def whole_vectors(trials: int, seed: int) -> list[TableRow]:
    """Where all is sent, k = d, the estimate is the mean whatever T is, and so are c1 and c2."""
    vectors = correlated(1.0)
    weightings = ("one", "max", "avg", 2.0)
    errors = [float(squared_errors(estimates(vectors, DIM, T, 2, seed)[0], vectors).max()) for T in weightings]
    differ = max(abs(c) for T in weightings for c in theory.constants(T, NODES, 1.0))
    said = "T = one, max, avg and of ratio 2, k = d"
    return [
        same("theorem-2-whole", f"largest squared error, {said}", max(errors), 0.0),
        same("theorem-2-whole", f"largest |c1| and |c2|, {said}", differ, 0.0),
    ]


def theorem_2(trials: int, seed: int) -> list[TableRow]:
    """The range of R2/R1; the best T against others; its special cases."""
    rng = np.random.default_rng(seed)
    ratios = []
    for _ in range(trials):
        vectors = rng.normal(size=(NODES, 3)) + rng.normal(size=3) * rng.choice([0.0, 1.0, 30.0])
        r1, r2 = theory.correlation(vectors - vectors.mean(axis=0) * rng.choice([0.0, 0.0, 1.0]))
        ratios.append(r2 / r1)
    low, high = theory.ratio_range(NODES)
    others = np.exp(rng.normal(size=(trials, NODES)))
    best = [_worst_rival(ratio, others) for ratio in (-0.5, 0.0, 4.0, 9.0)]
    grid = np.linspace(low, high, 1001)
    opposed = np.concatenate((correlated(1.0), -correlated(1.0)))
    means, _ = estimates(opposed, 0.5, -1.0, 10, seed)
    drawn = f"{trials} sets of {NODES} vectors"
    return [
        at_least("theorem-2-range", f"smallest R2/R1 of {drawn}", min(ratios), low),
        at_most("theorem-2-range", f"largest R2/R1 of {drawn}", max(ratios), high),
        at_least("theorem-2", f"error of {trials} other T relative to T*, least", min(best), 1.0),
        same("theorem-2-rand-k", "ratio of the best T where R2/R1 = 0", _best_ratio(0.0, grid), 0.0),
        same("theorem-2-max", "ratio of the best T where R2/R1 = n − 1 = 9", _best_ratio(9.0, grid), 9.0),
        same("theorem-2-opposed", "largest error where R2/R1 = −1", float(squared_errors(means, opposed).max()), 0.0),
    ]


def _worst_rival(ratio: float, others: Doubles) -> float:
    own = theory.spatial_mse(1.0, ratio, NODES, 0.1, ratio)
    return min(theory.spatial_mse(1.0, ratio, NODES, 0.1, table) / own for table in others)


def _best_ratio(ratio: float, grid: Doubles) -> float:
    """The ratio whose T has the least error on vectors of R2/R1 = ``ratio``."""
    errors = [theory.spatial_mse(1.0, ratio, NODES, 0.1, float(r)) for r in grid[1:]]
    return float(grid[1:][int(np.argmin(errors))])


def average(trials: int, seed: int) -> list[TableRow]:
    """Which ratio is the mid-point of the range, and best on average over it: n/2 − 1; the paper says n/2."""
    low, high = theory.ratio_range(NODES)
    places = np.linspace(low, high, 101)
    grid = np.linspace(low, high, 101)[1:]
    expected = [np.mean([theory.spatial_mse(1.0, float(x), NODES, 0.1, float(r)) for x in places]) for r in grid]
    gain = float(expected[int(np.argmin(np.abs(grid - NODES / 2)))] / min(expected)) - 1
    best = float(grid[int(np.argmin(expected))])
    uniform = "R2/R1 uniform on [−1, 9]"
    return [
        same("average-midpoint", "mid-point of [−1, n − 1], n = 10", (low + high) / 2, NODES / 2 - 1),
        same("average-best", f"ratio of the T of least expected error, {uniform}", best, NODES / 2 - 1),
        at_most("average-loss", f"expected error of n/2 over that of n/2 − 1, less 1, {uniform}", gain, 0.01),
    ]
