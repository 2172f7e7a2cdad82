"""Plan: what the server asks of a node in one round, beyond what the run says."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sparsemean.errors import InvalidInput
from sparsemean.sampling.clock import LEAST_RATIO, MOST_RATIO, MOST_RATIOS

MAX_SLOTS = 1 << 20
MAX_OPTIONS = 1 << 8
LARGEST_SCALE = 2.0**126  # a decoded value may be twice the scale, and has to be a float32
LAST_ROUND = (1 << 63) - 1

Slots: TypeAlias = list[str] | list[list[str]]
"""Who has the slots of a round, in their order: all nodes those of one draw, or those of each encoder their own."""
Dealt: TypeAlias = Slots | int
"""What is dealt in a round: its slots; or the ratio, in sixteenths, by which the epoch that is on goes on."""


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
    scale : float, optional
        A common to the few-bit values of all nodes that have a slot: a positive number of bfloat16, up to 2**126. Not
        in an epoch, after whose first round nobody knows who else sends a coordinate.
    option : int, optional
        With ``Auto``, which of its options all nodes of the round encode with.

    >>> Plan(2, 10), Plan(2, 10, epoch=7, ratios=bytes([32]))
    (Plan(slot=2, slots=10), Plan(slot=2, slots=10, epoch=7, ratios=b' '))
    >>> Plan(2, 10, scale=1.5)
    Plan(slot=2, slots=10, scale=1.5)
    """

    slot: int | None = None
    slots: int = 0
    epoch: int | None = None
    ratios: bytes = b""
    scale: float | None = None
    option: int | None = None

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
        if self.scale is not None and (self.slot is None or began or not is_scale(self.scale)):
            raise InvalidInput(
                f"a scale is a bfloat16 in (0, 2**126], and goes with a slot and without an epoch; got {self!r:.200}"
            )
        if self.option is not None and not (type(self.option) is int and 0 <= self.option < MAX_OPTIONS):
            raise InvalidInput(f"an option is a number below {MAX_OPTIONS}; got {self!r:.200}")

    def __repr__(self) -> str:
        epoch = "" if self.epoch is None else f", epoch={self.epoch}, ratios={self.ratios!r}"
        scale = "" if self.scale is None else f", scale={self.scale!r}"
        option = "" if self.option is None else f", option={self.option}"
        return f"Plan(slot={self.slot!r}, slots={self.slots!r}{epoch}{scale}{option})"


def is_scale(number: object) -> bool:
    """Whether few-bit values can have this scale: a positive bfloat16 up to 2**126.

    >>> is_scale(1.5), is_scale(1.001), is_scale(0.0), is_scale(float("nan"))
    (True, False, False, False)
    """
    if not isinstance(number, float) or not 0.0 < number <= LARGEST_SCALE:
        return False
    single = struct.pack("<f", number)
    fits: bool = single[:2] == b"\0\0" and struct.unpack("<f", single)[0] == number
    return fits


def dealt_draws(dealt: object) -> list[list[str]]:
    """The nodes of each draw, one list for all or one for each encoder; ValueError where it is no such list.

    >>> dealt_draws(["a", "b"]), dealt_draws([["a"], [], ["b"]])
    ([['a', 'b']], [['a'], [], ['b']])
    """
    if not isinstance(dealt, list):
        raise ValueError("the list of those who have slots is no list")
    draws = [dealt] if all(isinstance(node, str) for node in dealt) else dealt
    if not all(isinstance(draw, list) and all(isinstance(node, str) for node in draw) for draw in draws):
        raise ValueError("the list of those who have slots is none of names")
    names = [node for draw in draws for node in draw]
    if len(set(names)) < len(names):
        raise ValueError("the list of those who have slots names a node twice")
    return draws


def check_dealt(dealt: object) -> None:
    """ValueError where these are no terms of a round; ``Dealt`` says what they may be."""
    if not isinstance(dealt, int) or isinstance(dealt, bool):
        dealt_draws(dealt)
    elif not LEAST_RATIO <= dealt <= MOST_RATIO:
        raise ValueError(f"a ratio is {LEAST_RATIO} to {MOST_RATIO} sixteenths, not {dealt}")


def plan_of(node: str, slots: Mapping[str, int], epoch: int | None = None) -> Plan:
    """The plan of a node where these nodes have a slot; any other draws independently. An epoch may begin with it.

    >>> plan_of("b", {"a": 0, "b": 1}), plan_of("c", {"a": 0, "b": 1})
    (Plan(slot=1, slots=2), Plan(slot=None, slots=0))
    """
    slot = slots.get(node)
    return Plan(slot, 0 if slot is None else len(slots), epoch)
