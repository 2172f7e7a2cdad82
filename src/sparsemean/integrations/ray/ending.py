"""Where a shard stands, and how a round ends in all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sparsemean.core import Summary, Tree, branch

Kind = Literal["close", "skip"]


@dataclass(frozen=True, slots=True)
class Status:
    """Where a shard stands: its open round, the number of its last record, and what one more node takes.

    ``before`` is the record before its last change, which is the only one that other shards may not have.
    """

    round: int
    sequence: int
    before: int
    node_bytes: int


@dataclass(frozen=True, slots=True)
class Ending:
    """How a round ended, the same for all shards; ``after`` is the record before."""

    after: int
    kind: Kind
    summary: Summary
    most_nodes: int

    def tree(self) -> Tree:
        return {"after": self.after, "kind": self.kind, "most": self.most_nodes, "summary": self.summary.tree()}

    @staticmethod
    def of_tree(tree: Tree) -> Ending:
        after, kind, most, summary = (branch(tree, name) for name in ("after", "kind", "most", "summary"))
        if not isinstance(after, int) or not isinstance(most, int) or kind not in ("close", "skip"):
            raise ValueError("the end of the last round is no such thing")
        return Ending(after, "close" if kind == "close" else "skip", Summary.of_tree(summary), most)
