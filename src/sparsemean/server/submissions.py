"""From bytes to a submission: whole, of this run, node and plan, of a round that may still count, and clipped."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemean import codec
from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.inputs import node_name, weight_of
from sparsemean.results import Receipt
from sparsemean.run import Run
from sparsemean.server.clip import Clip
from sparsemean.server.roster import Roster, Submission
from sparsemean.wire.frame import frame_digest

Weight = float | Sequence[float] | Doubles
Blob = bytes | bytearray | memoryview


def submission_of(run: Run, clip: Clip | None, roster: Roster, node: str, blob: Blob, weight: Weight) -> Submission:
    """The submission in these bytes; raises what is wrong with them, and changes nothing."""
    node, weights = node_name(node), weight_of(weight, len(run.blocks))
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise InvalidInput(f"a payload is bytes, not {type(blob).__name__}")
    blob = bytes(blob)
    header, body = codec.open_frame(run, node, blob)
    roster.check_round(header.round)
    receipt = Receipt(node, header.round, frame_digest(blob))
    plans = roster.plans(node, header.round)
    plan = codec.followed_plan(run, node, header, plans) if plans else None
    payload = codec.read_payload(run, node, header, body, plan)
    reference = roster.reference
    if payload is not None and reference is not None and header.round == reference.round:  # others can only repeat
        payload = reference.absolute(payload, header.basis, node)
    if payload is not None and clip is not None:
        payload = clip.clipped(payload)
    submission = Submission(receipt, weights, blob, header.basis, payload, plan)
    roster.check_choice(submission)
    return submission
