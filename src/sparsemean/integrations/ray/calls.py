"""What a shard may be asked: arguments are checked before anything is written down or counted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import sparsemean as sm
from sparsemean.decoding.summary import Summary
from sparsemean.integrations.ray.pieces import UNCHANGED, Piece, Sent
from sparsemean.integrations.ray.round_end import RoundEnd, check_summary, is_whole
from sparsemean.payload import Payload
from sparsemean.sampling import Dealt, check_dealt, dealt_draws
from sparsemean.server.roster import Acceptance, Roster

MOST = (1 << 63) - 1  # what a journal has room for


def pieces_in(given: object) -> list[Piece]:
    """The pieces of a call, one at least."""
    pieces = list(given) if isinstance(given, Sequence) and not isinstance(given, str | bytes) else []
    if not pieces or not all(isinstance(piece, Piece) for piece in pieces):
        raise sm.MalformedPayload(f"a shard takes a list of pieces, got {given!r:.100}")
    return pieces


def opened(roster: Roster, round: int, pieces: Sequence[Piece], lo: int, hi: int) -> list[Payload | None]:
    """What the pieces hold, if they are new and all right; nothing is counted yet."""
    if round != roster.round:
        raise sm.WrongRound(f"pieces of round {round!r}; the open round is {roster.round}")
    payloads: list[Payload | None] = []
    here: set[str] = set()
    for piece in pieces:
        payloads.append(opened_piece(roster, round, piece, lo, hi))
        node = piece.acceptance.receipt.node
        if node in roster.accepted or node in here:
            raise sm.ConflictingPayload(f"node {node!r} already has a piece in round {round}")
        here.add(node)
    return payloads


def opened_piece(roster: Roster, round: int, piece: Piece, lo: int, hi: int) -> Payload | None:
    """What one piece holds for the range [lo, hi)."""
    run, facts = roster.run, roster.run.scheme.encoder.facts
    check_acceptance(piece.acceptance, round, len(run.blocks))
    whose = f"the piece of node {piece.acceptance.receipt.node!r}"
    if not isinstance(piece.afresh, bool) or (piece.afresh and not run.in_step):
        raise sm.MalformedPayload(f"{whose} says afresh={piece.afresh!r}, which its encoder does not do")
    plan = roster.plan(piece.acceptance.receipt.node, round)
    if piece.plan != (None if plan is None else replace(plan, scale=None)):
        raise sm.WrongPlan(f"{whose} follows {piece.plan!r:.100}, which it has not in round {round}")
    if not is_whole(piece.choice, UNCHANGED, len(run.encoders) - 1) or not isinstance(piece.sent, tuple):
        raise sm.MalformedPayload(f"{whose} is of encoder {piece.choice!r}, and the run has {len(run.encoders)}")
    parts = () if piece.choice == UNCHANGED else run.layouts[piece.choice]
    if (piece.choice == UNCHANGED and not facts.skips) or len(piece.sent) != len(parts):
        raise sm.MalformedPayload(f"{whose} has {len(piece.sent)} parts, other than its encoder makes")
    for layout, sent in zip(parts, piece.sent, strict=True):
        _check_sent(sent, whose, layout.fixed, layout.count, run.value_kind.dtype, lo, hi)
    payload = piece.payload(run, lo, hi)
    for part in () if payload is None else payload.parts:
        if part.coordinates.size != part.values.size:
            raise sm.MalformedPayload(
                f"{whose} has {part.values.size} values for {part.coordinates.size} coordinates of [{lo}, {hi})"
            )
    return payload


def check_acceptance(acceptance: object, round: int, blocks: int) -> None:
    """Refuse what does not describe a payload of this round."""
    receipt = acceptance.receipt if isinstance(acceptance, Acceptance) else None
    if not isinstance(acceptance, Acceptance) or not isinstance(receipt, sm.Receipt):
        raise sm.MalformedPayload(f"{acceptance!r:.100} does not describe a payload")
    if not (isinstance(receipt.node, str) and receipt.node and isinstance(receipt.digest, str)):
        raise sm.MalformedPayload(f"{receipt!r:.200} is no receipt")
    if receipt.round != round or isinstance(receipt.round, bool):
        raise sm.WrongRound(f"the receipt of node {receipt.node!r} is of round {receipt.round!r}, not {round}")
    if not _is_array(acceptance.weight, np.dtype(np.float64), blocks) or not np.all(
        (acceptance.weight >= 0) & np.isfinite(acceptance.weight)
    ):
        raise sm.MalformedPayload(f"the weight of node {receipt.node!r} is not {blocks} numbers from 0 on")
    if not (is_whole(acceptance.bytes, 0, MOST) and is_whole(acceptance.basis, 0, MOST)):
        raise sm.MalformedPayload(
            f"bytes and basis of node {receipt.node!r} are {acceptance.bytes!r} and {acceptance.basis!r}"
        )
    wanted = acceptance.wanted_scale
    if wanted is not None and not (isinstance(wanted, float) and 0.0 <= wanted < math.inf):
        raise sm.MalformedPayload(f"the scale that node {receipt.node!r} would like is {wanted!r}")


def _check_sent(sent: object, whose: str, fixed: bool, most: int, dtype: np.dtype[Any], lo: int, hi: int) -> None:
    if not isinstance(sent, Sent):
        raise sm.MalformedPayload(f"{whose} holds {type(sent).__name__} in place of values")
    values, noise, at = sent.values, sent.noise, sent.at
    if not _is_array(values, dtype) or not np.all(np.isfinite(values)):
        raise sm.MalformedPayload(f"{whose} has other values than finite ones of {dtype}")
    if not isinstance(noise, float) and not _is_array(noise, np.dtype(np.float64), values.size):
        raise sm.MalformedPayload(f"{whose} has other than one variance of noise for each of its {values.size} values")
    if not np.all((np.asarray(noise) >= 0) & np.isfinite(noise)):
        raise sm.MalformedPayload(f"{whose} has variances of noise that are negative or not finite")
    if fixed != (at is None):
        raise sm.MalformedPayload(f"{whose} {'lists' if fixed else 'does not list'} its coordinates")
    if at is None:
        return
    if not _is_array(at, np.dtype(np.int64), values.size) or values.size > most:
        raise sm.MalformedPayload(f"{whose} has {values.size} values, and other coordinates than one for each")
    if at.size and not (lo <= at[0] and at[-1] < hi and np.all(at[1:] > at[:-1])):
        raise sm.MalformedPayload(f"{whose} lists coordinates out of order, or beyond [{lo}, {hi})")


def terms_dealt(given: Dealt, encoders: int, in_epoch: bool) -> Dealt:
    """The nodes that have slots, of one draw or one for each encoder; or, ``in_epoch``, the next ratio."""
    try:
        check_dealt(given)
    except ValueError as wrong:
        raise sm.InvalidInput(f"slots are dealt to a list of names, each once; got {given!r:.100}: {wrong}") from None
    if isinstance(given, int):
        if not in_epoch:
            raise sm.InvalidInput(f"no epoch is on that could go on by the ratio {given}; deal slots to nodes first")
        return given
    draws = dealt_draws(given)
    if not all(name for draw in draws for name in draw) or len(draws) not in (1, encoders):
        raise sm.InvalidInput(f"slots are dealt to named nodes, of all encoders or of each; got {given!r:.100}")
    return given


def check_same(roster: Roster, pieces: Sequence[Piece]) -> None:
    """Refuse other pieces in place of those that this call is said to repeat."""
    for piece in pieces:
        check_acceptance(piece.acceptance, roster.round, len(roster.run.blocks))
        before = roster.accepted.get(piece.acceptance.receipt.node)
        if before is None or before.receipt != piece.acceptance.receipt:
            raise sm.ConflictingPayload(
                f"node {piece.acceptance.receipt.node!r} has no such piece in round {roster.round}"
            )


def check_end(ending: object) -> RoundEnd:
    """Refuse what does not say how a round ends."""
    if not isinstance(ending, RoundEnd) or ending.kind not in ("close", "skip"):
        raise sm.InvalidInput(f"a round ends with a RoundEnd, got {ending!r:.100}")
    if not is_whole(ending.after, -1, MOST) or not is_whole(ending.most_nodes, 1, MOST):
        raise sm.InvalidInput(f"an end after record {ending.after!r} with {ending.most_nodes!r} nodes at most is none")
    return ending


def check_end_summary(found: object, own: Summary) -> None:
    """Refuse a summary of all ranges to which this range, with ``own``, does not belong."""
    try:
        summary = check_summary(found, own)
    except ValueError as wrong:
        raise sm.InvalidInput(f"the summary of all shards is none of this run: {wrong}") from None
    if not summary.of_same_nodes(own):
        raise sm.InvalidInput("the summary of all shards is of other nodes or weights than came here")


def _is_array(given: object, dtype: np.dtype[Any], size: int | None = None) -> bool:
    """Whether it is one row of such numbers."""
    if not isinstance(given, np.ndarray) or given.ndim != 1 or given.dtype != dtype:
        return False
    return size is None or given.size == size
