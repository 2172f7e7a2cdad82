"""Few-bit values inside parts and frames: which dither, which sizes, and what damage does."""

from __future__ import annotations

import json
import struct
import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean import codec
from sparsemean.errors import MalformedPayload, NonFiniteValues
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Key
from sparsemean.wire import coordinates, parts
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import KINDS, value_kind

FEW_BITS = [*(name for name, kind in KINDS.items() if not kind.exact), "eden-1", "eden-3.5"]
FEW_BITS += ["terngrad", "natural", "qsgd-3", "rotated-2"]
KEY = Key(7, 3, "station-12")
FOLDER = Path(__file__).parent.parent / "golden" / "wire" / "v1"
FRAMES = sorted(path.stem for path in FOLDER.glob("*.bin") if path.stem.endswith(tuple(FEW_BITS)))  # short ones


def unpack(packed: bytes, layout: Layout, dim: int, name: str) -> Part:
    reader = Reader(memoryview(packed))
    (part,) = parts.unpack(reader, layout, dim, value_kind(name), KEY)
    reader.finish()
    return part


@pytest.mark.parametrize("name", FEW_BITS)
@pytest.mark.parametrize("where", ["all", "seeded", "shared", "listed"])
def test_the_dither_is_the_nodes_own_and_the_parts_own(name, where):
    dim, kind = 300, value_kind(name)
    layout = Layout(where, dim, scale=2.0, part=3)
    sent = np.random.default_rng(0).normal(size=dim)
    part = Part(np.arange(dim), sent, 2.0)
    packed = parts.pack([part], layout, dim, kind, KEY)
    assert packed.endswith(kind.pack(sent, KEY.child(3)))
    read = unpack(packed, layout, dim, name)
    values, noise = kind.unpack(Reader(memoryview(packed[-kind.size(dim) :])), dim, KEY.child(3))
    assert read.values.tolist() == values.tolist()
    assert np.array_equal(read.noise, noise)
    assert len(packed) <= parts.most_bytes(layout, dim, kind)


