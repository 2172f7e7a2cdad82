"""The quadratic case study: where it converges to, and Theorem 4's bound on the way."""

from __future__ import annotations

import numpy as np

from sparsemean import theory
from sparsemean.lab.experiments.setting import Row
from sparsemean.lab.experiments.theory_table.judged import at_most, same
from sparsemean.lab.tasks import Quadratic
from sparsemean.lab.trace import play
from sparsemean.schemes import named

NODES, DIM, SHARE, ROUNDS = 15, 200, 0.1, 250
SETTING = f"n = {NODES}, d = {DIM}, k/d = {SHARE}, float64"


def theorem_4(trials: int, seed: int) -> list[Row]:
    """Mean squared distance over the bound, the largest of any round; at the proved rate and at the figure's.

    Values travel as float64: float32's rounding alone stops the descent at some 1e-15 of the start, which the bound
    passes after 350 rounds at η = 0.1.
    """
    limit = theory.learning_rate_limit(NODES, SHARE)
    rows = [same("theorem-4-limit", f"largest η of Theorem 4, n = {NODES}, k/d = {SHARE}", limit, 0.05)]
    for rate in (limit, 0.1):
        name = "theorem-4" if rate <= limit else "theorem-4-beyond"
        worst = _largest_of_bound(rate, max(2, trials // 200), seed)
        rows.append(at_most(name, f"squared distance over its bound, η = {rate:g}, {SETTING}", worst, 1.0))
    return rows


def _largest_of_bound(rate: float, runs: int, seed: int) -> float:
    relative = np.zeros(ROUNDS)
    for number in range(runs):
        task = Quadratic.normal(NODES, DIM, rate, seed + number)
        trace = play(task, named("rand-k-temporal", SHARE, values="float64"), ROUNDS, seed + number)
        relative += trace.objective / task.bound(np.arange(1, ROUNDS + 1)) / runs
    return float(relative.max())


def optimum(trials: int, seed: int) -> list[Row]:
    """Exact gradient descent ends at the mean of the e_i; the paper prints half of it."""
    minima = np.random.default_rng(seed).normal(size=(NODES, DIM))
    w = np.zeros(DIM)
    for _ in range(1000):
        w = w - 0.05 * (w - minima).mean(axis=0)
    mean = minima.mean(axis=0)
    scale = float(mean @ mean)
    return [
        same("optimum", f"‖w − (1/n) Σ e_i‖² relative to the start, {SETTING}", float(np.sum((w - mean) ** 2)) / scale, 0.0),
        same("optimum-half", f"‖w − (1/2n) Σ e_i‖² relative, {SETTING}", float(np.sum((w - mean / 2) ** 2)) / scale, 0.25),
    ]
