"""Logistic regression: a linear classifier with softmax, by stochastic gradients (Section 5, Appendix C)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.errors import InvalidInput
from sparsemean.lab.tasks.base import Task
from sparsemean.lab.tasks.gradient_descent import Model, batches, check_settings
from sparsemean.lab.tasks.node_rows import NodeRows


class LogisticRegression(Task[Model]):
    """Node i sends the gradient of −log softmax(Wx + b)[label], averaged over a mini-batch; server: −rate · mean.

    The model is [W b], shape (classes, dim + 1), row by row, 0 at first; the objective is the mean loss over the
    training rows.

    Parameters
    ----------
    parts, labels
        One array of rows and one of labels 0, 1, 2, … for each node.
    test
        Rows and labels on which ``metrics`` gives the accuracy.
    rate
        Learning rate; the default is the paper's.
    batch
        Rows of a node's mini-batch, drawn anew each round; None for all. The default is the paper's.
    loss_rows
        Take the objective over that many training rows, evenly spaced, where all would be slow.

    Examples
    --------
    >>> task = LogisticRegression([[[-1.0], [1.0]], [[-2.0], [3.0]]], [[0, 1], [0, 1]], rate=1.0)
    >>> model = task.start(seed=0)
    >>> print(f"{task.objective(model):.4f}")
    0.6931
    >>> print(f"{task.objective(task.step(model, task.vectors(model, 0).mean(axis=0))):.4f}")
    0.0889
    """

    def __init__(
        self,
        parts: Sequence[npt.ArrayLike] | npt.NDArray[np.generic],
        labels: Sequence[npt.ArrayLike] | npt.NDArray[np.generic],
        test: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        rate: float = 0.01,
        batch: int | None = 512,
        loss_rows: int | None = None,
    ) -> None:
        check_settings(rate, batch)
        self._rate, self._batch = rate, batch
        self._data, self._labels = labelled(parts, labels)
        self._classes = int(self._labels.max()) + 1
        super().__init__(self._data.nodes, self._classes * (self._data.dim + 1))
        self._seen = (self._data.rows, self._labels)
        if loss_rows is not None and loss_rows < len(self._labels):
            chosen = np.arange(loss_rows) * len(self._labels) // loss_rows
            self._seen = (self._data.rows[chosen], self._labels[chosen])
        self._test = None if test is None else labelled([test[0]], [test[1]])

    def start(self, seed: int) -> Model:
        return Model(np.zeros(self.dim), seed)

    def _logits(self, rows: Floats, model: Model) -> Floats:
        by_class = model.parameters.reshape(self._classes, -1).astype(rows.dtype)
        return rows @ by_class[:, :-1].T + by_class[:, -1]

    def vectors(self, state: Model, round: int) -> Floats:
        gradients = np.empty((self.nodes, self._classes, self._data.dim + 1), self._data.rows.dtype)
        for gradient, chosen in zip(gradients, batches(self._data, self._batch, state.seed, round), strict=True):
            rows, labels = self._data.rows[chosen], self._labels[chosen]
            excess = softmax(self._logits(rows, state))
            excess[np.arange(len(labels)), labels] -= 1
            gradient[:, :-1] = excess.T @ rows / len(rows)
            gradient[:, -1] = excess.mean(axis=0)
        return gradients.reshape(self.nodes, self.dim)

    def weights(self, state: Model) -> Doubles | None:
        return self._data.weights

    def step(self, state: Model, mean: Doubles) -> Model:
        return state.moved(-self._rate * mean)

    def objective(self, state: Model) -> float:
        rows, labels = self._seen
        logits = self._logits(rows, state)
        logits -= logits.max(axis=1, keepdims=True)
        own = np.take_along_axis(logits, labels[:, None], axis=1)[:, 0]
        return float(np.mean(np.log(np.exp(logits).sum(axis=1)) - own, dtype=np.float64))

    def metrics(self, state: Model) -> dict[str, float]:
        if self._test is None:
            return {}
        data, labels = self._test
        return {"test_accuracy": float(np.mean(self._logits(data.rows, state).argmax(axis=1) == labels))}


def softmax(logits: Floats) -> Floats:
    """Of each row the probabilities of the classes."""
    powers: Floats = np.exp(logits - logits.max(axis=1, keepdims=True))
    powers /= powers.sum(axis=1, keepdims=True)
    return powers


def labelled(
    parts: Sequence[npt.ArrayLike] | npt.NDArray[np.generic], labels: Sequence[npt.ArrayLike] | npt.NDArray[np.generic]
) -> tuple[NodeRows, Ints]:
    """The rows of all nodes, and their labels, refused where they are no classes."""
    data = NodeRows.of(parts)
    given = data.targets(labels)
    if given.dtype.kind not in "iu" or given.min() < 0:
        raise InvalidInput("labels are whole numbers from 0 on; number the classes 0, 1, 2, …")
    return data, given.astype(np.int64)