@pytest.mark.parametrize("name", FEW_BITS)
@settings(max_examples=40)
@given(data=st.data())
def test_levelled_values_have_an_exact_level_and_noise_in_the_larger_ones_alone(name, data):
    count = data.draw(st.sampled_from([0, 1, 2, 9, 40, 300, 600]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    level = data.draw(st.sampled_from([0.0, 1e-40, 0.1, 3.0]))
    larger = rng.random(count) < data.draw(st.sampled_from([0.0, 0.1, 0.9]))
    if count:
        larger[rng.integers(count)] = False
    sent = np.where(larger, level + 1.0 + rng.random(count), level) * rng.choice([-1.0, 1.0], count)
    layout, kind = Layout("levelled", count), value_kind(name)
    packed = parts.pack([Part(np.arange(count), sent)], layout, max(count, 1), kind, KEY)
    assert len(packed) <= parts.most_bytes(layout, max(count, 1), kind)
    read = unpack(packed, layout, max(count, 1), name)
    if count == 0:
        assert read.values.size == 0
        return
    assert read.values[~larger].tolist() == sent[~larger].astype(np.float32).tolist()
    of_each = np.asarray(read.noise)
    assert np.all(of_each[~larger] == 0.0)
    tail = kind.pack(sent[larger], KEY)
    values, noise = kind.unpack(Reader(memoryview(tail)), int(larger.sum()), KEY)
    assert packed.endswith(tail)
    assert read.values[larger].tolist() == values.tolist()
    assert np.array_equal(of_each[larger], noise)


@pytest.mark.parametrize("name", FEW_BITS)
def test_a_level_that_is_no_level_is_refused(name):
    layout, listed = Layout("levelled", 3), coordinates.pack(np.arange(3), 3)
    larger = value_kind(name).pack(np.array([0.5]), KEY)  # less than the level, as rounding may have it
    tail = b"\x01\0\x01\x00" + b"\0" + larger
    assert unpack(listed + struct.pack("<f", 1.0) + tail, layout, 3, name).values[1:].tolist() == [1.0, 1.0]
    for level, error in ((-1.0, MalformedPayload), (-0.0, MalformedPayload), (np.nan, NonFiniteValues)):
        with pytest.raises(error):
            unpack(listed + struct.pack("<f", level) + tail, layout, 3, name)


def searched_most(kind: str, count: int) -> int:
    """The longest levelled values, over every number of larger ones and every list of them that can be longest."""
    size = value_kind(kind).size
    found = enumerate(most_listed(count))
    return max(4 + listed + (count - larger + 7) // 8 + size(larger) for larger, listed in found)


@cache
def most_listed(count: int) -> list[int]:
    """The longest list of 0, 1, … of so many values."""
    return [coordinates.most_bytes(larger, count) for larger in range(count)]


@pytest.mark.parametrize("name", FEW_BITS)
def test_the_announced_size_of_levelled_values_is_the_largest(name):
    kind = value_kind(name)
    for count in [*range(1, 40), 255, 256, 257, 258, 259, 512, 513, 600]:
        dim = 2 * count
        most = parts.most_bytes(Layout("levelled", count), dim, kind) - coordinates.most_bytes(count, dim)
        assert most == searched_most(name, count)


@pytest.mark.parametrize("name", FEW_BITS)
def test_a_value_too_large_for_float32_is_refused_without_a_warning(name):
    run = sm.Run(sm.named("wangni", k=3, values=name), 5)
    with pytest.raises(sm.InvalidInput, match="rescale"):
        sm.Client(run, "a").encode([1e50, 2e60, 1.0, 3e70, 0.0], 0)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        (name, values)
        for number, values in enumerate(FEW_BITS)
        for turn, name in enumerate(["identity", "top-k", "rtop-k", "induced", "rand-k", "wangni"])
        if turn > 3 or number % 4 == turn
    ],
)
def test_every_encoder_sends_few_bits_and_stays_what_it_is_on_average(name, values):
    """What is decoded is what the encoder made plus noise of mean 0 and the variance that is said."""
    dim, rounds = 40, 100
    run = sm.Run(sm.named(name, k=dim if name == "identity" else 12, values=values), dim, seed=2)
    vector = np.random.default_rng(3).normal(size=dim)
    client, standard = sm.Client(run, "a"), []
    for round in range(rounds):
        made = run.scheme.encoder.encode(vector, run.key("a", round), {})
        blob = client.encode(vector, round)
        read = codec.read_payload(run, "a", *codec.open_frame(run, "a", blob))
        assert isinstance(made, Payload)
        assert isinstance(read, Payload)
        assert len(blob) <= run.payload_bytes
        for ours, theirs in zip(made.parts, read.parts, strict=True):
            assert ours.coordinates.tolist() == theirs.coordinates.tolist()
            assert ours.scale == theirs.scale
            noisy = np.broadcast_to(theirs.noise, theirs.values.shape) > 0
            assert np.array_equal(theirs.values[~noisy], ours.values[~noisy].astype(np.float32))
            deviation = np.sqrt(np.broadcast_to(theirs.noise, noisy.shape)[noisy])
            standard += ((theirs.values[noisy] - ours.values[noisy]) / deviation).tolist()
    error = np.array(standard)
    assert error.size > rounds
    assert abs(error.mean()) < 4.5 * error.std() / np.sqrt(error.size)
    if values not in ("float16", "bfloat16", "natural"):  # right on average over values, and these are the same forty
        assert abs(np.mean(error**2) - 1.0) < 4.5 * np.std(error**2) / np.sqrt(error.size)


# --- Damage.


def seal(head: bytes, body: bytes) -> bytes:
    start = head[:48] + struct.pack("<Q", len(body)) + head[56:60]
    return start + struct.pack("<I", zlib.crc32(start + body)) + body


def read_or_refuse(run: sm.Run, node: str, blob: bytes) -> bool:
    try:
        payload = codec.read_payload(run, node, *codec.open_frame(run, node, blob))
    except sm.SparseMeanError:
        return False
    assert payload is not None
    for part in payload.parts:
        assert np.all(np.isfinite(part.values))
        assert np.all(np.isfinite(part.noise))
        assert np.all(np.asarray(part.noise) >= 0.0)
        assert part.values.dtype == np.float32
    return True


@pytest.mark.parametrize("name", FRAMES)
def test_every_truncation_and_every_flipped_bit_is_refused_or_is_a_payload(name):
    story = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    run, node = sm.Run.from_json(json.dumps(story["run"])), story["node"]
    blob = (FOLDER / f"{name}.bin").read_bytes()
    head, body = blob[:60], blob[64:]
    assert seal(head, body) == blob
    assert read_or_refuse(run, node, blob)
    for cut in range(len(body)):
        assert not read_or_refuse(run, node, blob[: 64 + cut])
        assert not read_or_refuse(run, node, seal(head, body[:cut]))
    assert not read_or_refuse(run, node, seal(head, body + b"\0"))
    sound = 0
    for bit in range(8 * len(blob)):
        flipped = bytearray(blob)
        flipped[bit // 8] ^= 1 << bit % 8
        assert not read_or_refuse(run, node, bytes(flipped))
        if bit < 8 * 60 or bit >= 8 * 64:  # and with the checksum set right
            sound += read_or_refuse(run, node, seal(bytes(flipped[:60]), bytes(flipped[64:])))
    assert sound > 8 * len(body) / 3
