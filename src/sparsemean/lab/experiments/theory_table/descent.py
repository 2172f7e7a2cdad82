"""The quadratic case study: where it converges to, how fast in expectation, and Theorem 4's bound on that."""

from __future__ import annotations

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.lab.experiments.theory_table.agreement import at_least, at_most, equal, same
from sparsemean.lab.tables import TableRow
from sparsemean.lab.tasks import Quadratic
from sparsemean.lab.trace import play
from sparsemean.schemes import named

NODES, DIM, SHARE = 15, 200, 0.1
SETTING = f"n = {NODES}, d = {DIM}, k/d = {SHARE}"
MEASURED_ROUNDS, EXACT_ROUNDS = 20, 1000


def expected_distance(
    n: int, share: float, rate: float, rounds: int, start_distance: float, gradient_energy: float
) -> Doubles:
    """E‖w_t − w*‖² for t = 0..rounds with Rand-k-Temporal: exact, where Theorem 4 has a bound.

    With u = w − w* and c_i = b_i − ∇F_i(w*), per coordinate, u ← u − η[c̄ + (1/n) Σ ξ_i (u − c_i)/p] and
    c_i ← c_i + ξ_i (u − c_i), so the means of u², u c_i, c_i² and c_i c_l follow a linear recursion. Whatever
    is sent, the mean distance does not depend on the draw of the e_i but by the two arguments.

    >>> expected_distance(1, 1.0, 0.5, 2, 4.0, 0.0).tolist()
    [4.0, 1.0, 0.25]
    """
    p, others, noise = share, (n - 1) / n, rate**2 * (1 / share - 1) / n
    mean_of_two = np.array([p, 1 - p, 0.0, 0.0])  # E[u c_i'] given the round's start
    gradient = np.array([0.0, p, (1 - p) / n, (1 - p) * others])  # E[c̄ c_i']
    gradient += others * np.array([p, 1 - 2 * p, 0.0, p - 1]) + np.array([1.0, -1.0, 0.0, 0.0]) / n
    step = np.array(
        [
            [(1 - rate) ** 2 + noise, -2 * noise, noise, 0.0],
            mean_of_two - rate * gradient,
            [p, 0.0, 1 - p, 0.0],
            [p * p, 2 * p * (1 - p), 0.0, (1 - p) ** 2],
        ]
    )
    moments = np.array([start_distance, 0.0, gradient_energy, -gradient_energy / max(n - 1, 1)])
    distances = [start_distance]
    for _ in range(rounds):
        moments = step @ moments
        distances.append(float(moments[0]))
    return np.array(distances)


def theorem_4(trials: int, seed: int) -> list[TableRow]:
    """The expected distance measured, and exactly against the bound: at the proved rate, and at the figure's."""
    limit = theory.learning_rate_limit(NODES, SHARE)
    relative = [_measured_over_exact(limit, seed + number) for number in range(max(20, trials // 10))]
    proved, beyond = _over_bound(limit), _over_bound(0.1)
    at, at_figure = f"η = {limit:g}, {SETTING}", f"η = 0.1, {SETTING}"
    measured = f"squared distance over its expectation, {MEASURED_ROUNDS} rounds, {at}"
    bounded = f"expected squared distance over the bound, largest of 1000 rounds, {at}"
    return [
        same("theorem-4-limit", f"largest η of Theorem 4, n = {NODES}, k/d = {SHARE}", limit, 0.05),
        equal("theorem-4-exact", measured, relative, 1.0),
        at_most("theorem-4", bounded, float(proved.max()), 1.0),
        at_least("theorem-4-beyond", f"the same after 1000 rounds, {at_figure}", float(beyond[-1]), 1.0),
        same("theorem-4-fails", f"first round beyond the bound, {at_figure}", float(np.argmax(beyond > 1)), 375.0),
    ]


def _measured_over_exact(rate: float, seed: int) -> float:
    """float64, because with float32 values rounding alone stops the descent at some 1e-15 of the start."""
    task = Quadratic.normal(NODES, DIM, rate, seed)
    trace = play(task, named("rand-k-temporal", SHARE, values="float64"), MEASURED_ROUNDS, seed)
    start = (trace.start, task.gradient_energy)
    return float(trace.objective[-1] / expected_distance(NODES, SHARE, rate, MEASURED_ROUNDS, *start)[-1])


def _over_bound(rate: float) -> Doubles:
    """For e_i ~ N(0, I), of which the start is 1/n and the gradients (n − 1)/n per coordinate."""
    start = (1 / NODES, 1 - 1 / NODES)
    bound = theory.distance_bound(rate, np.arange(EXACT_ROUNDS + 1), *start)
    return np.asarray(expected_distance(NODES, SHARE, rate, EXACT_ROUNDS, *start) / bound)


def optimum(trials: int, seed: int) -> list[TableRow]:
    """Exact gradient descent ends at the mean of the e_i; the paper prints half of it."""
    minima = np.random.default_rng(seed).normal(size=(NODES, DIM))
    w, mean = np.zeros(DIM), minima.mean(axis=0)
    for _ in range(1000):
        w = w - 0.05 * (w - minima).mean(axis=0)
    whole, half = (float(np.sum((w - end) ** 2) / (mean @ mean)) for end in (mean, mean / 2))
    return [
        same("optimum", f"‖w − (1/n) Σ e_i‖² relative to the start, {SETTING}", whole, 0.0),
        same("optimum-half", f"‖w − (1/2n) Σ e_i‖² relative to the start, {SETTING}", half, 0.25),
    ]
