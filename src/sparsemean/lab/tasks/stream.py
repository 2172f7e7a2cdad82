"""Stream: the mean of vectors that are what they are, whatever was estimated before (sensor fusion)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats
from sparsemean.errors import InvalidInput
from sparsemean.lab.tasks.base import Task


@dataclass(frozen=True, eq=False)
class Heard:
    """How many rounds are over, and the estimate of the last one."""

    rounds: int
    estimate: Doubles


class Stream(Task[Heard]):
    """Node i's vector of round t is ``vectors[t, i]``; the objective is the squared error of the last estimate.

    Before the first round the estimate is 0, and judged by the first round's mean. ``weights`` has one entry per node.

    >>> task = Stream([[[1.0], [3.0]], [[5.0], [5.0]]])
    >>> heard = task.step(task.start(seed=0), np.array([2.5]))
    >>> task.objective(heard), task.vectors(heard, 1).tolist()
    (0.25, [[5.0], [5.0]])
    """

    def __init__(self, vectors: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> None:
        given = np.asarray(vectors)
        self._vectors: Floats = given if given.dtype in (np.float32, np.float64) else given.astype(np.float64)
        if self._vectors.ndim != 3 or self._vectors.size == 0:
            raise InvalidInput(f"vectors have shape (rounds, nodes, dim), none of them 0; got {given.shape}")
        self._weights = None if weights is None else np.array(weights, np.float64)
        if self._weights is not None and (
            self._weights.shape != (self.nodes,) or self._weights.min() < 0 or not self._weights.sum() > 0
        ):
            raise InvalidInput(f"weights are one number ≥ 0 for each of the {self.nodes} nodes, not all 0")

    @property
    def nodes(self) -> int:
        return int(self._vectors.shape[1])

    @property
    def dim(self) -> int:
        return int(self._vectors.shape[2])

    @property
    def blocks(self) -> None:
        return None

    @property
    def largest(self) -> float:
        """The vectors are what they are, however large; only their squares have to be numbers still."""
        return 1e150

    def start(self, seed: int) -> Heard:
        return Heard(0, np.zeros(self.dim))

    def vectors(self, state: Heard, round: int) -> Floats:
        if round >= len(self._vectors):
            raise InvalidInput(f"the stream ends after {len(self._vectors)} rounds; play no more than that")
        now: Floats = self._vectors[round]
        return now

    def weights(self, state: Heard) -> Doubles | None:
        return self._weights

    def step(self, state: Heard, mean: Doubles) -> Heard:
        return Heard(state.rounds + 1, mean)

    def objective(self, state: Heard) -> float:
        truth = np.average(self._vectors[max(state.rounds - 1, 0)].astype(np.float64), axis=0, weights=self._weights)
        return float(np.sum((state.estimate - truth) ** 2))

    def metrics(self, state: Heard) -> dict[str, float]:
        return {}
