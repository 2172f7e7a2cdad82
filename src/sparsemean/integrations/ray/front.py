"""The front's rounds: who came and what it weighs is known here, all coordinates are in the shards."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import sparsemean as sm
from sparsemean.core import Nothing, Payload, Rounds, Setting, Summary, Taken, Tree
from sparsemean.integrations.ray.shards import Shards


class Front(Rounds):
    """The rounds of an empty range, whose summary is that of all shards; how good an estimate is follows from it."""

    CALLER = Rounds.CALLER + 1

    def __init__(self, run: sm.Run, missing: str, round: int, shards: Shards) -> None:
        super().__init__(run, missing, round, 0, None, 0, 0)
        self.memory = Nothing().start(Setting(self._blocks, run.scheme.encoder, self.dtype))
        self._shards = shards

    def remind(self, state: Tree, accepted: Sequence[Taken]) -> None:
        """Know what a shard knows."""
        self.restore(copy.deepcopy(state))
        self.accepted = {taken.receipt.node: taken for taken in accepted}

    def count(self, taken: Taken, afresh: bool, payload: Payload | None) -> None:
        self.accepted[taken.receipt.node] = taken

    def summary(self) -> Summary:
        return self._shards.summary()

    def close(self, most_nodes: int, summary: Summary | None = None) -> sm.Estimate:
        whole = self.summary()
        self._shards.end("close", whole, most_nodes)
        estimate, found = super().close(most_nodes, whole), self._shards.result()
        return estimate if found is None else replace(estimate, mean=found.mean, counts=found.counts)

    def skip(self, most_nodes: int, summary: Summary | None = None) -> None:
        whole = self.summary()
        self._shards.end("skip", whole, most_nodes)
        super().skip(most_nodes, whole)

    def forget(self, node: str) -> None:
        self._shards.forget(self.round, node)
        super().forget(node)
