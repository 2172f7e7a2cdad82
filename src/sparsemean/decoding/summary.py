"""Per-block sufficient statistics of a round, additive over coordinate ranges."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.decoding.by_count import ByCount
from sparsemean.decoding.senders import SenderSums
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
    class_slots : (classes,) array
        How many slots the draw of each class has, 0 where nodes draw independently; the same in all ranges.
    weight : (blocks,) array
        Their total weight; the same in all ranges.
    class_squares, class_noise : (classes, blocks) array
        Σ y² and the variance that few-bit values add, as in ``RoundTotals``.
    repeats : (4, classes, blocks) array
        Of nodes that are looked at in first rounds of epochs: squares and number of values whose coordinate they sent
        in the last round too, and of all their values (``server.repeats``).
    products : (classes, classes, blocks) array
        Σ_j S_sj S_tj of the sums of two classes; empty where there is one class.
    most : (blocks,) array
        The largest count of a coordinate; 0 where shares are not uniform.
    fits : array
        The sums that the memory fits its coefficients to.
    moments : Moments, optional
        Power sums for the error and its standard error; None where shares are not uniform.
    by_count : ByCount
        Sums by count, likewise; empty where shares are not uniform, and in journals from before there were any.
    senders : (5,) array
        ``SenderSums`` of the first class.
    later : (classes + 2, blocks) array
        ``LaterSpread.sums``; empty where draws are not epochs.
    observed : (sums, blocks) array
        What ``server.observed`` sums up; empty where nothing is chosen by it.
    """

    class_nodes: npt.NDArray[np.int64]
    class_slots: npt.NDArray[np.int64]
    weight: Doubles
    class_squares: Doubles
    class_noise: Doubles
    repeats: Doubles
    products: Doubles
    most: npt.NDArray[np.int32]
    fits: Doubles
    moments: Moments | None
    by_count: ByCount
    senders: Doubles
    later: Doubles
    observed: Doubles

    @staticmethod
    def of(totals: RoundTotals, fits: Doubles) -> Summary:
        """The summary of a range."""
        classes, blocks = totals.class_nodes.shape
        several = totals.products() if classes > 1 else np.zeros((0, 0, blocks))
        moments, by_count = totals.summary() or (None, ByCount.empty(blocks))
        who = totals.class_nodes, totals.class_slots, totals.weight
        sums = totals.class_squares, totals.class_noise, totals.repeats, several
        spread = np.array(totals.sender_sums()), totals.later.sums(), totals.observed
        return Summary(*who, *sums, by_count.most, fits, moments, by_count, *spread)

    @cached_property
    def nodes(self) -> npt.NDArray[np.int64]:
        """How many nodes have a weight, per block."""
        nodes: npt.NDArray[np.int64] = self.class_nodes.sum(axis=0)
        return nodes

    def of_same_nodes(self, other: Summary) -> bool:
        """Whether the other is of the same round, as far as that shows."""
        names = ("class_nodes", "class_slots", "weight")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    def __add__(self, other: Summary) -> Summary:
        if not self.of_same_nodes(other):
            raise ValueError("summaries of different nodes cannot be added")
        return Summary(
            self.class_nodes,
            self.class_slots,
            self.weight,
            self.class_squares + other.class_squares,
            self.class_noise + other.class_noise,
            self.repeats + other.repeats,
            self.products + other.products,
            np.maximum(self.most, other.most),
            self.fits + other.fits,
            self.moments + other.moments if self.moments is not None and other.moments is not None else None,
            self.by_count + other.by_count,
            self.senders + other.senders,
            self.later + other.later,
            self.observed + other.observed,
        )

    def tree(self) -> Tree:
        """All of it as a state tree."""
        moments = None if self.moments is None else np.array(list(vars(self.moments).values()))
        return {**vars(self), "moments": moments, "by_count": self.by_count.tree()}

    @staticmethod
    def of_tree(tree: Tree) -> Summary:
        """The summary that ``tree()`` returned."""
        assert isinstance(tree, dict)
        nodes = array_in(tree, "class_nodes")
        # Journals from before there were designed draws lack the slots, others sums by count, repeats or the spread.
        none = np.zeros((0, nodes.shape[1]))
        later = {"senders": np.array(SenderSums()), "later": none, "observed": none}
        whole = {
            "class_slots": np.zeros(len(nodes), np.int64),
            "repeats": np.zeros((4, *nodes.shape)),
            **later,
            **tree,
        }
        arrays = [each.name for each in fields(Summary) if each.name not in ("moments", "by_count")]
        moments = tree["moments"]
        return Summary(
            **{name: array_in(whole, name) for name in arrays},
            moments=Moments(*moments) if isinstance(moments, np.ndarray) else None,
            by_count=ByCount.of_tree(tree["by_count"]) if "by_count" in tree else ByCount.empty(nodes.shape[1]),
        )
