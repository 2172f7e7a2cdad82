"""Payload ↔ bytes of a run: what binds a frame to its run, node, round and plan."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from sparsemean._types import Floats, Ints
from sparsemean.errors import ForeignPayload, InvalidInput, MalformedPayload, OutOfStep, WrongPlan
from sparsemean.payload import Part, Payload
from sparsemean.run import Run
from sparsemean.sampling import Plan
from sparsemean.wire import compact, frame, parts
from sparsemean.wire import plan as wire_plan
from sparsemean.wire.checksum import crc32
from sparsemean.wire.frame import Header
from sparsemean.wire.reader import Reader
from sparsemean.wire.secret import Secret
from sparsemean.wire.values import bounded
from sparsemean.wire.values.modulo import Modulo, sketch_bytes, sketch_of


@dataclass(frozen=True, slots=True)
class Known:
    """What a receiver knows of a payload that a compact frame leaves out.

    Attributes
    ----------
    round : int
        The one it is of (``round_of``).
    plans : sequence of Plan
        Those that it may follow; empty where the run has none.
    basis : int
        Tag of the state or reference that it may build on; 0 where it can build on none.
    secret : Secret
        The node's.
    trusted : bool
        The frame was verified before, so that neither secret nor tag matter; there is one plan at most.
    """

    round: int
    plans: Sequence[Plan] = ()
    basis: int = 0
    secret: Secret = field(default_factory=Secret)
    trusted: bool = False


def node_digest(node: str) -> bytes:
    """Eight bytes that stand for a node's name in its frames."""
    return hashlib.blake2b(node.encode(), digest_size=8).digest()


def pack(
    run: Run,
    node: str,
    round: int,
    payload: Payload | None,
    basis: int = 0,
    plan: Plan | None = None,
    sketch: Floats | None = None,
    secret: Secret | None = None,
) -> bytes:
    """The frame for a payload; for None, the header that says "unchanged".

    ``sketch`` is what the sender of modulo values is told of the server's expectation; ``secret`` is that of the node,
    for compact frames.
    """
    run = run.followed(plan)
    sent, choice = (payload.parts, payload.choice) if payload is not None else ((), 0)
    key = run.key(node, round, plan)
    layouts = run.layouts[choice] if sent else ()
    travelling = [sent] if len(layouts) == 1 else [(part,) for part in sent]  # classes of coordinates travel as one
    kind = run.value_kind
    if isinstance(kind, Modulo):
        kind = replace(kind, sketch=sketch)
    body = b"".join(
        parts.pack(several, layout, run.dim, kind, key) for several, layout in zip(travelling, layouts, strict=True)
    )
    if payload is not None and len(run.encoders) > 1:
        body = bytes([choice]) + body
    says = frame.UNCHANGED if payload is None else frame.VALUES
    header = implied_header(run, node, round, plan, says, len(layouts), basis)
    if run.compact is None:
        return frame.pack(header, body)
    return compact.start(run.compact, header, body, secret or Secret()) + body


def implied_header(
    run: Run, node: str, round: int, plan: Plan | None, kind: int = frame.VALUES, parts: int = 1, basis: int = 0
) -> Header:
    """The header of a node's frame in a round: what both sides can work out, and so need not send in a compact form."""
    run = run.followed(plan)
    return Header(
        kind=kind,
        values=run.value_kind.code,
        parts=parts,
        scheme=run.scheme_digest,
        run=run.run_digest,
        node=node_digest(node),
        round=round,
        dim=run.dim if plan is None else 0,
        basis=basis,
        slot=0 if plan is None else wire_plan.slot_field(plan),
        plan=b"" if plan is None else wire_plan.tag(plan, _bound_to(run, node, round)),
    )


def pack_plan(run: Run, node: str, round: int, plan: Plan) -> bytes:
    """The plan as bytes, for its node; empty where the run's nodes need none."""
    return wire_plan.pack(plan, _bound_to(run, node, round)) if run.planned else b""


