"""Rounds: what a server needs of whatever holds its state, in this process or elsewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sparsemean._types import Counts, Doubles, Floats
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.quality import Quality, bounded
from sparsemean.decoding.summary import Summary
from sparsemean.errors import InvalidInput
from sparsemean.memory import Past
from sparsemean.results import Estimate
from sparsemean.sampling import Dealt
from sparsemean.server.assessment import Assessment
from sparsemean.server.roster import Roster, Submission
from sparsemean.state_tree import Tree

Kind = Literal["close", "skip"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A round that is about to end: all that can be computed before anything changes.

    Attributes
    ----------
    kind : {"close", "skip"}
    summary : Summary
        Of all coordinates.
    quality : Quality
        How good the estimate is.
    beliefs : tuple of Belief
        The correlation of each block, as earlier rounds and this one show it.
    weights : dict
        Of the nodes that the mean is of.
    innovation, counts : array, optional
        Mean innovation and count of each coordinate; None where the round is skipped, or other processes have them.
    unresolved : int
        Tiles of modulo values that count as expected.
    """

    kind: Kind
    summary: Summary
    quality: Quality
    beliefs: tuple[Belief, ...]
    weights: dict[str, Doubles]
    innovation: Doubles | None = None
    counts: Counts | None = None
    unresolved: int = 0


class Rounds(ABC):
    """The rounds of a server: a roster, and whatever holds the coordinates. A failed change leaves it not ``sound``.

    Not thread-safe: the server calls one method at a time.
    """

    roster: Roster
    sound: bool
    """Whether the state is complete; else ``ready`` recovers it."""

    @property
    @abstractmethod
    def durable(self) -> bool:
        """Whether accepted payloads outlive the process."""

    @property
    @abstractmethod
    def node_bytes(self) -> tuple[int, int]:
        """What one more node takes where coordinates are kept: for what is remembered of it, and for its payload."""

    @abstractmethod
    def ready(self) -> Roster:
        """The roster of a sound state, recovered where a change had failed; refused where that is not possible."""

    def settled(self) -> Roster:
        """The same once nothing is under way elsewhere, as it must be before a change."""
        return self.ready()

    def enqueue(self, submission: Submission) -> bool:
        """Accept one payload in a way that no interrupt can harm, if there is one: returns whether it did."""
        return False

    @abstractmethod
    def accept(self, submissions: Collection[Submission]) -> None:
        """Accept payloads that are no duplicates: all, or none and a ``JournalError``."""

    @abstractmethod
    def deal(self, terms: Dealt) -> None:
        """Fix what nodes go by in the open round; ``Roster.next_deal`` has the terms."""

    def refer_to(self, reference: Floats) -> None:
        """Make this the reference of the open round, before anything of it is told."""
        raise InvalidInput("this kind of server reads no payloads that are relative to a reference; use Server")

    @abstractmethod
    def prepare(self, kind: Kind) -> Prepared:
        """Compute what the end of the open round needs; nothing changes that could be seen."""

    @abstractmethod
    def end(self, prepared: Prepared, most_nodes: int) -> tuple[Estimate | None, str | None]:
        """End the round: its estimate, None if it is skipped, and a warning or None."""

    @abstractmethod
    def forget(self, node: str) -> None:
        """Drop all that is remembered of a node."""

    @abstractmethod
    def expected(self, node: str) -> Doubles:
        """What the memory puts in place of this node's vector."""

    def sketch(self, node: str) -> bytes:
        """What the node is told of what is expected of it (``codec.pack_sketch``); empty where nothing is."""
        return b""

    @abstractmethod
    def beliefs(self) -> tuple[Belief, ...]:
        """What an adaptive decoder goes by before the round."""

    @abstractmethod
    def last_estimate(self) -> Estimate | None:
        """The estimate of the round that ended last, where it is ``durable``."""

    @abstractmethod
    def digest(self) -> str:
        """Changes with any part of the state."""

    def saved(self) -> Tree:
        """All of it between two rounds, rows included."""
        raise InvalidInput("the state of this kind of server is saved by its journal alone; give it journal=")

    def restore(self, saved: Tree) -> None:
        """Restore what ``saved`` returned, in rounds that have not begun."""
        raise InvalidInput("the state of this kind of server is saved by its journal alone; give it journal=")

    @abstractmethod
    def close(self) -> None:
        """Give up files and processes."""


def assessed(roster: Roster, assessment: Assessment, kind: Kind, summary: Summary) -> Prepared:
    """The open round as its summary shows it; innovation and counts are still missing."""
    if kind == "skip":
        return Prepared(kind, summary, Quality(), assessment.beliefs(summary), {})
    weights = roster.weights()
    total = np.sum(list(weights.values()), axis=0)
    beliefs, quality = assessment.assess(summary, total, roster.clocks())
    return Prepared(kind, summary, quality if roster.scale is None else bounded(quality), beliefs, weights)


def concluded(
    roster: Roster, assessment: Assessment, prepared: Prepared, result: tuple[Doubles, Counts] | None, most_nodes: int
) -> tuple[Estimate | None, str | None, list[str], Past]:
    """End the round in roster and assessment, which learn from it.

    Parameters
    ----------
    result : (mean, counts), optional
        What the coordinates gave; None where the round is skipped.
    most_nodes : int
        How many nodes there is room for.

    Returns
    -------
    The estimate and a warning, None where there is none; which nodes were forgotten; what becomes of the memory.
    """
    estimate = warning = None
    if result is not None:
        warning = assessment.divergence(prepared.quality)
        estimate = _estimate(roster, prepared.quality, *result)
    assessment.learn(prepared.beliefs)
    roster.learn(prepared.summary, prepared.beliefs, prepared.quality.error)
    forgotten = roster.hear(most_nodes)
    for node in forgotten:
        roster.forget(node)
    past = roster.next_round(None if estimate is None else estimate.mean)
    return estimate, warning, forgotten, past


def _estimate(roster: Roster, quality: Quality, mean: Doubles, counts: Counts) -> Estimate:
    return Estimate(
        mean=mean,
        round=roster.round,
        nodes=tuple(roster.accepted),
        counts=counts,
        bytes=sum(accepted.bytes for accepted in roster.accepted.values()),
        error=quality.error,
        error_se=quality.error_se,
        correlation=quality.correlation,
        rounding=quality.rounding,
        error_is_bound=quality.bound,
        actual_error=quality.actual,
        actual_error_interval=quality.interval,
    )
