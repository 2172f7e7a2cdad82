"""Linear regression by full or stochastic gradients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats
from sparsemean.lab.tasks.base import Task
from sparsemean.lab.tasks.descent import Model, batches, check_settings
from sparsemean.lab.tasks.node_rows import NodeRows


class LinearRegression(Task[Model]):
    """Node i sends the gradient of ½(⟨w, x⟩ + b − target)², averaged over its rows; server: −rate · mean.

    With ``batch`` it is over that many of its rows, drawn anew each round. The parameters are w and then b, 0 at
    first; the objective is the mean of that loss over all rows. ``test`` is (rows, targets); with it ``metrics``
    gives the root mean squared error there.

    >>> task = LinearRegression([[[0.0], [1.0]], [[2.0], [3.0]]], [[1.0, 3.0], [5.0, 7.0]], rate=0.3)
    >>> model = task.start(seed=0)
    >>> for round in range(200):
    ...     model = task.step(model, task.vectors(model, round).mean(axis=0))
    >>> model.parameters.round(3)
    array([2., 1.])
    """

    def __init__(
        self,
        parts: Sequence[npt.ArrayLike] | npt.NDArray[np.generic],
        targets: Sequence[npt.ArrayLike] | npt.NDArray[np.generic],
        test: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        rate: float = 0.01,
        batch: int | None = None,
    ) -> None:
        check_settings(rate, batch)
        self._rate, self._batch = rate, batch
        self._data = NodeRows.of(parts)
        self._targets: Floats = self._data.targets(targets).astype(self._data.rows.dtype)
        self._test: tuple[Floats, Floats] | None = None
        if test is not None:
            data = NodeRows.of([test[0]])
            self._test = (data.rows, data.targets([test[1]]).astype(data.rows.dtype))

    @property
    def nodes(self) -> int:
        return self._data.nodes

    @property
    def dim(self) -> int:
        return self._data.dim + 1

    @property
    def blocks(self) -> None:
        return None

    def start(self, seed: int) -> Model:
        return Model(np.zeros(self.dim), seed)

    def vectors(self, state: Model, round: int) -> Floats:
        gradients = np.empty((self.nodes, self.dim), self._data.rows.dtype)
        for gradient, chosen in zip(gradients, batches(self._data, self._batch, state.seed, round), strict=True):
            rows = self._data.rows[chosen]
            residuals = _residuals(rows, self._targets[chosen], state)
            gradient[:-1] = residuals @ rows / len(rows)
            gradient[-1] = residuals.mean()
        return gradients

    def weights(self, state: Model) -> Doubles | None:
        return self._data.weights

    def step(self, state: Model, mean: Doubles) -> Model:
        return state.moved(-self._rate * mean)

    def objective(self, state: Model) -> float:
        return _mean_square(_residuals(self._data.rows, self._targets, state)) / 2

    def metrics(self, state: Model) -> dict[str, float]:
        return {} if self._test is None else {"test_rmse": _mean_square(_residuals(*self._test, state)) ** 0.5}


def _residuals(rows: Floats, targets: Floats, model: Model) -> Floats:
    used = model.parameters.astype(rows.dtype)
    values: Floats = rows @ used[:-1] + used[-1] - targets
    return values


def _mean_square(values: Floats) -> float:
    return float(np.mean(np.square(values, dtype=np.float64)))
