"""Plan: what the server asks of a node in one round, beyond what the run says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsemean.errors import InvalidInput

MAX_SLOTS = 1 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """The terms of one node in one round. Node and server must go by the same ones, or payloads would be misread.

    Parameters
    ----------
    slot : int, optional
        The node's place in a balanced draw; None where it draws independently of all others.
    slots : int, default 0
        How many places that draw has, up to 2**20; 0 without a slot.

    >>> Plan(2, 10)
    Plan(slot=2, slots=10)
    """

    slot: int | None = None
    slots: int = 0

    def __post_init__(self) -> None:
        known = isinstance(self.slots, int) and (self.slot is None or isinstance(self.slot, int))
        if not known or (self.slots != 0 if self.slot is None else not 0 <= self.slot < self.slots <= MAX_SLOTS):
            raise InvalidInput(f"a slot is a number below slots, which go up to {MAX_SLOTS}; got {self!r}")


def plan_of(node: str, slots: Mapping[str, int]) -> Plan:
    """The plan of a node where these nodes have a slot; any other draws independently.

    >>> plan_of("b", {"a": 0, "b": 1}), plan_of("c", {"a": 0, "b": 1})
    (Plan(slot=1, slots=2), Plan(slot=None, slots=0))
    """
    slot = slots.get(node)
    return Plan() if slot is None else Plan(slot, len(slots))
