"""Section 4 and Appendix D: Rand-k-Temporal's error, for any memory, and what a shared memory does to its own error."""

from __future__ import annotations

import warnings

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.errors import DivergenceWarning
from sparsemean.lab.experiments.theory_table.agreement import at_most, equal
from sparsemean.lab.experiments.theory_table.sample_vectors import weather_day
from sparsemean.lab.tables import TableRow
from sparsemean.lab.tasks import StreamTask
from sparsemean.lab.trace import play
from sparsemean.lab.weather import load_weather
from sparsemean.run import Run
from sparsemean.schemes import named
from sparsemean.simulation import simulate

DAYS = 6
STATIONS = 12
HEARD = 40
"""Rounds with k = d/2 after which every coordinate has been sent, but with probability 1e-9."""


def theorem_3(trials: int, seed: int) -> list[TableRow]:
    """Measured less exact error, given the memory, in every round but the first; and no bias in any of them."""
    days = load_weather().vectors[:DAYS].astype(np.float64)
    truth = days.mean(axis=1)
    excess, along = [], []
    for number in range(max(2, trials // DAYS)):
        trace = play(StreamTask(days), named("rand-k-temporal", 0.1, values="float64"), DAYS, seed + number)
        excess.extend(((trace.mse - trace.exact) / trace.exact)[1:].tolist())
        run = Run(named("rand-k-temporal", 0.1, values="float64"), days.shape[2], seed + number)
        means = np.array([estimate.mean for estimate in simulate(run, days)])
        along.extend((np.sum(means * truth, axis=1) / np.sum(truth**2, axis=1))[1:].tolist())
    text = f"weather, {DAYS} days, n = 37, d = 89, k/d = 0.101, per-node memory"
    return [
        equal("theorem-3", f"measured/exact error less 1: {text}", excess, 0.0),
        equal("theorem-3-unbiased", f"estimate along the mean: {text}", along, 1.0),
    ]


def predicted(trials: int, seed: int) -> list[TableRow]:
    """No iteration: the server knows a forecast b_i of each vector, here from other stations, and fills in from it."""
    day = weather_day()
    vectors, others = day[:STATIONS], day[STATIONS:]
    forecast = np.broadcast_to(others.mean(axis=0), vectors.shape)
    energy, truth = float(np.sum((vectors - forecast) ** 2)), vectors.mean(axis=0)
    run = Run(named("rand-k-temporal", 0.5, values="float64"), vectors.shape[1], seed)
    exact = theory.temporal_mse(energy, STATIONS, run.share or 0.0)
    # The server hears the forecast until it has all of it, then the vectors once; and so on.
    trial = np.concatenate([np.broadcast_to(forecast, (HEARD, *vectors.shape)), vectors[np.newaxis]])
    played = list(simulate(run, np.concatenate([trial] * max(20, trials // 10))))
    errors = [float(np.sum((estimate.mean - truth) ** 2)) for estimate in played[HEARD :: HEARD + 1]]
    gain = exact / theory.rand_k_mse(float(np.sum(vectors**2)), STATIONS, run.share or 0.0)
    text = f"weather, {STATIONS} stations, b_i: the mean of the other 25, k/d = {run.share:.3g}"
    return [
        equal(
            "theorem-3-predicted", f"error over (1/n²)(d/k − 1) Σ ‖x_i − b_i‖², {text}", np.array(errors) / exact, 1.0
        ),
        at_most("theorem-3-predicted", f"that over the error of Rand-k, {text}", gain, 1.0),
    ]


def feedback(trials: int, seed: int) -> list[TableRow]:
    """What b = last estimate multiplies its own error by: diverging at n = 10 and k = 0.01d, harmless at n = 100."""
    rows = []
    for n, share, runs in ((10, 0.01, trials), (100, 0.1, max(20, trials // 10))):
        growth = np.concatenate([_growth(n, share, seed + number) for number in range(runs)])
        exact = theory.feedback_factor("one", n, share)
        rows.append(equal("feedback", f"error of a round over that before, n = {n}, k/d = {share}", growth, exact))
    return rows


def _growth(n: int, share: float, seed: int) -> Doubles:
    """Error of the second round over that of the first, all nodes having the same vector all the time."""
    vectors = np.ones((2, n, 100))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        trace = play(StreamTask(vectors), named("rand-k-temporal-shared", share, values="float64"), 2, seed)
    return trace.mse[1:] / trace.mse[:-1]
