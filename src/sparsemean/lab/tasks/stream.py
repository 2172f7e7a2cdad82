"""The mean of given vectors, which do not depend on earlier estimates (sensor fusion)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats
from sparsemean.errors import InvalidInput
from sparsemean.lab.tasks.base import Task


@dataclass(frozen=True, eq=False)
class StreamState:
    """The number of finished rounds, and the estimate of the last one."""

    rounds: int
    estimate: Doubles


def abrupt_change(
    nodes: int, dim: int, rounds: int, change: int, correlation: float, rng: np.random.Generator
) -> Doubles:
    """Gaussian vectors that stay as they are, and are all replaced by others in round ``change``: a stream.

    Every two of a round have this ``correlation``, (R2/R1)/(n − 1) on average.

    >>> abrupt_change(4, 3, 5, 2, 1.0, np.random.default_rng(0)).shape
    (5, 4, 3)
    """
    before, after = (
        math.sqrt(correlation) * rng.normal(size=dim) + math.sqrt(1.0 - correlation) * rng.normal(size=(nodes, dim))
        for _ in range(2)
    )
    stream: Doubles = np.stack([before] * change + [after] * (rounds - change))
    return stream


def new_vectors(nodes: int, dim: int, rounds: int, correlation: float, rng: np.random.Generator) -> Doubles:
    """Gaussian vectors, new in every round, of which every two have this ``correlation``, (R2/R1)/(n − 1) on average.

    >>> new_vectors(4, 3, 5, 1.0, np.random.default_rng(0)).shape
    (5, 4, 3)
    """
    common, own = rng.normal(size=(rounds, 1, dim)), rng.normal(size=(rounds, nodes, dim))
    vectors: Doubles = math.sqrt(correlation) * common + math.sqrt(1.0 - correlation) * own
    return vectors


class StreamTask(Task[StreamState]):
    """Node i's vector of round t is ``vectors[t, i]``; the objective is the squared error of the last estimate.

    Before the first round the estimate is 0, and judged by the first round's mean. ``weights`` has one entry per node.

    >>> task = StreamTask([[[1.0], [3.0]], [[5.0], [5.0]]])
    >>> state = task.step(task.start(seed=0), np.array([2.5]))
    >>> task.objective(state), task.vectors(state, 1).tolist()
    (0.25, [[5.0], [5.0]])
    """

    largest = 1e150  # vectors are taken as they are; only their squares have to be finite

    def __init__(self, vectors: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> None:
        given = np.asarray(vectors)
        self._vectors: Floats = given if given.dtype in (np.float32, np.float64) else given.astype(np.float64)
        if self._vectors.ndim != 3 or self._vectors.size == 0:
            raise InvalidInput(f"vectors have shape (rounds, nodes, dim), none of them 0; got {given.shape}")
        super().__init__(*self._vectors.shape[1:])
        self._weights = None if weights is None else np.array(weights, np.float64)
        if self._weights is not None and (
            self._weights.shape != (self.nodes,) or self._weights.min() < 0 or not self._weights.sum() > 0
        ):
            raise InvalidInput(f"weights are one number ≥ 0 for each of the {self.nodes} nodes, not all 0")

    def start(self, seed: int) -> StreamState:
        return StreamState(0, np.zeros(self.dim))

    def vectors(self, state: StreamState, round: int) -> Floats:
        if round >= len(self._vectors):
            raise InvalidInput(f"the stream ends after {len(self._vectors)} rounds; play no more than that")
        now: Floats = self._vectors[round]
        return now

    def weights(self, state: StreamState) -> Doubles | None:
        return self._weights

    def step(self, state: StreamState, mean: Doubles) -> StreamState:
        return StreamState(state.rounds + 1, mean)

    def objective(self, state: StreamState) -> float:
        truth = np.average(self._vectors[max(state.rounds - 1, 0)].astype(np.float64), axis=0, weights=self._weights)
        return float(np.sum((state.estimate - truth) ** 2))
