"""Gradient descent on rows that are distributed over nodes: the model, its step, and the mini-batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sparsemean._types import Doubles, Ints
from sparsemean.errors import InvalidInput
from sparsemean.lab.tasks.node_rows import NodeRows


@dataclass(frozen=True, eq=False)
class Model:
    """The parameters as one vector, and the seed from which mini-batches are drawn."""

    parameters: Doubles
    seed: int

    def moved(self, change: Doubles) -> Model:
        """The model after a step."""
        return Model(self.parameters + change, self.seed)


def batches(data: NodeRows, size: int | None, seed: int, round: int) -> Iterator[Ints | slice]:
    """For each node the rows of its mini-batch, distinct and drawn from (seed, round, node); all where it has no more.

    >>> list(batches(NodeRows.of(np.ones((2, 3, 1))), None, seed=0, round=0))
    [slice(0, 3, None), slice(3, 6, None)]
    """
    for node, own in enumerate(data.slices):
        held = own.stop - own.start
        if size is None or held <= size:
            yield own
        else:
            yield own.start + np.random.default_rng((seed, round, node)).choice(held, size, replace=False)


def check_settings(rate: float, batch: int | None) -> None:
    """Refuse a learning rate that is not positive, and an empty batch."""
    if not 0 < rate < np.inf:
        raise InvalidInput(f"rate is a positive number, got {rate!r}")
    if batch is not None and batch < 1:
        raise InvalidInput(f"batch is a number of rows, at least 1, or None for all; got {batch!r}")
