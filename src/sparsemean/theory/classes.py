"""Classes of nodes that send different shares: how many nodes send a coordinate besides one or two given ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import node_count, unit_share, whole
from .binomial import pmf
from .counts import CountLaw, slot_count

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class NodeClass:
    """Nodes that send the same share, drawn independently of the other classes.

    Parameters
    ----------
    nodes : int
        How many came, 0 or more.
    share : float
        p, the share each of them sends.
    slots : int, optional
        N of the class's balanced draw; None if its nodes draw independently of each other as well.
    """

    nodes: int
    share: float
    slots: int | None = None

    @cached_property
    def law(self) -> CountLaw | None:
        """The law of the class's count, if it is balanced and somebody came."""
        return CountLaw(self.nodes, self.share, self.slots) if self.slots is not None and self.nodes else None

    def all_send(self, given: int = 0) -> float:
        """P(all nodes send), given that none or one of them does.

        >>> NodeClass(2, 0.5).all_send(), NodeClass(2, 0.75, slots=2).all_send(given=1)
        (0.25, 0.6666666666666666)
        """
        if self.law is None:
            return self.share ** (self.nodes - given)
        return float((self.law.count, self.law.given_sent)[given][-1])

    def log_all_send(self) -> float:
        """The logarithm of P(all nodes send), which may itself be too small for a float."""
        if self.law is None:
            return self.nodes * math.log(self.share)
        return math.log(self.all_send()) if self.all_send() > 0.0 else -math.inf

    def parts(self, floor: float) -> tuple[int, Vector, list[Vector]]:
        """(start, bulk, ends): ``start`` plus bulk * ends[i] is the law of how many send besides i given nodes that do.

        Of independent nodes all but two are the bulk, and the two are added back as coins: taking nodes out of the
        whole sum instead would divide by small numbers. A balanced class has its whole laws as ends.
        """
        if self.law is None:
            start, bulk = trimmed(pmf(max(self.nodes - 2, 0), self.share), floor)
            return start, bulk, _coins(self.nodes, self.share)
        laws = [self.law.count, self.law.given_sent[1:], self.law.given_pair[2:]]
        kept = [np.flatnonzero(law > floor * law.max(initial=0.0)) for law in laws]
        start = min(int(where[0]) for where in kept if len(where))
        ends = [
            law[start : where[-1] + 1] if len(where) else np.zeros(1) for law, where in zip(laws, kept, strict=True)
        ]
        return start, np.ones(1), ends


def node_classes(
    nodes: Sequence[int], shares: Sequence[float], slots: Sequence[int | None] | None
) -> tuple[tuple[NodeClass, ...], int]:
    """The classes and how many nodes came in all.

    >>> node_classes([3, 2], [0.5, 0.25], [None, 4])[0][1]
    NodeClass(nodes=2, share=0.25, slots=4)
    """
    counts = tuple(whole(count, "the number of nodes of a class", 0) for count in nodes)
    p = tuple(unit_share(share) for share in shares)
    if len(counts) != len(p):
        raise InvalidInput(f"{len(counts)} classes of nodes but {len(p)} shares; give one share for each class")
    drawn = [None] * len(counts) if slots is None else list(slots)
    if len(drawn) != len(counts):
        raise InvalidInput(f"{len(counts)} classes of nodes but {len(drawn)} slots; give one, or None, for each class")
    checked = [None if N is None else slot_count(N, count) for N, count in zip(drawn, counts, strict=True)]
    return tuple(map(NodeClass, counts, p, checked)), node_count(sum(counts))


def present(classes: Sequence[NodeClass]) -> list[int]:
    """The classes of which somebody came."""
    return [s for s, kind in enumerate(classes) if kind.nodes > 0]


class Others:
    """How many nodes send besides one or two given ones, for all choices of these at the price of one.

    Parameters
    ----------
    classes : sequence of NodeClass
        All classes; those of which nobody came are skipped.
    floor : float
        A probability this far below the largest is left out.
    """

    def __init__(self, classes: Sequence[NodeClass], floor: float) -> None:
        self.classes = classes
        self.ends: list[list[Vector]] = []
        self.start, bulk = 0, np.ones(1)
        for kind in classes:
            first, part, ends = kind.parts(floor)
            begin, bulk = trimmed(np.convolve(bulk, part), floor)
            self.start += first + begin
            self.ends.append(ends)
        self.before = [np.ones(1)]
        for ends in self.ends[:-1]:
            self.before.append(np.convolve(self.before[-1], ends[0]))
        after = [bulk]
        for ends in self.ends[:0:-1]:
            after.append(np.convolve(after[-1], ends[0]))
        self.after = after[::-1]

    def without(self, s: int) -> Vector:
        """P(``start``), P(``start`` + 1), ... of the others of one node of class s."""
        return np.convolve(np.convolve(self.before[s], self.ends[s][1]), self.after[s])

    def pairs(self) -> Iterator[tuple[int, int, Vector]]:
        """(s, t, the same of the others of one node of class s and one of t) for all pairs that exist, s ≤ t."""
        here = present(self.classes)
        for s in here:
            if self.classes[s].nodes > 1:
                yield s, s, np.convolve(np.convolve(self.before[s], self.ends[s][2]), self.after[s])
            left = np.convolve(self.before[s], self.ends[s][1])
            for t in here[here.index(s) + 1 :]:
                yield s, t, np.convolve(np.convolve(left, self.ends[t][1]), self.after[t])
                left = np.convolve(left, self.ends[t][0])

    def reach(self, values: Vector, law: Vector, senders: int) -> Vector:
        """The part of values(m), m = 0..n, that the others' law meets when ``senders`` nodes send besides."""
        return values[self.start + senders : self.start + senders + len(law)]


def trimmed(law: Vector, floor: float) -> tuple[int, Vector]:
    """Where the law first exceeds ``floor`` of its largest value, and the law from there to where it last does.

    >>> first, kept = trimmed(np.array([1e-50, 0.5, 0.5]), 1e-40)
    >>> first, kept.tolist()
    (1, [0.5, 0.5])
    """
    kept = np.flatnonzero(law > floor * law.max())
    return int(kept[0]), law[kept[0] : kept[-1] + 1]


def _coins(count: int, p: float) -> list[Vector]:
    """The law of how many of a class's last two nodes send, with 0, 1 or 2 of them left out."""
    coin = np.array([1.0 - p, p])
    laws = [np.convolve(coin, coin), coin, np.ones(1)]
    return laws[2 - min(count, 2) :] + [np.ones(1)] * (2 - min(count, 2))
