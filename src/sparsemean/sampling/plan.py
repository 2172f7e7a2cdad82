"""Plan: what the server asks of a node in one round, beyond what the run says."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sparsemean.errors import InvalidInput

MAX_SLOTS = 1 << 20
LARGEST_SCALE = 2.0**126  # a decoded value may be twice the scale, and has to be a float32

Dealt: TypeAlias = list[str] | list[list[str]]
"""Who has the slots of a round, in their order: all nodes those of one draw, or those of each encoder their own."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The terms of one node in one round. Node and server must go by the same ones, or payloads would be misread.

    Parameters
    ----------
    slot : int, optional
        The node's place in a balanced draw; None where it draws independently of all others.
    slots : int, default 0
        How many places that draw has, up to 2**20; 0 without a slot.
    scale : float, optional
        A common to the few-bit values of all nodes that have a slot: a positive number of bfloat16, up to 2**126.

    >>> Plan(2, 10), Plan(2, 10, scale=1.5)
    (Plan(slot=2, slots=10), Plan(slot=2, slots=10, scale=1.5))
    """

    slot: int | None = None
    slots: int = 0
    scale: float | None = None

    def __post_init__(self) -> None:
        known = isinstance(self.slots, int) and (self.slot is None or isinstance(self.slot, int))
        if not known or (self.slots != 0 if self.slot is None else not 0 <= self.slot < self.slots <= MAX_SLOTS):
            raise InvalidInput(f"a slot is a number below slots, which go up to {MAX_SLOTS}; got {self!r}")
        if self.scale is not None and (self.slot is None or not is_scale(self.scale)):
            raise InvalidInput(f"a scale goes with a slot, and is a bfloat16 in (0, 2**126]; got {self!r}")

    def __repr__(self) -> str:
        scale = "" if self.scale is None else f", scale={self.scale!r}"
        return f"Plan(slot={self.slot!r}, slots={self.slots!r}{scale})"


def is_scale(number: object) -> bool:
    """Whether few-bit values can have this scale: a positive bfloat16 up to 2**126.

    >>> is_scale(1.5), is_scale(1.001), is_scale(0.0), is_scale(float("nan"))
    (True, False, False, False)
    """
    if not isinstance(number, float) or not 0.0 < number <= LARGEST_SCALE:
        return False
    fits: bool = (
        struct.pack("<f", number)[:2] == b"\0\0" and struct.unpack("<f", struct.pack("<f", number))[0] == number
    )
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


def plan_of(node: str, slots: Mapping[str, int], scale: float | None = None) -> Plan:
    """The plan of a node where these nodes have a slot, and this scale; any other draws independently.

    >>> plan_of("b", {"a": 0, "b": 1}), plan_of("c", {"a": 0, "b": 1})
    (Plan(slot=1, slots=2), Plan(slot=None, slots=0))
    """
    slot = slots.get(node)
    return Plan() if slot is None else Plan(slot, len(slots), scale)
