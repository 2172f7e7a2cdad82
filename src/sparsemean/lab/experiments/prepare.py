"""The task and the scheme of a setting; the latest task is kept, because consecutive settings share it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np

from sparsemean._types import Ints
from sparsemean.encoders.size import count
from sparsemean.errors import InvalidInput
from sparsemean.lab import datasets
from sparsemean.lab.datasets import Images, splits
from sparsemean.lab.experiments.setting import EXACT, Setting
from sparsemean.lab.tasks import (
    FederatedNetwork,
    KMeans,
    LogisticRegression,
    PowerIteration,
    Quadratic,
    StreamTask,
    Task,
    abrupt_change,
    new_vectors,
)
from sparsemean.schemes import Scheme, named, scheme_name
from sparsemean.wire.values import value_name

ORACLE = "rand-k-spatial-opt"

Value = TypeVar("Value")


class Latest(Generic[Value]):
    """A cache of one value. The old one is released before the new one is made, since two may not fit into memory.

    >>> latest = Latest()
    >>> latest.get("a", lambda: [1]) is latest.get("a", lambda: [2])
    True
    """

    def __init__(self) -> None:
        self._kept: tuple[Hashable, Value] | None = None

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The kept value if it was made for this key; else a new one."""
        if self._kept is None or self._kept[0] != key:
            self._kept = None
            self._kept = (key, make())
        return self._kept[1]


_data: Latest[datasets.Images | datasets.Stream] = Latest()
_tasks: Latest[Task[Any]] = Latest()


def task_of(setting: Setting, data_dir: str | None = None) -> Task[Any]:
    """The task of the setting with its nodes' data; the seed decides which node gets which rows."""
    make = _MAKERS.get(setting.task)
    if make is None:
        raise InvalidInput(f"no task is named {setting.task!r}; known are {', '.join(_MAKERS)}")
    options = tuple(option for option in setting.options if option[0] in _TASK_OPTIONS)
    key = (setting.task, setting.data, setting.split, setting.nodes, setting.seed, options, data_dir)
    return _tasks.get(key, lambda: make(setting, data_dir))


def k_of(setting: Setting, dim: int) -> int | None:
    """How many coordinates a node sends; None for the exact mean."""
    if setting.scheme == EXACT:
        return None
    if setting.share is None:
        raise InvalidInput(f"{setting.scheme} needs a share of the coordinates to send")
    return count(setting.share, dim)


def scheme_of(setting: Setting, k: int | tuple[int, ...], ratio: float = 0.0) -> Scheme:
    """The scheme of the setting with this k, or with several among which nodes choose; Opt is told the ``ratio``.

    >>> scheme_of(Setting("mine", "stream", "weather", "rand-k", 0.1), 8) == named("rand-k", 8)
    True
    """
    name, _, kind = setting.scheme.partition(" ")
    told = {"ratio": ratio} if name == ORACLE else {}
    return named(scheme_name(name), k, values=value_name(kind or str(setting.option("values", "float32"))), **told)


_TASK_OPTIONS = ("alpha", "batch", "change", "clusters", "correlation", "dim", "epochs", "hidden", "loss_rows", "rate")


def _quadratic(setting: Setting, data_dir: str | None) -> Task[Any]:
    dim, rate = int(setting.option("dim", 1000)), float(setting.option("rate", 0.05))
    return Quadratic.normal(setting.nodes, dim, rate, setting.seed)


def _stream(setting: Setting, data_dir: str | None) -> Task[Any]:
    data = _loaded(setting.data, data_dir)
    if not isinstance(data, datasets.Stream):
        raise InvalidInput(f"{setting.data} has no rounds of its own; take a stream, such as weather")
    return StreamTask(data.vectors)


def _change(setting: Setting, data_dir: str | None) -> Task[Any]:
    dim, change = int(setting.option("dim", 1000)), int(setting.option("change", setting.rounds // 2))
    correlation, rng = float(setting.option("correlation", 0.0)), np.random.default_rng(setting.seed)
    return StreamTask(abrupt_change(setting.nodes, dim, setting.rounds, change, correlation, rng))


def _new(setting: Setting, data_dir: str | None) -> Task[Any]:
    dim, correlation = int(setting.option("dim", 1000)), float(setting.option("correlation", 0.0))
    vectors = new_vectors(setting.nodes, dim, setting.rounds, correlation, np.random.default_rng(setting.seed))
    return StreamTask(vectors.astype(np.float32))


def _power_iteration(setting: Setting, data_dir: str | None) -> Task[Any]:
    images = _images(setting, data_dir)
    return PowerIteration([images.train_x[part] for part in _split(setting, images)])


def _kmeans(setting: Setting, data_dir: str | None) -> Task[Any]:
    images = _images(setting, data_dir)
    parts = [images.train_x[part] for part in _split(setting, images)]
    return KMeans(parts, int(setting.option("clusters", 10)))


def _logistic(setting: Setting, data_dir: str | None) -> Task[Any]:
    images = _images(setting, data_dir)
    split, loss_rows = _split(setting, images), int(setting.option("loss_rows", 0))
    return LogisticRegression(
        [images.train_x[part] for part in split],
        [images.train_y[part] for part in split],
        (images.test_x, images.test_y),
        rate=float(setting.option("rate", 0.01)),
        batch=int(setting.option("batch", 512)),
        loss_rows=loss_rows or None,
    )


def _network(setting: Setting, data_dir: str | None) -> Task[Any]:
    images = _images(setting, data_dir)
    split = _split(setting, images)
    return FederatedNetwork(
        [images.train_x[part] for part in split],
        [images.train_y[part] for part in split],
        (images.test_x, images.test_y),
        hidden=int(setting.option("hidden", 300)),
        rate=float(setting.option("rate", 0.1)),
        batch=int(setting.option("batch", 32)),
        epochs=int(setting.option("epochs", 1)),
    )


_MAKERS: dict[str, Callable[[Setting, str | None], Task[Any]]] = {
    "quadratic": _quadratic,
    "stream": _stream,
    "abrupt-change": _change,
    "new-vectors": _new,
    "power-iteration": _power_iteration,
    "kmeans": _kmeans,
    "logistic": _logistic,
    "network": _network,
}


def _loaded(name: str, data_dir: str | None) -> datasets.Images | datasets.Stream:
    return _data.get((name, data_dir), lambda: datasets.load(name, data_dir))


def _images(setting: Setting, data_dir: str | None) -> Images:
    data = _loaded(setting.data, data_dir)
    if not isinstance(data, Images):
        raise InvalidInput(f"{setting.data} holds no images; take fashion-mnist, cifar-10 or digits")
    return data


def _split(setting: Setting, images: Images) -> list[Ints]:
    """Appendix C: at random, or two shards of the images sorted by label. Besides, labels by Dirichlet's law."""
    rng = np.random.default_rng(setting.seed)
    if setting.split == "iid":
        return splits.iid(len(images.train_x), setting.nodes, rng)
    if setting.split == "non-iid":
        return splits.shards(images.train_y, setting.nodes, rng, shards_per_node=2)
    if setting.split == "dirichlet":
        return splits.dirichlet(images.train_y, setting.nodes, float(setting.option("alpha", 0.5)), rng)
    raise InvalidInput(f"a split is iid, non-iid or dirichlet, got {setting.split!r}")
