"""The k with which a scheme sends a wanted number of bytes, where lengths depend on the vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemean._types import Floats
from sparsemean.client import Client
from sparsemean.evaluation import truth
from sparsemean.lab.tasks import Task
from sparsemean.payload.blocks import Blocks
from sparsemean.run import Run
from sparsemean.schemes import Scheme

QUARTERS = 4  # of a run, at whose beginnings vectors are looked at
PROBES = 40  # vectors whose payloads are weighed


def most_within(with_k: Callable[[int], Scheme], wanted: float, vectors: Floats) -> int:
    """The largest k whose payloads are on average no longer than ``wanted`` bytes, by bisection.

    >>> from sparsemean.schemes import named
    >>> most_within(lambda k: named("rand-k", k), 64 + 4 * 7, np.ones((3, 20)))
    7
    """
    dim = vectors.shape[1]
    low, high = 2, dim  # induced sends at least one coordinate of each kind
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _length(Run(with_k(middle), dim), vectors) <= wanted else (low, middle - 1)
    return low


def typical_vectors(task: Task[Any], seed: int, rounds: int) -> Floats:
    """The nodes' vectors from all over a run with exact means: those of its first round are often unlike the others."""
    state, blocks, chosen = task.start(seed), Blocks(task.blocks or (task.dim,)), []
    looked_at = {quarter * rounds // QUARTERS for quarter in range(QUARTERS)}
    for round in range(max(looked_at) + 1):
        vectors = task.vectors(state, round)
        chosen += [vectors] if round in looked_at else []
        state = task.step(state, truth(vectors, task.weights(state), blocks).mean)
    return np.concatenate(chosen)


def _length(run: Run, vectors: Floats) -> float:
    if run.payload_fixed:
        return float(run.payload_bytes)
    chosen = vectors[:: max(1, len(vectors) // PROBES)]
    return float(np.mean([len(Client(run, str(i)).encode(vector, 0)) for i, vector in enumerate(chosen)]))
