"""Sums over the coordinates that equally many nodes sent, per block, additive over coordinate ranges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Ints
from sparsemean.state_tree import Tree, array_in

ROWS = 10


@dataclass(frozen=True)
class ByCount:
    """What the server's own error rests on: given its count M, the senders of a coordinate are any M of the nodes.

    Attributes
    ----------
    counts : (counts,) array
        The counts m that occur, in ascending order.
    sums : (10, counts, blocks) array
        Those of ``kernels.power_sums``, for each.

    >>> one, two = (ByCount(np.array([m]), np.full((10, 1, 1), 5.0)) for m in (3, 0))
    >>> (one + two).counts, (one + two + one).number[:, 0]
    (array([0, 3]), array([ 5., 10.]))
    """

    counts: Ints
    sums: Doubles

    @staticmethod
    def empty(blocks: int) -> ByCount:
        """Of no coordinates."""
        return ByCount(np.zeros(0, np.int64), np.zeros((ROWS, 0, blocks)))

    @property
    def number(self) -> Doubles:
        """How many coordinates there are: (counts, blocks)."""
        number: Doubles = self.sums[0]
        return number

    @property
    def squares(self) -> Doubles:
        """Their Σ S²: (counts, blocks)."""
        squares: Doubles = self.sums[1]
        return squares

    @property
    def held(self) -> Doubles:
        """The sums over coordinates that keep power sums: (8, counts, blocks)."""
        return self.sums[2:]

    @property
    def most(self) -> npt.NDArray[np.int32]:
        """The largest count in each block; 0 in an empty one."""
        most = np.max(np.where(self.number > 0, self.counts[:, None], 0), axis=0, initial=0)
        return np.asarray(most, np.int32)

    def __add__(self, other: ByCount) -> ByCount:
        counts = np.union1d(self.counts, other.counts)
        sums = np.zeros((ROWS, counts.size, self.sums.shape[2]))
        for each in (self, other):
            sums[:, np.searchsorted(counts, each.counts)] += each.sums
        return ByCount(counts, sums)

    def tree(self) -> Tree:
        """All of it as a state tree."""
        return {"counts": self.counts, "sums": self.sums}

    @staticmethod
    def of_tree(tree: Tree) -> ByCount:
        """What ``tree()`` returned."""
        return ByCount(array_in(tree, "counts"), array_in(tree, "sums"))
