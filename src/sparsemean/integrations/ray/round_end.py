"""Where a shard stands, and how a round ends in all of them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sparsemean.decoding.by_count import ByCount
from sparsemean.decoding.summary import Summary
from sparsemean.server.rounds import Kind
from sparsemean.state_tree import Tree, branch


@dataclass(frozen=True, slots=True)
class Status:
    """Where a shard stands: its open round, the number of its last record, and what one more node takes.

    ``before`` is a record that all shards have: the one before its last change, where changes come one by one.
    """

    round: int
    sequence: int
    before: int
    node_bytes: int


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """How a round ended, the same for all shards; ``after`` is the record before."""

    after: int
    kind: Kind
    summary: Summary
    most_nodes: int

    def tree(self) -> Tree:
        return {"after": self.after, "kind": self.kind, "most": self.most_nodes, "summary": self.summary.tree()}

    @staticmethod
    def of_tree(tree: Tree) -> RoundEnd:
        after, kind, most, summary = (branch(tree, name) for name in ("after", "kind", "most", "summary"))
        if not isinstance(after, int) or not isinstance(most, int) or kind not in ("close", "skip"):
            raise ValueError("malformed 'ending' record in the journal's state")
        return RoundEnd(after, "close" if kind == "close" else "skip", Summary.of_tree(summary), most)


def is_whole(given: object, least: int, most: int) -> bool:
    """Whether it is a plain int in these bounds."""
    return isinstance(given, int) and not isinstance(given, bool) and least <= given <= most


def check_summary(found: object, like: Summary) -> Summary:
    """The summary, if its arrays have the shapes and types of those in ``like``; else ValueError.

    Arrays of other shapes would be broadcast where summaries are added.
    """
    if not isinstance(found, Summary):
        raise ValueError(f"{type(found).__name__}, no Summary")
    _check_arrays(found, like, [each.name for each in fields(Summary) if each.name not in ("moments", "by_count")])
    _check_by_count(found.by_count, like.by_count)
    if like.moments is None or found.moments is None:
        if like.moments is not found.moments:
            raise ValueError("a Summary that has moments where there are none, or none where there are")
    elif type(found.moments) is not type(like.moments):
        raise ValueError(f"a Summary whose moments are {type(found.moments).__name__}")
    else:
        _check_arrays(found.moments, like.moments, [each.name for each in fields(like.moments)])
    return found


def _check_by_count(found: object, like: ByCount) -> None:
    """How many counts occur differs from range to range."""
    if not isinstance(found, ByCount) or not isinstance(found.counts, np.ndarray) or found.counts.ndim != 1:
        raise ValueError("a Summary whose sums by count are none")
    counts = found.counts
    if counts.dtype != np.int64 or np.any(counts < 0) or np.any(np.diff(counts) <= 0):
        raise ValueError(f"a Summary with the counts {counts!r:.100}, which are not ascending")
    rows, _, blocks = like.sums.shape
    _check_arrays(found, ByCount(counts, np.zeros((rows, counts.size, blocks))), ["sums"])


def _check_arrays(found: Any, like: Any, names: list[str]) -> None:
    for name in names:
        array, due = getattr(found, name, None), np.asarray(getattr(like, name))
        if not isinstance(array, np.ndarray):
            raise ValueError(f"a Summary whose {name} is no array")
        if array.dtype != due.dtype or array.shape != due.shape:
            raise ValueError(f"a Summary whose {name} is {array.dtype} {array.shape}, not {due.dtype} {due.shape}")
