"""How far each station lies from the others, from the few readings it sent."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import sparsemean as sm
from sparsemean import codec


class Offsets:
    """Sums over the rounds of what a station read, less the average of the others that sent the same coordinate.

    Only coordinates come into it that two stations sent in the same round. Both are drawn at random, so that the mean
    of these differences estimates, without bias, the mean over all coordinates of the block; ``of`` gives it with its
    standard error, per block of the run. (It is on the large side: part of the population is known.)
    """

    def __init__(self, run: sm.Run) -> None:
        self.run = run
        self.sums: dict[str, np.ndarray] = {}  # per node: count, sum and sum of squares, of each block

    def add(self, round: int, blobs: Mapping[str, bytes], plans: Mapping[str, bytes]) -> None:
        """Take the payloads of a round and the plans they follow, by station. Memory is n × d for the moment."""
        facts = self.run.scheme.encoder.facts
        if not (facts.raw and facts.uniform):
            return  # what is sent are not readings drawn at random
        table = np.full((len(blobs), self.run.dim), np.nan)
        for row, (node, blob) in zip(table, blobs.items(), strict=True):
            plan = codec.unpack_plan(self.run, node, round, plans[node]) if self.run.planned else None
            known = codec.Known(round, () if plan is None else (plan,), trusted=True)  # the server has verified it
            payload = codec.read_payload(self.run, node, *codec.open_frame(self.run, node, blob, known), plan)
            for part in payload.parts if payload else ():
                row[part.coordinates] = part.values
        sent = np.isfinite(table)
        others = sent.sum(axis=0) - 1
        difference = np.where(others > 0, table - (np.nansum(table, axis=0) - table) / np.maximum(others, 1), np.nan)
        starts = np.cumsum([0, *self.run.blocks[:-1]])
        for node, row in zip(blobs, difference, strict=True):
            terms = np.stack([np.isfinite(row), np.nan_to_num(row), np.nan_to_num(row) ** 2])
            self.sums[node] = self.sums.get(node, 0) + np.add.reduceat(terms, starts, axis=1)

    def of(self, node: str) -> tuple[list[float], list[float]]:
        """Offset and standard error in each block; NaN where fewer than two differences are known."""
        count, total, squares = self.sums[node]
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = total / count
            variance = (squares - count * mean**2) / (count - 1)
            return mean.tolist(), np.sqrt(np.where(count > 1, variance / count, np.nan)).tolist()
