"""Plans on the wire: 13 bytes, or 23 and one for each ratio of an epoch; bound to run, node and round.

=======  ====  ================================================================
offset   size  field
=======  ====  ================================================================
0        1     version of the terms: 1, or 2 with an epoch
1        4     slot, 2**32 − 1 for none
5        4     slots
9        8     version 2: the round in which the epoch began
17       2     version 2: number of ratios
19       …     version 2: the ratios, a byte each
…        4     tag: BLAKE2b of what the plan is bound to and of the bytes before
=======  ====  ================================================================

A payload repeats slot and tag in its header, so that it can be told from one that follows another plan.
"""

from __future__ import annotations

import hashlib
import struct

from sparsemean.errors import InvalidInput
from sparsemean.sampling.clock import MOST_RATIOS
from sparsemean.sampling.plan import Plan

FRESH, EPOCH = 1, 2
NO_SLOT = (1 << 32) - 1
TERMS = struct.Struct("<BII")
CLOCK = struct.Struct("<QH")
TAG_BYTES = 4
UNKNOWN = "this is not a plan of this release; pass what server.plan(node) returned"
MOST_BYTES = TERMS.size + CLOCK.size + MOST_RATIOS + TAG_BYTES


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
    if plan.epoch is None:
        return TERMS.pack(FRESH, slot_field(plan), plan.slots)
    clock = CLOCK.pack(plan.epoch, len(plan.ratios)) + plan.ratios
    return TERMS.pack(EPOCH, slot_field(plan), plan.slots) + clock


def unpack(blob: bytes, bound_to: bytes, epochs: bool = False) -> Plan:
    """The plan in these bytes; refused where it is damaged, or was given to another node or for another round.

    ``epochs`` says whether the draw is one of epochs, whose terms have another version.
    """
    least = TERMS.size + (CLOCK.size if epochs else 0) + TAG_BYTES
    if len(blob) < least or blob[0] != (EPOCH if epochs else FRESH):
        raise InvalidInput(UNKNOWN)
    _, slot, slots = TERMS.unpack_from(blob)
    epoch, count = CLOCK.unpack_from(blob, TERMS.size) if epochs else (None, 0)
    if len(blob) != least + count:
        raise InvalidInput(UNKNOWN)
    plan = Plan(None if slot == NO_SLOT else slot, slots, epoch, blob[least - TAG_BYTES : len(blob) - TAG_BYTES])
    if blob != pack(plan, bound_to):
        raise InvalidInput("the plan is of another run, node or round, or damaged; ask for server.plan(node) again")
    return plan
