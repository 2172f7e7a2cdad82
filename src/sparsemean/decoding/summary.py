"""Per-block sufficient statistics of a round, additive over coordinate ranges."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.decoding.totals import RoundTotals
from sparsemean.state_tree import Tree, array_in
from sparsemean.theory import Moments


@dataclass(frozen=True)
class Summary:
    """All that correlations, errors and fits rest on; the sum of two is the summary of both ranges, of the same nodes.

    Attributes
    ----------
    class_nodes : (classes, blocks) array
        How many nodes of each share have a weight; the same in all ranges.
    weight : (blocks,) array
        Their total weight; the same in all ranges.
    class_squares, class_noise : (classes, blocks) array
        Σ y² and the variance that few-bit values add, as in ``RoundTotals``.
    products : (classes, classes, blocks) array
        Σ_j S_sj S_tj of the sums of two classes; empty where there is one class.
    most : (blocks,) array
        The largest count of a coordinate.
    fits : array
        The sums that the memory fits its coefficients to.
    moments : Moments, optional
        Power sums for the error and its standard error; None where shares are not uniform.
    """

    class_nodes: npt.NDArray[np.int64]
    weight: Doubles
    class_squares: Doubles
    class_noise: Doubles
    products: Doubles
    most: npt.NDArray[np.int32]
    fits: Doubles
    moments: Moments | None

    @staticmethod
    def of(totals: RoundTotals, fits: Doubles, adapts: bool) -> Summary:
        """The summary of a range; what no decoder asks for is left out."""
        classes, blocks = totals.class_nodes.shape
        several = totals.products() if classes > 1 else np.zeros((0, 0, blocks))
        most = totals.blocks.largest(totals.counts) if adapts else np.zeros(blocks, np.int32)
        sums = totals.class_nodes, totals.weight, totals.class_squares, totals.class_noise
        return Summary(*sums, several, most, fits, totals.summary())

    @cached_property
    def nodes(self) -> npt.NDArray[np.int64]:
        """How many nodes have a weight, per block."""
        nodes: npt.NDArray[np.int64] = self.class_nodes.sum(axis=0)
        return nodes

    def __add__(self, other: Summary) -> Summary:
        if not (np.array_equal(self.class_nodes, other.class_nodes) and np.array_equal(self.weight, other.weight)):
            raise ValueError("summaries of different nodes cannot be added")
        return Summary(
            self.class_nodes,
            self.weight,
            self.class_squares + other.class_squares,
            self.class_noise + other.class_noise,
            self.products + other.products,
            np.maximum(self.most, other.most),
            self.fits + other.fits,
            self.moments + other.moments if self.moments is not None and other.moments is not None else None,
        )

    def tree(self) -> Tree:
        """All of it as a state tree."""
        moments = None if self.moments is None else np.array(list(vars(self.moments).values()))
        return {**vars(self), "moments": moments}

    @staticmethod
    def of_tree(tree: Tree) -> Summary:
        """The summary that ``tree()`` returned."""
        found = {each.name: array_in(tree, each.name) for each in fields(Summary) if each.name != "moments"}
        moments = tree["moments"] if isinstance(tree, dict) else None
        return Summary(**found, moments=Moments(*moments) if isinstance(moments, np.ndarray) else None)
