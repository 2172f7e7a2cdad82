"""Plan: what the server asks of a node in one round, beyond what the run says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsemean.errors import InvalidInput
from sparsemean.sampling.clock import LEAST_RATIO, MOST_RATIO, MOST_RATIOS

MAX_SLOTS = 1 << 20
LAST_ROUND = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Plan:
    """The terms of one node in one round. Node and server must go by the same ones, or payloads would be misread.

    Parameters
    ----------
    slot : int, optional
        The node's place in a balanced draw; None where it draws independently of all others.
    slots : int, default 0
        How many places that draw has, up to 2**20; 0 without a slot.
    epoch : int, optional
        With ``Epochs()``, the round in which the epoch began; slots are those of then.
    ratios : bytes, default empty
        λ in sixteenths, 16 to 160, of each round of the epoch after the first, this one included: the clock
        (``sampling.clock``).

    >>> Plan(2, 10), Plan(2, 10, epoch=7, ratios=bytes([32]))
    (Plan(slot=2, slots=10), Plan(slot=2, slots=10, epoch=7, ratios=b' '))
    """

    slot: int | None = None
    slots: int = 0
    epoch: int | None = None
    ratios: bytes = b""

    def __post_init__(self) -> None:
        known = isinstance(self.slots, int) and (self.slot is None or isinstance(self.slot, int))
        if not known or (self.slots != 0 if self.slot is None else not 0 <= self.slot < self.slots <= MAX_SLOTS):
            raise InvalidInput(f"a slot is a number below slots, which go up to {MAX_SLOTS}; got {self!r}")
        began = self.epoch is not None and type(self.epoch) is int and 0 <= self.epoch <= LAST_ROUND
        told = isinstance(self.ratios, bytes) and len(self.ratios) <= MOST_RATIOS
        if not (began or (self.epoch is None and self.ratios == b"")) or not told:
            raise InvalidInput(f"an epoch begins in a round and has up to {MOST_RATIOS} ratios; got {self!r:.200}")
        if self.ratios and not LEAST_RATIO <= min(self.ratios) <= max(self.ratios) <= MOST_RATIO:
            raise InvalidInput(f"ratios are from {LEAST_RATIO} to {MOST_RATIO} sixteenths; got {self!r:.200}")

    def __repr__(self) -> str:
        epoch = "" if self.epoch is None else f", epoch={self.epoch}, ratios={self.ratios!r}"
        return f"Plan(slot={self.slot!r}, slots={self.slots!r}{epoch})"


def plan_of(node: str, slots: Mapping[str, int], epoch: int | None = None, ratios: bytes = b"") -> Plan:
    """The plan of a node where these nodes have a slot; any other draws independently. The rest is that of all nodes.

    >>> plan_of("b", {"a": 0, "b": 1}), plan_of("c", {"a": 0, "b": 1})
    (Plan(slot=1, slots=2), Plan(slot=None, slots=0))
    """
    slot = slots.get(node)
    return Plan(slot, 0 if slot is None else len(slots), epoch, ratios)
