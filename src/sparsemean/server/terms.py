"""Terms of a round: who has the slots, and where the epoch is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from sparsemean.sampling import Plan, Slots, dealt_draws


class _Seat(NamedTuple):
    """A node's slot, how many there are, and which encoder it must use; None where it has none, or may choose."""

    slot: int | None = None
    slots: int = 0
    choice: int | None = None


@dataclass(frozen=True)
class Terms:
    """What the nodes of a round go by.

    Parameters
    ----------
    slots : list of str, or of such lists
        Who has the slots, in their order: all nodes those of one draw, or those of each encoder their own.
    epoch : int, optional
        With ``Epochs()``, the round in which the epoch began, whose slots these are.
    ratios : bytes
        Those of the epoch so far (``sampling.clock``).
    scale : float, optional
        That of few-bit values, for all who have a slot.
    option : int, optional
        With ``Auto``, what all nodes encode with.
    """

    slots: Slots = field(default_factory=list)
    epoch: int | None = None
    ratios: bytes = b""
    scale: float | None = None
    option: int | None = None

    @cached_property
    def _seats(self) -> dict[str, _Seat]:
        draws = dealt_draws(self.slots)
        return {
            node: _Seat(slot, len(draw), choice if len(draws) > 1 else None)
            for choice, draw in enumerate(draws)
            for slot, node in enumerate(draw)
        }

    @property
    def seats(self) -> int:
        """How many nodes have a slot."""
        return len(self._seats)

    def plan(self, node: str) -> Plan:
        """What this node goes by; without a slot it draws independently."""
        seat = self._seats.get(node, _Seat())
        scale = None if seat.slot is None else self.scale
        return Plan(seat.slot, seat.slots, self.epoch, self.ratios, scale, self.option)

    def choice(self, node: str) -> int | None:
        """Which encoder this node must use, since its slot is among those of that one; None where it may choose."""
        return self._seats.get(node, _Seat()).choice

    def suit(self, slots: Slots) -> bool:
        """Whether these nodes may go by these terms: each by the encoder it has a slot of, if it has one."""
        draws = dealt_draws(slots)
        chosen = ((node, choice) for choice, draw in enumerate(draws) for node in draw)
        return len(draws) == 1 or all(self.choice(node) in (None, choice) for node, choice in chosen)

    def with_ratio(self, ratio: int) -> Terms:
        """The terms of the next round of the epoch."""
        if self.epoch is None:
            raise ValueError("no epoch is on that could go on")
        return replace(self, ratios=self.ratios + bytes([ratio]))
