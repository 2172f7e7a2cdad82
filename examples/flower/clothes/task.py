"""The task: a small network in NumPy on pictures of clothes (Fashion-MNIST), or of digits where that set is absent."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets

Floats = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Model = dict[str, Floats]
HIDDEN = 100


@lru_cache(maxsize=1)
def images(name: str) -> datasets.Images:
    """The named set; "auto" is Fashion-MNIST if its files are found (``SPARSEMEAN_DATA``), else the digits."""
    if name == "auto":
        try:
            return images("fashion-mnist")
        except InvalidInput:
            name = "digits"
    found = datasets.load(name)
    if not isinstance(found, datasets.Images):
        raise InvalidInput(f"{name} is no set of pictures; use fashion-mnist, cifar-10 or digits")
    return found


def part(data: datasets.Images, node: int, nodes: int) -> tuple[Floats, Labels]:
    """This node's pictures: each label is dealt unevenly, so that nodes differ."""
    rng = np.random.default_rng(5)
    mine = datasets.splits.dirichlet(data.train_y, nodes, 1.0, rng)[node]
    return data.train_x[mine], data.train_y[mine]


def new_model(data: datasets.Images, seed: int = 0) -> Model:
    rng = np.random.default_rng(seed)
    pixels, classes = data.train_x.shape[1], len(data.classes)
    return {
        "hidden.weight": _weights(rng, pixels, HIDDEN),
        "hidden.bias": np.zeros(HIDDEN, np.float32),
        "out.weight": _weights(rng, HIDDEN, classes),
        "out.bias": np.zeros(classes, np.float32),
    }


def _weights(rng: np.random.Generator, rows: int, columns: int) -> Floats:
    return (rng.normal(size=(rows, columns)) * np.sqrt(2 / rows)).astype(np.float32)


def _scores(model: Model, x: Floats) -> tuple[Floats, Floats]:
    hidden = np.maximum(x @ model["hidden.weight"] + model["hidden.bias"], 0)
    return hidden, hidden @ model["out.weight"] + model["out.bias"]


def train(model: Model, x: Floats, y: Labels, rate: float, seed: int) -> tuple[Model, float]:
    """One pass of stochastic gradient descent over the pictures, in batches of 32; the model after it and its loss."""
    model = {name: array.copy() for name, array in model.items()}
    order = np.random.default_rng(seed).permutation(len(y))
    loss = 0.0
    for batch in np.array_split(order, max(1, len(y) // 32)):
        hidden, scores = _scores(model, x[batch])
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances = scores / scores.sum(axis=1, keepdims=True)
        rows = np.arange(len(batch))
        loss -= float(np.log(chances[rows, y[batch]] + 1e-9).sum())
        chances[rows, y[batch]] -= 1
        chances /= len(batch)
        back = (chances @ model["out.weight"].T) * (hidden > 0)
        model["out.weight"] -= rate * (hidden.T @ chances)
        model["out.bias"] -= rate * chances.sum(axis=0)
        model["hidden.weight"] -= rate * (x[batch].T @ back)
        model["hidden.bias"] -= rate * back.sum(axis=0)
    return model, loss / len(y)


def accuracy(model: Model, x: Floats, y: Labels) -> float:
    return float((_scores(model, x)[1].argmax(axis=1) == y).mean())
