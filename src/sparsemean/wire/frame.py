"""The frame: 64 bytes of header, then the parts, all little-endian (``docs/wire.md`` is the specification).

Version 2 is for runs whose nodes follow a plan. Run, node, round and plan imply all of a header but kind, length, basis
and checksum (``codec.implied_header``); ``wire.compact`` is the form that leaves it out.

=======  ====  ==========================================================
offset   size  field
=======  ====  ==========================================================
0        4     magic ``SPMN``
4        1     version of frame, sampling and value formats: 1 or 2
5        1     kind: 0 values, 1 unchanged (no body)
6        1     code of the value kind
7        1     number of parts
8        8     scheme digest: encoder and value kind
16       8     run digest: the above, dimension, blocks, seed
24       8     node digest
32       8     round
40       8     version 1: dimension
40       4     version 2: slot, 2**32 − 1 for none
44       4     version 2: tag of the plan (``wire.plan``)
48       8     length of the body
56       4     basis: which node state the payload builds on, 0 for none
60       4     CRC-32 of the 60 bytes before and the body
=======  ====  ==========================================================
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from sparsemean.errors import MalformedPayload
from sparsemean.wire.checksum import crc32

MAGIC = b"SPMN"
PLAIN, PLANNED = 1, 2
VERSIONS = (PLAIN, PLANNED)
VALUES, UNCHANGED = 0, 1
HEADER = struct.Struct("<4sBBBB8s8s8sQ8sQI")
DIM = struct.Struct("<Q")
PLAN = struct.Struct("<I4s")
CRC = struct.Struct("<I")
HEADER_BYTES = HEADER.size + CRC.size


@dataclass(frozen=True, slots=True)
class Header:
    """What a frame says of itself.

    Attributes
    ----------
    kind : int
        ``VALUES`` or ``UNCHANGED``.
    values : int
        Code of the value kind.
    parts : int
        How many parts the body has.
    scheme, run, node : bytes
        Digests that bind the frame to encoder, run and node.
    round : int
    dim : int
        Length of the vector; 0 in version 2, which leaves it to the run digest.
    basis : int
        Tag of the node state that the payload builds on, 0 for none.
    slot : int
        Version 2: the slot of the node's plan.
    plan : bytes
        Version 2: the tag of the plan; empty in version 1.
    """

    kind: int
    values: int
    parts: int
    scheme: bytes
    run: bytes
    node: bytes
    round: int
    dim: int
    basis: int
    slot: int = 0
    plan: bytes = b""

    @property
    def version(self) -> int:
        """Which version of the frame it is in."""
        return PLANNED if self.plan else PLAIN


def frame_digest(blob: bytes) -> str:
    """Sixteen bytes, in hex, that stand for a frame: of its header, which holds the checksum of its body."""
    return hashlib.blake2b(blob[:HEADER_BYTES], digest_size=16).hexdigest()


def start(header: Header, length: int) -> bytes:
    """The 60 bytes in front of the checksum, for a body of this length."""
    return HEADER.pack(
        MAGIC,
        header.version,
        header.kind,
        header.values,
        header.parts,
        header.scheme,
        header.run,
        header.node,
        header.round,
        PLAN.pack(header.slot, header.plan) if header.plan else DIM.pack(header.dim),
        length,
        header.basis,
    )


def pack(header: Header, body: bytes) -> bytes:
    """A whole frame."""
    before = start(header, len(body))
    return b"".join((before, CRC.pack(crc32(body, crc32(before))), body))


def unpack(blob: memoryview) -> tuple[Header, memoryview]:
    """Header and body of a whole, undamaged frame."""
    if len(blob) < HEADER_BYTES:
        raise MalformedPayload(f"a frame has at least {HEADER_BYTES} bytes, this one has {len(blob)}")
    magic, version, kind, values, parts, scheme, run, node, round_, field, length, basis = HEADER.unpack_from(blob)
    if magic != MAGIC:
        raise MalformedPayload("this is not a sparsemean frame")
    if version not in VERSIONS:
        raise MalformedPayload(
            f"frame version {version} is not known here, only {VERSIONS}; use the same release on both sides"
        )
    body = blob[HEADER_BYTES:]
    if length != len(body):
        raise MalformedPayload(f"the frame announces {length} bytes of body and has {len(body)}; was it truncated?")
    (crc,) = CRC.unpack_from(blob, HEADER.size)
    if crc != crc32(body, crc32(blob[: HEADER.size])):
        raise MalformedPayload("the checksum does not fit: the frame was damaged on its way; send it again")
    if kind not in (VALUES, UNCHANGED) or (kind == UNCHANGED and (length or parts)):
        raise MalformedPayload("the frame is of an unknown kind")
    (dim,), (slot, plan) = ((0,), PLAN.unpack(field)) if version == PLANNED else (DIM.unpack(field), (0, b""))
    return Header(kind, values, parts, scheme, run, node, round_, dim, basis, slot, plan), body
