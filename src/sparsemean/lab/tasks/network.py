"""Federated averaging: nodes train a network with one hidden layer by themselves, and send how it changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.errors import InvalidInput
from sparsemean.lab.tasks.base import Task
from sparsemean.lab.tasks.gradient_descent import Model, check_settings
from sparsemean.lab.tasks.logistic import labelled, softmax


class FederatedNetwork(Task[Model]):
    """Node i trains softmax(W₂ max(W₁x + b₁, 0) + b₂) on its rows and sends the change; the server adds the mean of it.

    Nodes count by their numbers of rows. The parameters are [W₁ b₁] and then [W₂ b₂], row by row, at first normal with
    variance 2/(inputs of the layer), b₁ and b₂ 0. The objective is the mean loss over the training rows.

    Parameters
    ----------
    parts, labels
        One array of rows and one of labels 0, 1, 2, … for each node.
    test
        Rows and labels on which ``metrics`` gives the accuracy.
    hidden
        Width of the hidden layer.
    rate
        Learning rate of the nodes.
    batch
        Rows of a mini-batch; None for all.
    epochs
        How often a node goes through its rows in a round, in an order drawn anew each time.

    Examples
    --------
    >>> task = FederatedNetwork([[[-1.0], [1.0]], [[-2.0], [3.0]]], [[0, 1], [0, 1]], hidden=4, rate=0.5)
    >>> task.dim
    18
    >>> first = state = task.start(seed=0)
    >>> for round in range(20):
    ...     state = task.step(state, task.vectors(state, round).mean(axis=0))
    >>> task.objective(state) < 0.1 * task.objective(first)
    True
    """

    def __init__(
        self,
        parts: Sequence[npt.ArrayLike] | npt.NDArray[np.generic],
        labels: Sequence[npt.ArrayLike] | npt.NDArray[np.generic],
        test: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        hidden: int = 300,
        rate: float = 0.1,
        batch: int | None = 32,
        epochs: int = 1,
    ) -> None:
        check_settings(rate, batch)
        if hidden < 1 or epochs < 1:
            raise InvalidInput(f"hidden and epochs are numbers from 1 on, got {hidden!r} and {epochs!r}")
        self._rate, self._batch, self._epochs, self._hidden = rate, batch, epochs, hidden
        self._data, self._labels = labelled(parts, labels)
        self._classes = int(self._labels.max()) + 1
        self._test = None if test is None else labelled([test[0]], [test[1]])
        super().__init__(self._data.nodes, hidden * (self._data.dim + 1) + self._classes * (hidden + 1))

    def start(self, seed: int) -> Model:
        rng = np.random.default_rng(seed)
        layers = self._layers(np.zeros(self.dim))
        for layer in layers:
            layer[:, :-1] = rng.normal(scale=np.sqrt(2.0 / (layer.shape[1] - 1)), size=layer[:, :-1].shape)
        return Model(np.concatenate([layer.ravel() for layer in layers]), seed)

    def vectors(self, state: Model, round: int) -> Floats:
        changes = np.empty((self.nodes, self.dim), self._data.rows.dtype)
        for node, change in enumerate(changes):
            trained = state.parameters.astype(changes.dtype)
            for rows, labels in self._batches(node, state.seed, round):
                self._descend(trained, rows, labels)
            change[:] = trained - state.parameters
        return changes

    def weights(self, state: Model) -> Doubles | None:
        return self._data.weights

    def step(self, state: Model, mean: Doubles) -> Model:
        return state.moved(mean)

    def objective(self, state: Model) -> float:
        _, chances = self._forward(self._layers(state.parameters), self._data.rows)
        own = chances[np.arange(len(chances)), self._labels].astype(np.float64)
        return float(-np.mean(np.log(np.maximum(own, 1e-300))))

    def metrics(self, state: Model) -> dict[str, float]:
        if self._test is None:
            return {}
        data, labels = self._test
        _, chances = self._forward(self._layers(state.parameters), data.rows)
        return {"test_accuracy": float(np.mean(chances.argmax(axis=1) == labels))}

    def _layers(self, parameters: Floats) -> tuple[Floats, Floats]:
        """[W₁ b₁] and [W₂ b₂], as views."""
        first = self._hidden * (self._data.dim + 1)
        return parameters[:first].reshape(self._hidden, -1), parameters[first:].reshape(self._classes, -1)

    def _forward(self, layers: tuple[Floats, Floats], rows: Floats) -> tuple[Floats, Floats]:
        """Of each row the hidden layer, and the probabilities of the classes."""
        inner, outer = (layer.astype(rows.dtype) for layer in layers)
        hidden: Floats = np.maximum(rows @ inner[:, :-1].T + inner[:, -1], 0)
        return hidden, softmax(hidden @ outer[:, :-1].T + outer[:, -1])

    def _batches(self, node: int, seed: int, round: int) -> Iterator[tuple[Floats, Ints]]:
        """The mini-batches of a node in a round, each row once an epoch, drawn from (seed, round, node)."""
        own, rng = self._data.slices[node], np.random.default_rng((seed, round, node))
        for _ in range(self._epochs):
            order = own.start + rng.permutation(own.stop - own.start)
            size = self._batch or len(order)
            for begin in range(0, len(order), size):
                chosen = order[begin : begin + size]
                yield self._data.rows[chosen], self._labels[chosen]

    def _descend(self, parameters: Floats, rows: Floats, labels: Ints) -> None:
        """One step of gradient descent, in place."""
        inner, outer = self._layers(parameters)
        hidden, excess = self._forward((inner, outer), rows)
        excess[np.arange(len(labels)), labels] -= 1
        excess *= self._rate / len(labels)
        back = (excess @ outer[:, :-1]) * (hidden > 0)
        outer[:, :-1] -= excess.T @ hidden
        outer[:, -1] -= excess.sum(axis=0)
        inner[:, :-1] -= back.T @ rows
        inner[:, -1] -= back.sum(axis=0)
