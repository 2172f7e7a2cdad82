"""Plans on the wire: 13 bytes, 15 with a scale; bound to run, node and round.

=======  ====  ================================================================
offset   size  field
=======  ====  ================================================================
0        1     version of the terms: 1, or 3 with a scale
1        4     slot, 2**32 − 1 for none
5        4     slots
9        2     version 3: the scale, a bfloat16
…        4     tag: BLAKE2b of what the plan is bound to and of the bytes before
=======  ====  ================================================================

A payload repeats slot and tag in its header, so that it can be told from one that follows another plan.
"""

from __future__ import annotations

import hashlib
import struct

from sparsemean.errors import InvalidInput
from sparsemean.sampling.plan import Plan

SLOTS, SCALE = 1, 3
NO_SLOT = (1 << 32) - 1
TERMS = struct.Struct("<BII")
TAG_BYTES = 4
MOST_BYTES = TERMS.size + 2 + TAG_BYTES


def pack(plan: Plan, bound_to: bytes) -> bytes:
    """The plan for a node; ``bound_to`` stands for its run, node and round."""
    return _terms(plan) + tag(plan, bound_to)


def tag(plan: Plan, bound_to: bytes) -> bytes:
    """Four bytes that change with the plan and with what it is bound to."""
    return hashlib.blake2b(b"sparsemean plan" + bound_to + _terms(plan), digest_size=TAG_BYTES).digest()


def slot_field(plan: Plan) -> int:
    """The slot as it stands in plans and headers."""
    return NO_SLOT if plan.slot is None else plan.slot


def _terms(plan: Plan) -> bytes:
    if plan.scale is None:
        return TERMS.pack(SLOTS, slot_field(plan), plan.slots)
    return TERMS.pack(SCALE, slot_field(plan), plan.slots) + struct.pack("<f", plan.scale)[2:]


def unpack(blob: bytes, bound_to: bytes) -> Plan:
    """The plan in these bytes; refused where it is damaged, or was given to another node or for another round."""
    extra = {SLOTS: 0, SCALE: 2}.get(blob[0], -1) if blob else -1
    if extra < 0 or len(blob) != TERMS.size + extra + TAG_BYTES:
        raise InvalidInput("this is not a plan of this release; pass what server.plan(node) returned")
    _, slot, slots = TERMS.unpack_from(blob)
    scale = struct.unpack("<f", b"\0\0" + blob[TERMS.size : TERMS.size + 2])[0] if extra else None
    plan = Plan(None if slot == NO_SLOT else slot, slots, scale)
    if blob != pack(plan, bound_to):
        raise InvalidInput("the plan is of another run, node or round, or damaged; ask for server.plan(node) again")
    return plan
