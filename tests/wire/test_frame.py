"""The frame, byte for byte as docs/wire.md has it."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

from sparsemean.errors import MalformedPayload
from sparsemean.wire import frame
from sparsemean.wire.frame import Header

HEADER = Header(
    kind=0,
    values=1,
    parts=2,
    scheme=bytes(range(1, 9)),
    run=bytes(range(11, 19)),
    node=bytes(range(21, 29)),
    round=0x0102030405060708,
    dim=1 << 40,
    basis=0xDEADBEEF,
)
BODY = b"sixteen bytes.. "


def seal(start: bytes, body: bytes = b"") -> bytes:
    """A frame from its first 60 bytes, with the right length and checksum."""
    start = start[:48] + struct.pack("<Q", len(body)) + start[56:60]
    return start + struct.pack("<I", zlib.crc32(start + body)) + body


def test_every_field_is_at_its_documented_place():
    blob = frame.pack(HEADER, BODY)
    assert len(blob) == 64 + len(BODY)
    assert frame.HEADER_BYTES == 64
    assert blob[0:4] == b"SPMN"
    assert blob[4] == 1
    assert blob[5] == 0
    assert blob[6] == 1
    assert blob[7] == 2
    assert blob[8:16] == HEADER.scheme
    assert blob[16:24] == HEADER.run
    assert blob[24:32] == HEADER.node
    assert blob[32:40] == bytes.fromhex("0807060504030201")
    assert blob[40:48] == bytes.fromhex("0000000000010000")
    assert blob[48:56] == bytes.fromhex("1000000000000000")
    assert blob[56:60] == bytes.fromhex("efbeadde")
    assert int.from_bytes(blob[60:64], "little") == zlib.crc32(blob[:60] + BODY)
    assert blob[64:] == BODY
    assert blob == seal(blob[:60], BODY)


def test_what_is_packed_comes_back():
    header, body = frame.unpack(memoryview(frame.pack(HEADER, BODY)))
    assert header == HEADER
    assert bytes(body) == BODY


def test_every_truncation_and_every_addition_is_refused():
    blob = frame.pack(HEADER, BODY)
    for cut in range(len(blob)):
        with pytest.raises(MalformedPayload):
            frame.unpack(memoryview(blob[:cut]))
    with pytest.raises(MalformedPayload, match="announces"):
        frame.unpack(memoryview(blob + b"\0"))


def test_every_flipped_bit_is_refused():
    blob = frame.pack(HEADER, BODY)
    for bit in range(8 * len(blob)):
        flipped = bytearray(blob)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(MalformedPayload):
            frame.unpack(memoryview(flipped))


def test_two_and_three_flipped_bits_are_refused():
    blob = np.frombuffer(frame.pack(HEADER, BODY), np.uint8)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        flipped = np.unpackbits(blob)
        flipped[rng.choice(flipped.size, int(rng.integers(2, 4)), replace=False)] ^= 1
        with pytest.raises(MalformedPayload):
            frame.unpack(memoryview(np.packbits(flipped).tobytes()))


@pytest.mark.parametrize(
    ("at", "value", "why"),
    [
        (0, b"SPMM", "not a sparsemean frame"),
        (4, b"\x00", "version 0"),
        (4, b"\x03", "version 3"),
        (5, b"\x02", "unknown kind"),
        (5, b"\xff", "unknown kind"),
        (5, b"\x01", "unknown kind"),  # "unchanged", with a body
    ],
)
def test_a_sealed_frame_of_another_make_is_refused(at, value, why):
    start = bytearray(frame.pack(HEADER, BODY)[:60])
    start[at : at + len(value)] = value
    with pytest.raises(MalformedPayload, match=why):
        frame.unpack(memoryview(seal(bytes(start), BODY)))


def test_unchanged_has_neither_body_nor_parts():
    start = bytearray(frame.pack(HEADER, b"")[:60])
    start[5] = 1
    with pytest.raises(MalformedPayload, match="unknown kind"):
        frame.unpack(memoryview(seal(bytes(start))))
    start[7] = 0
    header, body = frame.unpack(memoryview(seal(bytes(start))))
    assert (header.kind, header.parts, len(body)) == (frame.UNCHANGED, 0, 0)


@pytest.mark.parametrize("length", [0, 15, 17, (1 << 31) - 1, (1 << 63) - 1, (1 << 64) - 1])
def test_a_length_that_is_not_the_bodys_is_refused(length):
    blob = bytearray(frame.pack(HEADER, BODY))
    blob[48:56] = struct.pack("<Q", length)
    blob[60:64] = struct.pack("<I", zlib.crc32(blob[:60] + BODY))
    with pytest.raises(MalformedPayload, match="announces"):
        frame.unpack(memoryview(bytes(blob)))
