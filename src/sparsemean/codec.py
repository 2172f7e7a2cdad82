"""Payload ↔ bytes of a run: what binds a frame to its run, node and round."""

from __future__ import annotations

import hashlib

from sparsemean.errors import ForeignPayload, MalformedPayload
from sparsemean.payload import Payload
from sparsemean.run import Run
from sparsemean.wire import frame, parts
from sparsemean.wire.checksum import crc32
from sparsemean.wire.frame import Header
from sparsemean.wire.reader import Reader


def node_digest(node: str) -> bytes:
    """Eight bytes that stand for a node's name in its frames."""
    return hashlib.blake2b(node.encode(), digest_size=8).digest()


def pack(run: Run, node: str, round: int, payload: Payload | None, basis: int = 0) -> bytes:
    """The frame for a payload; for None, the header that says "unchanged"."""
    kind = run.value_kind
    sent, choice = (payload.parts, payload.choice) if payload is not None else ((), 0)
    key = run.key(node, round)
    body = b"".join(
        parts.pack(part, layout, run.dim, kind, key)
        for part, layout in zip(sent, run.layouts[choice] if sent else (), strict=True)
    )
    if payload is not None and len(run.encoders) > 1:
        body = bytes([choice]) + body
    header = Header(
        kind=frame.UNCHANGED if payload is None else frame.VALUES,
        values=kind.code,
        parts=len(sent),
        scheme=run.scheme_digest,
        run=run.run_digest,
        node=node_digest(node),
        round=round,
        dim=run.dim,
        basis=basis,
    )
    return frame.pack(header, body)


def open_frame(run: Run, node: str, blob: bytes | memoryview) -> tuple[Header, memoryview]:
    """Header and body of a frame of this run and node; whether its round is right is for the caller to say."""
    header, body = frame.unpack(memoryview(blob))
    if header.scheme != run.scheme_digest:
        raise ForeignPayload("the payload was made with another encoder, value kind or version; give the node this Run")
    if header.run != run.run_digest or header.dim != run.dim:
        raise ForeignPayload("the payload belongs to a run with another dim, blocks or seed; give the node this Run")
    if header.node != node_digest(node):
        raise ForeignPayload(f"the payload was not made by node {node!r}; check which client sent it")
    if header.values != run.value_kind.code:
        raise MalformedPayload("the frame's value kind contradicts its digest")
    return header, body


def read_payload(run: Run, node: str, header: Header, body: memoryview) -> Payload | None:
    """The payload in an opened frame; None where it says "unchanged"."""
    if header.round >> 63:
        raise MalformedPayload("the frame is of a round beyond 2^63 − 1, which there cannot be")
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
    key = run.key(node, header.round)
    read = tuple(parts.unpack(reader, layout, run.dim, kind, key) for layout in layouts)
    reader.finish()
    return Payload(read, choice)


def next_basis(basis: int, blob: bytes) -> int:
    """The tag of the state after this payload: a checksum of all payloads since the node began, never 0."""
    return crc32(blob, basis) or 1
