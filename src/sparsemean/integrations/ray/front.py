"""The front's rounds: who came and what it weighs is known here, all coordinates are in the shards."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import sparsemean as sm
from sparsemean.core import Acceptance, Decoded, MemorySpec, Nothing, Payload, Rounds, Summary, Tree
from sparsemean.integrations.ray.ranges import ShardLost
from sparsemean.integrations.ray.shards import Shards


class Front(Rounds):
    """The rounds of an empty range, whose summary is that of all shards; how good an estimate is follows from it."""

    def __init__(self, run: sm.Run, missing: str, round: int, shards: Shards) -> None:
        super().__init__(run, missing, round, 0, None, 0, 0)
        self.memory = Nothing().start(MemorySpec(self._blocks, run.scheme.encoder, self.dtype))
        self._shards = shards

    def remind(self, state: Tree, accepted: Sequence[Acceptance]) -> None:
        """Know what a shard knows."""
        try:
            self.restore(copy.deepcopy(state))
        except (ValueError, TypeError, KeyError) as wrong:
            raise ShardLost(
                f"shard 0 answered roll() with a state that is none: {wrong}; make the call again"
            ) from None
        self.accepted = {taken.receipt.node: taken for taken in accepted}

    def count(self, taken: Acceptance, afresh: bool, payload: Payload | None) -> None:
        self.accepted[taken.receipt.node] = taken

    def summary(self) -> Summary:
        return self._shards.summary(self.accepted)

    def close(self, summary: Summary, decoded: Decoded, most_nodes: int) -> sm.Estimate:
        self._shards.end("close", summary, most_nodes)
        try:
            found = self._shards.result(self.round, tuple(self.accepted))
        except ShardLost as lost:
            raise ShardLost(
                f"{lost}. Round {self.round} has ended in the shards; with a journal, last_estimate() has its estimate"
            ) from lost
        return replace(super().close(summary, decoded, most_nodes), mean=found.mean, counts=found.counts)

    def last_estimate(self) -> sm.Estimate | None:
        """The estimate of the round that ended last; None where it was skipped, or there was none."""
        return self._shards.last_result(self.round - 1, tuple(self._closed))

    def skip(self, summary: Summary, most_nodes: int) -> None:
        self._shards.end("skip", summary, most_nodes)
        super().skip(summary, most_nodes)

    def forget(self, node: str) -> None:
        self._shards.forget(self.round, node)
        super().forget(node)