def unpack_plan(run: Run, node: str, round: int, blob: bytes) -> Plan:
    """The plan that ``pack_plan`` wrote for this node and round."""
    option = wire_plan.option_of(blob) if run.auto else None
    if option is not None:
        if option >= len(run.options):
            raise InvalidInput(wire_plan.UNKNOWN)
        run = run.options[option]
    return wire_plan.unpack(blob, _bound_to(run, node, round), run.epochs is not None, option)


def _bound_to(run: Run, node: str, round: int) -> bytes:
    return run.run_digest + node_digest(node) + round.to_bytes(8, "little")


def followed_plan(run: Run, node: str, header: Header, plans: Sequence[Plan]) -> Plan:
    """Which of these plans a frame follows; refused where it is none of them."""
    for plan in plans:
        implied = implied_header(run, node, header.round, plan)
        if (header.slot, header.plan, header.scheme) == (implied.slot, implied.plan, implied.scheme):
            return plan
    slot = "none" if header.slot == wire_plan.NO_SLOT else header.slot
    raise WrongPlan(
        f"the payload of node {node!r} follows another plan (slot {slot}) than the one for round {header.round} "
        f"({plans[0]}); encode with plan=server.plan({node!r}) of this round, or with the server's list of nodes"
    )


def frame_digest(run: Run, blob: bytes) -> str:
    """What stands for a frame in its receipt."""
    return frame.frame_digest(blob) if run.compact is None else compact.frame_digest(blob)


def check_authenticates(run: Run) -> None:
    """Refuse a secret where frames are full, which have a checksum only."""
    if run.compact is None:
        raise InvalidInput('full frames cannot carry what a secret makes; leave it out, or use Run(…, frame="compact")')


def round_of(run: Run, blob: bytes | memoryview, near: int) -> int:
    """The round that a compact frame says it is of, around this one; not verified."""
    assert run.compact is not None
    return compact.round_near(compact.parse(run.compact, memoryview(blob)), near)


def open_frame(run: Run, node: str, blob: bytes | memoryview, known: Known | None = None) -> tuple[Header, memoryview]:
    """Header and body of a frame of this run and node; whether its round is right is for the caller to say.

    A compact frame can be opened only with what is ``known``, and only where that is right.
    """
    if run.compact is not None:
        if known is None:
            raise InvalidInput("compact frames leave out what the receiver knows; give known=Known(round, …)")
        return _open_compact(run, node, memoryview(blob), known)
    header, body = frame.unpack(memoryview(blob))
    run = next((option for option in run.options if header.scheme == option.scheme_digest), run)
    if header.scheme != run.scheme_digest:
        raise ForeignPayload("the payload was made with another encoder, value kind or version; give the node this Run")
    if header.version != run.frame_version:
        raise MalformedPayload("the frame's version contradicts its digest")
    if header.run != run.run_digest or header.dim != (0 if run.planned else run.dim):
        raise ForeignPayload("the payload belongs to a run with another dim, blocks or seed; give the node this Run")
    if header.node != node_digest(node):
        raise ForeignPayload(f"the payload was not made by node {node!r}; check which client sent it")
    if header.values != run.value_kind.code:
        raise MalformedPayload("the frame's value kind contradicts its digest")
    return header, body


def _open_compact(run: Run, node: str, blob: memoryview, known: Known) -> tuple[Header, memoryview]:
    form, secret = run.compact, known.secret
    assert form is not None
    parsed = compact.parse(form, blob)
    if parsed.round != known.round % compact.ROUNDS:
        raise MalformedPayload(f"the frame is not of round {known.round}")
    choice = parsed.body[0] if len(run.encoders) > 1 and parsed.body else 0
    parts = len(run.layouts[choice]) if choice < len(run.layouts) and parsed.kind == frame.VALUES else 0
    basis = known.basis if parsed.builds else 0
    plans: Sequence[Plan | None] = known.plans or (None,)
    headers = [implied_header(run, node, known.round, plan, parsed.kind, parts, basis) for plan in plans]
    if not parsed.builds or basis:
        for header in headers:
            if known.trusted or compact.fits(form, parsed, header, secret):
                return header, parsed.body
    if form.checked:
        compact.check(parsed, headers[0], secret, node)
        if parsed.builds:
            raise out_of_step(node, run.relative)
    if secret and any(compact.fits(form, parsed, header, Secret()) for header in headers):
        raise ForeignPayload(f"the payload of node {node!r} was made without its secret; give Client(…, secret=…)")
    raise MalformedPayload(
        f"the tag does not fit node {node!r} in round {known.round}: the frame was damaged on its way, or made in "
        "another run, by another node, plan or secret; send it again, and if that is refused compare both sides"
    )


