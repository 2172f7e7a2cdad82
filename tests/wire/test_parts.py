"""Parts by layout: what travels, without loss, in one spelling, in no more bytes than announced."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.errors import MalformedPayload, NonFiniteValues, PayloadError
from sparsemean.payload import Layout, Part
from sparsemean.sampling import Key
from sparsemean.sampling import coordinates as sample
from sparsemean.wire import coordinates, parts, values
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import value_kind

KEY = Key(7, 3, "station-12")
KINDS = ["float32", "float64"]
EVERY_KIND = list(values.KINDS)


def unpack(packed: bytes, layout: Layout, dim: int, name: str) -> Part:
    reader = Reader(memoryview(packed))
    (part,) = parts.unpack(reader, layout, dim, value_kind(name), KEY)
    reader.finish()
    return part


def slow_levelled(sent: np.ndarray) -> bytes:
    """The levelled values by the letter of the specification, one value at a time."""
    letter = {4: "f", 8: "d"}[sent.itemsize]
    if not sent.size:
        return b""
    level = min(abs(float(value)) for value in sent)
    larger = [i for i, value in enumerate(sent) if abs(float(value)) > level]
    signs = [value for i, value in enumerate(sent) if i not in larger]
    bits = sum((struct.pack("<d", value)[7] >> 7) << i for i, value in enumerate(signs))
    return (
        struct.pack(f"<{letter}", level)
        + coordinates.pack(np.array(larger, np.int64), sent.size)
        + bits.to_bytes((len(signs) + 7) // 8, "little")
        + b"".join(struct.pack(f"<{letter}", sent[i]) for i in larger)
    )


values_of_few_magnitudes = st.lists(st.sampled_from([0.0, -0.0, 2.5, -2.5, 3.0, -3.0, 1e-30]), max_size=60)
any_values = st.lists(st.floats(-(2.0**100), 2.0**100, width=32), max_size=60)
all_equal = st.tuples(st.sampled_from([0.0, -0.0, 1.5, -1.5]), st.integers(0, 60)).map(lambda c: [c[0]] * c[1])


def levelled_round_trip(name: str, sent: list[float]) -> None:
    kind = value_kind(name)
    values = np.array(sent, kind.dtype)
    dim = 2 * len(sent) + 3
    layout = Layout("levelled", len(sent))
    chosen = np.arange(len(sent), dtype=np.int64) * 2 + 1
    packed = parts.pack([Part(chosen, values)], layout, dim, kind, KEY)
    assert packed == coordinates.pack(chosen, dim) + slow_levelled(values)
    assert len(packed) <= parts.most_bytes(layout, dim, kind)
    part = unpack(packed, layout, dim, name)
    assert part.coordinates.tolist() == chosen.tolist()
    assert part.values.dtype == kind.dtype
    assert part.values.tobytes() == values.tobytes()  # also the sign of zero


@pytest.mark.parametrize("name", KINDS)
@given(sent=values_of_few_magnitudes | any_values | all_equal)
def test_levelled_values_come_back_to_the_bit(name, sent):
    levelled_round_trip(name, sent)


@pytest.mark.parametrize(
    "sent", [[], [0.0], [-0.0], [-4.0], [2.0, 2.0, -2.0], [0.0, -0.0, 1.0], [-0.0] * 9, [1.0, 2.0, 3.0]]
)
def test_levelled_corner_cases(sent):
    levelled_round_trip("float32", sent)


def test_values_that_round_to_one_level_are_one_level():
    nearly = np.array([1.0, 1.0 + 1e-12, -1.0 - 1e-12])  # the same in float32
    layout = Layout("levelled", 3)
    packed = parts.pack([Part(np.arange(3), nearly)], layout, 3, value_kind("float32"), KEY)
    assert unpack(packed, layout, 3, "float32").values.tolist() == [1.0, 1.0, -1.0]


LEVELLED = b"\x03\x01\x01\x07"  # coordinates 0, 1, 2 of 3, which are shorter as a bitmap


@pytest.mark.parametrize(
    ("tail", "error"),
    {
        "a negative level": (struct.pack("<f", -1.0) + b"\0" + b"\0", MalformedPayload),
        "a level of −0": (struct.pack("<f", -0.0) + b"\0" + b"\0", MalformedPayload),
        "a level that is not the smallest": (
            struct.pack("<f", 3.0) + b"\x01\0\x01\x00" + b"\0" + struct.pack("<f", 2.0),
            MalformedPayload,
        ),
        "a larger value that is the level": (
            struct.pack("<f", 2.0) + b"\x01\0\x01\x00" + b"\0" + struct.pack("<f", -2.0),
            MalformedPayload,
        ),
        "no value at the level": (
            struct.pack("<f", 0.5) + b"\x03\x01\x01\x07" + struct.pack("<3f", 1, 2, 3),
            MalformedPayload,
        ),
        "padding bits": (struct.pack("<f", 0.5) + b"\0" + b"\x08", MalformedPayload),
        "signs are missing": (struct.pack("<f", 0.5) + b"\0", MalformedPayload),
        "a level that is not a number": (struct.pack("<f", np.nan) + b"\0" + b"\0", NonFiniteValues),
        "a larger value that is infinite": (
            struct.pack("<f", 1.0) + b"\x01\0\x01\x00" + b"\0" + struct.pack("<f", np.inf),
            NonFiniteValues,
        ),
        "an index outside": (
            struct.pack("<f", 1.0) + b"\x01\0\x01\x03" + b"\0" + struct.pack("<f", 2.0),
            MalformedPayload,
        ),
    }.values(),
)
def test_other_spellings_of_levelled_values_are_refused(tail, error):
    good = unpack(
        LEVELLED + struct.pack("<f", 1.0) + b"\x01\0\x01\x00" + b"\x02" + struct.pack("<f", 2.0),
        Layout("levelled", 3),
        3,
        "float32",
    )
    assert good.values.tolist() == [2.0, 1.0, -1.0]
    with pytest.raises(error):
        unpack(LEVELLED + tail, Layout("levelled", 3), 3, "float32")


@given(st.binary(max_size=30))
def test_any_bytes_are_refused_or_are_what_pack_writes(data):
    layout, kind = Layout("levelled", 9), value_kind("float32")
    reader = Reader(memoryview(data))
    try:
        (part,) = parts.unpack(reader, layout, 12, kind, KEY)
    except PayloadError:
        return
    assert parts.pack([part], layout, 12, kind, KEY) == data[: len(data) - reader.left]


@pytest.mark.parametrize("name", KINDS)
def test_seeded_parts_are_their_values_in_the_order_of_the_draw(name):
    kind, dim, k = value_kind(name), 50, 7
    layout = Layout("seeded", k, scale=dim / k, part=2)
    drawn = sample(KEY.child(2), dim, k)
    vector = np.arange(dim, dtype=np.float64)
    packed = parts.pack([Part(drawn, vector[drawn], layout.scale)], layout, dim, kind, KEY)
    assert packed == vector[drawn].astype(kind.dtype).tobytes()
    assert parts.most_bytes(layout, dim, kind) == len(packed)
    part = unpack(packed, layout, dim, name)
    assert part.scale == dim / k
    assert part.coordinates.tolist() == drawn.tolist() == part.values.tolist()


def test_shared_parts_are_drawn_without_the_node_and_all_is_all():
    kind, layout = value_kind("float64"), Layout("shared", 4)
    part = unpack(kind.pack(np.arange(4.0), KEY), layout, 30, "float64")
    assert part.coordinates.tolist() == sample(KEY.shared(), 30, 4).tolist()
    assert sample(Key(7, 3, "another").shared(), 30, 4).tolist() == part.coordinates.tolist()
    everything = unpack(kind.pack(np.arange(4.0), KEY), Layout("all", 4), 4, "float64")
    assert everything.coordinates.tolist() == [0, 1, 2, 3] == everything.values.tolist()


@pytest.mark.parametrize("name", EVERY_KIND)
@pytest.mark.parametrize(
    ("count", "dim"), [(1, 1), (1, 5), (2, 300), (10, 1000), (100, 1000), (500, 1000), (40, 40), (129, 9000)]
)
def test_the_announced_size_of_lists_is_attained(name, count, dim):
    """The worst coordinates, and all magnitudes different but the smallest: as long as a part can be."""
    kind = value_kind(name)
    gaps, room = np.zeros(count, np.int64), dim - count
    for i in range(min(count, room // 128)):
        gaps[i], room = 128, room - 128
    chosen = np.cumsum(gaps + 1) - 1
    part = Part(chosen, 1.0 + np.arange(count))
    for where in ("listed", "levelled"):
        layout = Layout(where, count)
        # The indices of the larger values are a list too; only the smallest value, at one end, is not in it.
        assert len(parts.pack([part], layout, dim, kind, KEY)) == parts.most_bytes(layout, dim, kind), where


@given(st.data())
def test_no_part_is_longer_than_announced(data):
    dim = data.draw(st.integers(1, 1500))
    count = data.draw(st.integers(0, min(dim, 200)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    used = int(rng.integers(0, count + 1))
    chosen = np.sort(rng.choice(dim, used, replace=False)).astype(np.int64)
    sent = rng.choice([1.0, -1.0, *rng.normal(size=3)], used) if data.draw(st.booleans()) else rng.normal(size=used)
    kind = value_kind(data.draw(st.sampled_from(EVERY_KIND)))
    for where in ("listed", "levelled"):
        layout = Layout(where, count)
        packed = parts.pack([Part(chosen, sent)], layout, dim, kind, KEY)
        assert len(packed) <= parts.most_bytes(layout, dim, kind)
        read = unpack(packed, layout, dim, kind.name)
        assert read.coordinates.tolist() == chosen.tolist()
        assert not kind.exact or read.values.tolist() == sent.astype(kind.dtype).tolist()
