"""Turns: the order in which batches of several fronts are added, the same in every shard."""

from __future__ import annotations

from dataclasses import dataclass

import sparsemean as sm
from sparsemean.integrations.ray.calls import MOST
from sparsemean.integrations.ray.round_end import is_whole
from sparsemean.server.local import Entry


class Withdrawn(sm.SparseMeanError):
    """The batch is of an era that is over: its front asks for another ticket."""


@dataclass(frozen=True, slots=True)
class Turn:
    """By which right a batch is added, where there are several fronts.

    Attributes
    ----------
    era : int
        Ends whenever shards are brought to one state; what is still under way of an old one comes too late.
    safe : int
        The last record that all shards are known to have.
    """

    era: int
    safe: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Pieces that were opened, to be added after a record; ``safe`` is the last one that all shards have."""

    after: int
    safe: int
    entries: list[Entry]
    records: list[tuple[str, bytes, bytes]]


class Turns:
    """Batches in a shard that came before their turn, of the era that is on; in memory alone."""

    def __init__(self) -> None:
        self._era = 0  # a process that has only begun takes no turns before it is told of an era
        self._early: dict[int, Batch] = {}

    def begin(self, era: int) -> None:
        """A new era: whatever waits is withdrawn."""
        if not is_whole(era, 0, MOST):
            raise sm.InvalidInput(f"eras are counted from 0 on, got {era!r:.100}")
        if era > self._era:
            self._era, self._early = era, {}

    def check(self, turn: Turn) -> None:
        """Refuse a batch of another era."""
        if not isinstance(turn, Turn) or not is_whole(turn.era, 0, MOST) or not is_whole(turn.safe, -1, MOST):
            raise sm.InvalidInput(f"{turn!r:.100} is no turn")
        if turn.era != self._era:
            raise Withdrawn(f"era {turn.era} is over, or unknown to a shard that has only begun; ask for a new ticket")

    def wait(self, batch: Batch) -> None:
        """Keep a batch until its turn comes."""
        self._early[batch.after] = batch

    def due(self, batch: Batch) -> list[Batch]:
        """The batch whose turn it is, and those that follow it without a gap."""
        due = [batch]
        while (follows := due[-1].after + len(due[-1].entries)) in self._early:
            due.append(self._early.pop(follows))
        return due
