"""From bytes to a submission: whole, of this run, node and plan, of a round that may still count, and clipped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sparsemean import codec
from sparsemean._types import Doubles
from sparsemean.codec import Known
from sparsemean.errors import ForeignPayload, InvalidInput, MalformedPayload, OutOfStep
from sparsemean.inputs import node_name, weight_of
from sparsemean.results import Receipt
from sparsemean.run import Run
from sparsemean.server.clip import Clip
from sparsemean.server.roster import Roster, Submission
from sparsemean.server.secrets import Secrets
from sparsemean.wire.frame import Header

Weight = float | Sequence[float] | Doubles
Blob = bytes | bytearray | memoryview


def submission_of(
    run: Run,
    clip: Clip | None,
    roster: Roster,
    node: str,
    blob: Blob,
    weight: Weight,
    secrets: Secrets | None = None,
    verified: bool = False,
) -> Submission:
    """The submission in these bytes; raises what is wrong with them, and changes nothing.

    ``secrets`` are those of compact frames. Frames of the journal were ``verified`` before, and need none.
    """
    node, weights = node_name(node), weight_of(weight, len(run.blocks))
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise InvalidInput(f"a payload is bytes, not {type(blob).__name__}")
    blob = bytes(blob)
    digest = codec.frame_digest(run, blob)
    if run.compact is None:
        header, body = codec.open_frame(run, node, blob)
    elif repeated := roster.receipt(node, digest):  # its tag is of a state that may be gone
        return Submission(repeated, weights, blob, 0, None)
    else:
        header, body = _open_compact(run, roster, node, blob, None if verified else secrets or Secrets(run))
    roster.check_round(header.round)
    receipt = Receipt(node, header.round, digest)
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


def _open_compact(
    run: Run, roster: Roster, node: str, blob: bytes, secrets: Secrets | None
) -> tuple[Header, memoryview]:
    """Header and body of a compact frame, by what the roster knows of its node in the round that it says it is of."""
    round = codec.round_of(run, blob, roster.round)
    known = Known(round, roster.plans(node, round), roster.basis(node, round), trusted=secrets is None)
    if secrets is not None:
        known = replace(known, secret=secrets.of(node))
    try:
        return codec.open_frame(run, node, blob, known)
    except OutOfStep:
        roster.check_open(round)  # of other rounds no basis is known
        raise
    except (MalformedPayload, ForeignPayload):
        if run.planned:
            roster.check_round(round)  # nor a plan, of others than these two
        raise
