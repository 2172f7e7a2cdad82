"""The vectors that schemes are played on, checked, and what follows from them alone."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.inputs import array_of
from sparsemean.lab.compare.correlation import VectorCorrelation, vector_correlation
from sparsemean.lab.tasks import StreamTask
from sparsemean.wire.values import LARGEST

SMALLEST = 1e-100  # squares of what is far smaller vanish


class GivenVectors:
    """Vectors of nodes, refused where errors relative to them cannot be told.

    Parameters
    ----------
    vectors
        Shape (n, d) or (rounds, n, d).
    weights
        One number per node; None weighs all alike.

    Examples
    --------
    >>> given = GivenVectors([[3.0, 1.0], [3.0, -1.0]])
    >>> given.rounds.shape, given.energy, given.zero_error
    ((1, 2, 2), 10.0, 0.9)
    """

    def __init__(self, vectors: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> None:
        rounds = array_of(vectors).astype(np.float64)
        self.rounds: Doubles = rounds[None] if rounds.ndim == 2 else rounds
        self.task = StreamTask(self.rounds, weights)
        if not np.isfinite(self.rounds).all():
            raise InvalidInput("the vectors hold NaN or infinity; remove or replace these values")
        size = float(np.abs(self.rounds).max())
        if size and not SMALLEST <= size <= LARGEST:
            raise InvalidInput(
                f"the largest value of the vectors is {size:.3g}, and squared errors need one from {SMALLEST:g} to "
                f"{LARGEST:g}; rescale them"
            )
        self.weights: Doubles | None = None if weights is None else np.asarray(weights, np.float64)

    @property
    def largest(self) -> Doubles:
        """The vector with the largest entry."""
        vectors = self.rounds.reshape(-1, self.task.dim)
        found: Doubles = vectors[np.abs(vectors).max(axis=1).argmax()]
        return found

    @cached_property
    def correlation(self) -> VectorCorrelation:
        """Between nodes in a round, and of each node with its past."""
        return vector_correlation(self.rounds, self.weights)

    @property
    def warmup(self) -> int:
        """How many rounds come before the steady state, which is the second half of all."""
        return len(self.rounds) // 2

    @cached_property
    def _energies(self) -> Doubles:
        energies: Doubles = np.average(np.sum(self.rounds**2, axis=2), axis=1, weights=self.weights)
        return energies

    @cached_property
    def energy(self) -> float:
        """Σ_t mean_i ‖x_i‖², which relative errors are relative to."""
        return float(np.sum(self._energies))

    @cached_property
    def steady_energy(self) -> float:
        """The same of the rounds in the steady state."""
        return float(np.sum(self._energies[self.warmup :]))

    @cached_property
    def _mean_squares(self) -> Doubles:
        squares: Doubles = np.sum(np.average(self.rounds, axis=1, weights=self.weights) ** 2, axis=1)
        return squares

    @cached_property
    def zero_error(self) -> float:
        """The relative error of answering 0 in every round: an estimate above it is worse than none."""
        return float(np.sum(self._mean_squares)) / self.energy if self.energy else 0.0

    @cached_property
    def steady_zero_error(self) -> float:
        """The same in the steady state."""
        return float(np.sum(self._mean_squares[self.warmup :])) / self.steady_energy if self.steady_energy else 0.0

    def concentration(self, k: int) -> float:
        """Which part of a vector's energy its k largest entries hold, on average over nodes and rounds.

        >>> GivenVectors([[3.0, 1.0], [0.0, 2.0]]).concentration(1)
        0.95
        """
        k = min(k, self.task.dim)
        energies = np.sum(self.rounds**2, axis=2)
        largest = np.sum(np.partition(self.rounds**2, self.task.dim - k, axis=2)[..., self.task.dim - k :], axis=2)
        return float(np.mean(largest[energies > 0] / energies[energies > 0])) if energies.any() else 1.0
