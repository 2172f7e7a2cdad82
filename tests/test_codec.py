"""What binds a frame to its run, node and round, recomputed here from the specification."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean import codec, sampling
from sparsemean._names import SchemeName
from sparsemean.sampling import Plan
from sparsemean.wire.values import value_kind

VECTOR = np.arange(1.0, 9.0)


def scheme_named(name: SchemeName, k: int | float = 3, **options: Any) -> sm.Scheme:
    ratio: dict[str, Any] = {"ratio": 1.5} if name == "rand-k-spatial-opt" else {}
    return sm.named(name, k=k, **ratio, **options)


def reseal(blob: bytes, changes: dict[int, bytes], body: bytes | None = None) -> bytes:
    """The frame with other bytes at these offsets, its length and checksum set right."""
    head, body = bytearray(blob[:60]), blob[64:] if body is None else body
    for at, new in {48: struct.pack("<Q", len(body)), **changes}.items():
        head[at : at + len(new)] = new
    return bytes(head) + struct.pack("<I", zlib.crc32(bytes(head) + body)) + body


def blake(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=8).digest()


def test_digests_are_blake2b_of_canonical_json():
    run = sm.Run(sm.Scheme(sm.RandK(2), sm.Spatial("avg")), dim=8, seed=7, blocks=[3, 5])
    scheme = blake(
        '{"encoder":{"k":2,"shared":false,"type":"RandK"},"frame":1,'
        f'"sampling":{sampling.VERSION},"values":"float32"}}'
    )
    assert run.scheme_digest == scheme
    assert run.run_digest == blake(f'{{"blocks":[3,5],"dim":8,"scheme":"{scheme.hex()}","seed":7}}')
    assert run.digest == run.run_digest.hex()
    blob = sm.Client(run, "Göteborg").encode(VECTOR, 5)
    assert blob[8:16] == scheme
    assert blob[16:24] == run.run_digest
    assert blob[24:32] == hashlib.blake2b("Göteborg".encode(), digest_size=8).digest()
    assert struct.unpack_from("<QQQI", blob, 32) == (5, 8, len(blob) - 64, 0)


def test_nested_members_are_written_down_field_by_field():
    run = sm.Run(sm.named("induced", k=0.5, values="float64"), dim=8)
    encoder = {
        "type": "Induced",
        "biased": {"type": "TopK", "k": {"type": "Half", "of": 0.5, "larger": False}},
        "unbiased": {"type": "RandK", "k": {"type": "Half", "of": 0.5, "larger": True}, "shared": False},
    }
    content = {"frame": 1, "sampling": sampling.VERSION, "encoder": encoder, "values": "float64"}
    assert run.scheme_digest == blake(json.dumps(content, sort_keys=True, separators=(",", ":")))


@given(st.text(min_size=1).filter(lambda name: name.encode("utf-8", "ignore").decode() == name))
def test_node_digest_is_of_the_utf8_name(name):
    assert codec.node_digest(name) == hashlib.blake2b(name.encode(), digest_size=8).digest()


def test_the_decoder_and_the_memory_are_not_part_of_the_digest_and_all_else_is():
    base = sm.Run(sm.Scheme(sm.RandK(2)), dim=8, seed=7)
    for scheme in (sm.Scheme(sm.RandK(2), sm.Spatial("max")), sm.Scheme(sm.RandK(2), memory=sm.PerNode())):
        assert sm.Run(scheme, dim=8, seed=7).digest == base.digest
    others = [
        sm.Run(sm.Scheme(sm.RandK(3)), dim=8, seed=7),
        sm.Run(sm.Scheme(sm.RandK(0.25)), dim=8, seed=7),
        sm.Run(sm.Scheme(sm.RandK(2, shared=True)), dim=8, seed=7),
        sm.Run(sm.Scheme(sm.TopK(2)), dim=8, seed=7),
        sm.Run(sm.Scheme(sm.RandK(2), values="float64"), dim=8, seed=7),
        sm.Run(sm.Scheme(sm.RandK(2)), dim=9, seed=7),
        sm.Run(sm.Scheme(sm.RandK(2)), dim=8, seed=8),
        sm.Run(sm.Scheme(sm.RandK(2)), dim=8, seed=7, blocks=[4, 4]),
    ]
    assert len({base.digest, *(run.digest for run in others)}) == len(others) + 1


@pytest.mark.parametrize("values", ["float32", "float64"])
@pytest.mark.parametrize("name", sm.names())
def test_the_bytes_come_back_as_what_the_encoder_made(name, values):
    run = sm.Run(scheme_named(name, values=values), dim=8, seed=1)
    encoder = run.scheme.encoder
    state = encoder.start(8) if isinstance(encoder, sm.encoders.Stateful) else {}
    terms = Plan(1, 3, None if run.epochs is None else 4)
    plan = terms if run.planned else None
    made = encoder.encode(VECTOR, run.key("a", 4, plan), state)
    blob = sm.Client(run, "a").encode(VECTOR, 4, codec.pack_plan(run, "a", 4, terms))
    header, body = codec.open_frame(run, "a", blob)
    read = codec.read_payload(run, "a", header, body, plan)
    assert made is not None
    assert read is not None
    for ours, theirs in zip(made.parts, read.parts, strict=True):
        assert ours.coordinates.tolist() == theirs.coordinates.tolist()
        assert ours.scale == theirs.scale
        sent = ours.values.astype(value_kind(values).dtype)
        assert sent.tobytes() == theirs.values.astype(sent.dtype).tobytes()
    assert codec.pack(run, "a", 4, read, plan=plan) == blob


@pytest.mark.parametrize(
    ("at", "new", "error", "why"),
    [
        (8, bytes(8), sm.ForeignPayload, "another encoder"),
        (16, bytes(8), sm.ForeignPayload, "another dim, blocks or seed"),
        (40, struct.pack("<Q", 9), sm.ForeignPayload, "another dim"),
        (40, struct.pack("<Q", (1 << 63) - 1), sm.ForeignPayload, "another dim"),
        (24, bytes(8), sm.ForeignPayload, "not made by node 'a'"),
        (6, b"\x02", sm.MalformedPayload, "value kind"),
        (6, b"\x05", sm.MalformedPayload, "value kind"),
    ],
)
def test_a_frame_that_is_not_of_this_run_and_node_is_not_opened(at, new, error, why):
    run = sm.Run(scheme_named("rand-k"), dim=8)
    blob = sm.Client(run, "a").encode(VECTOR, 0)
    assert reseal(blob, {}) == blob
    with pytest.raises(error, match=why):
        codec.open_frame(run, "a", reseal(blob, {at: new}))


@pytest.mark.parametrize("values", ["float16", "bfloat16", "int8", "int4", "2-bit", "1-bit"])
@pytest.mark.parametrize("name", ["identity", "rand-k", "top-k", "wangni", "induced", "diana", "lag"])
def test_few_bits_are_drawn_from_the_key_of_node_and_round(name, values):
    run = sm.Run(scheme_named(name, values=values), dim=8, seed=1)
    vector = VECTOR / 7
    blob = sm.Client(run, "a").encode(vector, 4)
    assert sm.Client(run, "a").encode(vector, 4) == blob
    assert run.payload_bytes == len(blob) if run.payload_fixed else run.payload_bytes >= len(blob)
    encoder = run.scheme.encoder
    state = encoder.start(8) if isinstance(encoder, sm.encoders.Stateful) else {}
    made = encoder.encode(vector, run.key("a", 4), state)
    read = codec.read_payload(run, "a", *codec.open_frame(run, "a", blob))
    assert made is not None
    assert read is not None
    for ours, theirs in zip(made.parts, read.parts, strict=True):
        assert ours.coordinates.tolist() == theirs.coordinates.tolist()
        assert (ours.scale, ours.noise) == (theirs.scale, 0.0)
        spread = np.sqrt(12.0 * np.asarray(theirs.noise))  # s; or √2 u, where the error is below u
        assert np.all(np.abs(ours.values - theirs.values) <= spread + 1e-6)


def read(run: sm.Run, blob: bytes) -> object:
    return codec.read_payload(run, "a", *codec.open_frame(run, "a", blob))


@pytest.mark.parametrize("name", ["rand-k", "top-k", "wangni", "induced"])
def test_a_body_that_is_not_what_the_layout_says_is_refused(name):
    run = sm.Run(scheme_named(name), dim=8)
    blob = sm.Client(run, "a").encode(VECTOR, 0)
    for body in (blob[64:] + b"\0", blob[64:-1], b"", blob[64:] * 2):
        with pytest.raises(sm.MalformedPayload):
            read(run, reseal(blob, {}, body))
    for parts in (0, 1, 2, 3, 255):
        if parts != blob[7]:
            with pytest.raises(sm.MalformedPayload, match=f"{parts} parts"):
                read(run, reseal(blob, {7: bytes([parts])}))
    with pytest.raises(sm.MalformedPayload, match="unchanged"):
        read(run, reseal(blob, {5: b"\x01", 7: b"\0"}, b""))
