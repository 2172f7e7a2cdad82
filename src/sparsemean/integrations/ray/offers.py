"""What fronts and the sequencer tell each other: payloads without their values, tickets, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeAlias

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.integrations.ray.turns import Turn
from sparsemean.sampling import Plan
from sparsemean.server.roster import Acceptance, Roster, Submission


@dataclass(frozen=True, slots=True)
class Offer:
    """A payload that a front has opened, as the roster judges it (``Offered``) and records it."""

    acceptance: Acceptance
    basis: int
    choice: int | None
    plan: Plan | None

    @staticmethod
    def of(submission: Submission, acceptance: Acceptance) -> Offer:
        """All of it but its values."""
        return Offer(acceptance, submission.basis, submission.choice, submission.plan)

    @property
    def receipt(self) -> sm.Receipt:
        """What it will be answered with."""
        return self.acceptance.receipt

    @property
    def weight(self) -> Doubles:
        """One number for each block."""
        return self.acceptance.weight


class Standing(Enum):
    """What becomes of an offer that has no answer yet."""

    IN = auto()
    """It is in the batch of the ticket."""
    LATER = auto()
    """Another payload of its node is under way; offer it again."""


Verdict: TypeAlias = "sm.Receipt | sm.SparseMeanError | Standing"


@dataclass(frozen=True, slots=True)
class Ticket:
    """The place of a batch in the order of all: it comes ``after`` this record, in every shard."""

    after: int
    round: int
    turn: Turn


@dataclass(frozen=True, slots=True)
class Admitted:
    """The answer to offers: a verdict for each, and the ticket of those that are in, if any are."""

    verdicts: list[Verdict]
    ticket: Ticket | None


@dataclass(frozen=True, slots=True)
class Delivered:
    """A batch was handed to all shards; the last record of each then."""

    ticket: Ticket
    sequences: list[int]


@dataclass(frozen=True, slots=True)
class Failed:
    """A batch could not be handed to all shards."""

    ticket: Ticket
    reason: str


@dataclass(frozen=True, slots=True)
class Refused:
    """Payloads that a front cannot read, for the round's report, or none; the answer is a ``View``."""

    errors: list[sm.SparseMeanError]


@dataclass(frozen=True, slots=True)
class View:
    """What payloads are read by, a roster that knows no node, and the shards to hand them to.

    Another one has another version.
    """

    version: int
    roster: Roster
    shards: Sequence[Any]


class Outcome(Enum):
    """What became of a batch."""

    CONFIRMED = auto()
    """All shards have it."""
    WITHDRAWN = auto()
    """Its ticket is void, and no shard has anything of it."""


Ask: TypeAlias = "Sequence[Offer] | Delivered | Failed | Refused"
Answered: TypeAlias = "Admitted | Outcome | View | sm.SparseMeanError"


@dataclass(frozen=True, slots=True)
class Asks:
    """What a front waits to hear, by a key of each; a front that was begun anew says so by another ``life``."""

    life: str
    open: dict[str, Ask]
