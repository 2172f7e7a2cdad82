"""The data of a sensor network, or of a user's file: one vector per round and node."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats
from sparsemean.lab.datasets.content import counted


@dataclass(frozen=True, eq=False)
class Stream:
    """Vectors by round and node, nothing missing."""

    name: str
    vectors: Floats
    """(rounds, nodes, coordinates): float32 in the named sets, float64 in a file of one's own."""
    nodes: tuple[str, ...]
    """Node names, one per entry of the second axis."""
    attribution: str = ""
    """Show this wherever the data, or a figure made from it, is published."""
    note: str = ""
    """What was guessed about the file and could be meant otherwise, for people; empty where nothing was."""
    origin: str = ""
    """Where in the file the numbers stand; empty for a named set."""

    @property
    def understood(self) -> str:
        """What was understood of the data, for people.

        >>> Stream("mine", np.zeros((12, 30, 64)), (), origin="columns x0 … x63").understood
        '12 rounds × 30 nodes × 64 coordinates, from columns x0 … x63'
        """
        told = zip(self.vectors.shape, ("round", "node", "coordinate"), strict=True)
        shape = " × ".join(counted(size, thing) for size, thing in told)
        return shape + (f", from {self.origin}" if self.origin else "")


def standardised(values: Doubles, axis: int) -> npt.NDArray[np.float32]:
    """The values with mean 0 and variance 1 for each quantity, the quantities being counted along ``axis``.

    >>> standardised(np.array([[1.0, 10.0], [3.0, 30.0]]), axis=1)
    array([[-1., -1.],
           [ 1.,  1.]], dtype=float32)
    """
    others = tuple(i for i in range(values.ndim) if i != axis % values.ndim)
    centred = values - values.mean(axis=others, keepdims=True)
    scaled: Doubles = centred / centred.std(axis=others, keepdims=True)
    return scaled.astype(np.float32)
