"""Plans on the wire: 13 bytes, 15 with a scale, or 23 and one for each ratio of an epoch; bound to run, node, round.

A plan of an ``Auto`` run has two bytes more, in front of these: version 4, and the number of the option.

=======  ====  ================================================================
offset   size  field
=======  ====  ================================================================
0        1     version of the terms: 1, 2 with an epoch, or 3 with a scale
1        4     slot, 2**32 − 1 for none
5        4     slots
9        8     version 2: the round in which the epoch began
17       2     version 2: number of ratios
19       …     version 2: the ratios, a byte each
9        2     version 3: the scale, a bfloat16
…        4     tag: BLAKE2b of what the plan is bound to and of the bytes before
=======  ====  ================================================================

A payload repeats slot and tag in its header, so that it can be told from one that follows another plan.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import replace

from sparsemean.errors import InvalidInput
from sparsemean.sampling.clock import MOST_RATIOS
from sparsemean.sampling.plan import Plan

FRESH, EPOCH, SCALE, OPTION = 1, 2, 3, 4
NO_SLOT = (1 << 32) - 1
TERMS = struct.Struct("<BII")
CLOCK = struct.Struct("<QH")
TAG_BYTES = 4
SCALE_BYTES = 2
UNKNOWN = "this is not a plan of this release; pass what server.plan(node) returned"
OPTION_BYTES = 2
MOST_BYTES = OPTION_BYTES + TERMS.size + CLOCK.size + MOST_RATIOS + TAG_BYTES


def pack(plan: Plan, bound_to: bytes) -> bytes:
    """The plan for a node; ``bound_to`` stands for its run, node and round."""
    return _terms(plan) + tag(plan, bound_to)


def tag(plan: Plan, bound_to: bytes) -> bytes:
    """Four bytes that change with the plan and with what it is bound to."""
    return hashlib.blake2b(b"sparsemean plan" + bound_to + _terms(plan), digest_size=TAG_BYTES).digest()


def slot_field(plan: Plan) -> int:
    """The slot as it stands in plans and headers."""
    return NO_SLOT if plan.slot is None else plan.slot


def option_of(blob: bytes) -> int:
    """The option that a plan of an ``Auto`` run names, before anything else is known of it."""
    if len(blob) < OPTION_BYTES or blob[0] != OPTION:
        raise InvalidInput(UNKNOWN)
    return blob[1]


def _terms(plan: Plan) -> bytes:
    if plan.option is not None:
        return bytes([OPTION, plan.option]) + _terms(replace(plan, option=None))
    if plan.scale is not None:
        return TERMS.pack(SCALE, slot_field(plan), plan.slots) + struct.pack("<f", plan.scale)[2:]
    if plan.epoch is None:
        return TERMS.pack(FRESH, slot_field(plan), plan.slots)
    clock = CLOCK.pack(plan.epoch, len(plan.ratios)) + plan.ratios
    return TERMS.pack(EPOCH, slot_field(plan), plan.slots) + clock


def unpack(given: bytes, bound_to: bytes, epochs: bool = False, option: int | None = None) -> Plan:
    """The plan in these bytes; refused where it is damaged, or was given to another node or for another round.

    ``epochs`` says whether the draw is one of epochs, whose terms have another version; ``option`` is that of the plan
    where it has one (``option_of``).
    """
    blob = given if option is None else given[OPTION_BYTES:]
    extra = {EPOCH: CLOCK.size} if epochs else {FRESH: 0, SCALE: SCALE_BYTES}
    version, rest = blob[:1], blob[TERMS.size : -TAG_BYTES]
    if len(blob) < TERMS.size + TAG_BYTES or len(rest) < extra.get(version[0], len(blob)):
        raise InvalidInput(UNKNOWN)
    _, slot, slots = TERMS.unpack_from(blob)
    epoch, count = CLOCK.unpack_from(rest) if epochs else (None, 0)
    if len(rest) != extra[version[0]] + count:
        raise InvalidInput(UNKNOWN)
    scale = struct.unpack("<f", b"\0\0" + rest)[0] if version[0] == SCALE else None
    ratios = rest[CLOCK.size :] if epochs else b""
    plan = Plan(None if slot == NO_SLOT else slot, slots, epoch, ratios, scale, option)
    if given != pack(plan, bound_to):
        raise InvalidInput("the plan is of another run, node or round, or damaged; ask for server.plan(node) again")
    return plan
