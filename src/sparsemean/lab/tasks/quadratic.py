"""The quadratic case study: gradient descent to the mean of points, one on each node (Section 4, Theorem 4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.tasks.base import Task
from sparsemean.lab.tasks.gradient_descent import check_settings


class Quadratic(Task[Doubles]):
    """F_i(w) = ½‖w − e_i‖²: node i sends ∇F_i(w) = w − e_i, the server steps w ← w − rate · mean, from w = 0.

    The objective is ‖w − w*‖², w* the mean of the e_i (the paper prints half of it). Theorem 4 is proved up to
    ``theory.learning_rate_limit``, 0.05 in the paper's setting of 15 nodes and k = 0.1d, for which its figure uses 0.1.

    >>> task = Quadratic([[0.0, 2.0], [4.0, 0.0]], rate=0.5)
    >>> task.optimum, task.objective(task.start(seed=0)), task.gradient_energy
    (array([2., 1.]), 5.0, 5.0)
    """

    def __init__(self, minima: npt.ArrayLike, rate: float = 0.05) -> None:
        check_settings(rate, None)
        self._minima = np.array(minima, np.float64)
        if self._minima.ndim != 2 or self._minima.size == 0 or not np.isfinite(self._minima).all():
            raise InvalidInput(f"minima is a (nodes, dim) array of finite numbers, got shape {self._minima.shape}")
        super().__init__(*self._minima.shape)
        self._rate = rate
        self.optimum: Doubles = self._minima.mean(axis=0)

    @staticmethod
    def normal(nodes: int = 15, dim: int = 1000, rate: float = 0.05, seed: int = 0) -> Quadratic:
        """The paper's: e_i ~ N(0, I)."""
        return Quadratic(np.random.default_rng(seed).normal(size=(nodes, dim)), rate)

    @property
    def gradient_energy(self) -> float:
        """(1/n) Σ_i ‖∇F_i(w*)‖², the second term in the bracket of Theorem 4."""
        return float(np.sum((self.optimum - self._minima) ** 2)) / self.nodes

    def bound(self, rounds: npt.ArrayLike) -> Doubles:
        """Theorem 4's bound on the expected objective after these numbers of rounds with rand-k-temporal."""
        return theory.distance_bound(self._rate, rounds, float(self.optimum @ self.optimum), self.gradient_energy)

    def start(self, seed: int) -> Doubles:
        return np.zeros(self.dim)

    def vectors(self, state: Doubles, round: int) -> Doubles:
        return state - self._minima

    def step(self, state: Doubles, mean: Doubles) -> Doubles:
        return state - self._rate * mean

    def objective(self, state: Doubles) -> float:
        return float(np.sum((state - self.optimum) ** 2))
