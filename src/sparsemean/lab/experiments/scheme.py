"""The scheme of a setting: its name, its values, and a k by share or by bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemean.client import Client
from sparsemean.errors import InvalidInput
from sparsemean.lab.experiments.setting import EXACT, Setting
from sparsemean.lab.tasks import Task
from sparsemean.payload import Floats
from sparsemean.run import Run
from sparsemean.schemes import Scheme, named
from sparsemean.size import count

PROBES = 10  # nodes whose payloads are weighed where sizes depend on the vector


def scheme_of(setting: Setting, task: Task[Any]) -> tuple[Scheme | None, int | None]:
    """The scheme and its k; None for the exact mean.

    With the option ``budget="bytes"`` k is the largest for which a payload, header included, is on average no longer
    than rand-k's with float32 values at the setting's share, measured on the vectors of the first round.
    """
    if setting.scheme == EXACT:
        return None, None
    if setting.share is None:
        raise InvalidInput(f"{setting.scheme} needs a share of the coordinates to send")
    name, _, kind = setting.scheme.partition(" ")
    values = kind or str(setting.option("values", "float32"))
    k = count(setting.share, task.dim)
    if setting.option("budget", "") == "bytes":
        vectors = np.asarray(task.vectors(task.start(setting.seed), 0))
        limit = Run(named("rand-k", k), task.dim).payload_bytes
        k = most_within(lambda k: named(name, k, values=values), limit, vectors)
    return named(name, k, values=values), k


def most_within(with_k: Callable[[int], Scheme], limit: float, vectors: Floats) -> int:
    """The largest k whose payloads are on average no longer than ``limit`` bytes, by bisection.

    >>> most_within(lambda k: named("rand-k", k), 64 + 4 * 7, np.ones((3, 20)))
    7
    """
    dim = vectors.shape[1]
    low, high = 2, dim  # induced sends at least one coordinate of each kind
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _bytes(Run(with_k(middle), dim), vectors) <= limit else (low, middle - 1)
    return low


def _bytes(run: Run, vectors: Floats) -> float:
    if run.payload_fixed:
        return float(run.payload_bytes)
    chosen = vectors[:: max(1, len(vectors) // PROBES)]
    return float(np.mean([len(Client(run, str(i)).encode(vector, 0)) for i, vector in enumerate(chosen)]))