def out_of_step(node: str, relative: bool) -> OutOfStep:
    """Why a payload is refused that builds on another state, or is relative to another mean, than is known here."""
    if relative:
        return OutOfStep(
            f"node {node!r} sends the difference to a mean that is not the reference here; encode with "
            "reference=server.reference, the same to the bit, or without a reference"
        )
    return OutOfStep(
        f"node {node!r} builds on a state unknown here; if the receipt of its last payload was lost, encode "
        "and send that once more for delivered(); else reset() its client, and send again"
    )


def read_payload(run: Run, node: str, header: Header, body: memoryview, plan: Plan | None = None) -> Payload | None:
    """The payload in an opened frame, which follows this plan; None where it says "unchanged"."""
    if header.round >> 63:
        raise MalformedPayload("the frame is of a round beyond 2^63 − 1, which there cannot be")
    run = run.followed(plan)
    if header.kind == frame.UNCHANGED:
        if not run.scheme.encoder.facts.skips:
            raise MalformedPayload("the frame says 'unchanged', which only nodes of a Lazy encoder may say")
        return None
    reader = Reader(body)
    choice = reader.take(1)[0] if len(run.encoders) > 1 else 0
    if choice >= len(run.encoders):
        raise MalformedPayload(f"the frame is of encoder {choice}, and the run has {len(run.encoders)}")
    layouts = run.layouts[choice]
    if header.parts != len(layouts):
        raise MalformedPayload(f"the frame has {header.parts} parts where the encoder makes {len(layouts)}")
    kind = run.value_kind
    key = run.key(node, header.round, plan)
    if isinstance(kind, Modulo) and run.sketched:
        read: tuple[Part, ...] = (parts.unpack_wrapped(reader, layouts[0], run.dim, kind, key),)
    else:
        read = tuple(part for layout in layouts for part in parts.unpack(reader, layout, run.dim, kind, key))
    reader.finish()
    wanted = [part.wanted_scale for part in read if part.wanted_scale is not None]
    slots = 0 if plan is None else plan.slots
    return Payload(read, choice, slots, max(wanted, default=None), split=len(read) > len(layouts))


def pack_sketch(run: Run, node: str, round: int, expected: Callable[[Ints], Floats | float]) -> bytes:
    """What a node is told of the server's expectation, a function of the coordinates; empty where it needs nothing."""
    if not run.sketched:
        return b""
    own, (layout,) = run.key(node, round).child(run.layout[0].part), run.layout
    at = np.arange(run.dim) if layout.where == "all" else run.coordinates(node, round)[0]
    return sketch_of(np.zeros(at.size) + expected(at), own).tobytes()


def unpack_sketch(run: Run, blob: bytes) -> Floats | None:
    """The sketch that ``pack_sketch`` wrote; None where it is empty."""
    if not blob:
        return None
    if not run.sketched:
        raise InvalidInput(
            "nodes of this run have no use for a sketch, which is for a memory and at least 512 modulo values of x, "
            "drawn without plans; leave it out"
        )
    sketch = np.frombuffer(blob, "<f4") if len(blob) == sketch_bytes(run.layout[0].count) else np.full(1, np.nan)
    if not bounded(sketch):
        raise InvalidInput("this is no sketch of this run; pass what server.sketch(node) returned in this round")
    return sketch


def reference_tag(reference: Floats) -> int:
    """What stands for a reference in the ``basis`` of frames that are relative to it: a checksum, never 0."""
    return crc32(np.ascontiguousarray(reference, "<f4").tobytes()) or 1


def next_basis(basis: int, blob: bytes) -> int:
    """The tag of the state after this payload: a checksum of all payloads since the node began, never 0."""
    return crc32(blob, basis) or 1
