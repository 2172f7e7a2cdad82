"""The kinds of values by name; exact ones, and signs, against the struct module."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues
from sparsemean.sampling import Key
from sparsemean.wire import values
from sparsemean.wire.reader import Reader

FORMATS = {"float32": "f", "float64": "d"}
LIMITS = {"float32": float(np.finfo(np.float32).max), "float64": 1e100}
TOO_LARGE = {"float32": [np.nextafter(2.0**128, 0), 1e39, 1e300], "float64": [np.nextafter(1e100, np.inf), 1e300]}
KINDS = sorted(FORMATS)
KEY = Key(7, 3, "station-12")
CODES = {"float32": 1, "float64": 2, "float16": 3, "bfloat16": 4, "int8": 5, "int4": 6, "2-bit": 8, "1-bit": 7}


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_bytes_are_ieee_little_endian(name, data):
    width: Any = 32 if name == "float32" else 64
    number = st.floats(-LIMITS[name], LIMITS[name], width=width)
    sent = data.draw(st.lists(number, max_size=20))
    kind = values.value_kind(name)
    packed = kind.pack(np.array(sent, np.float64), KEY)
    assert packed == struct.pack(f"<{len(sent)}{FORMATS[name]}", *sent)
    assert kind.size(len(sent)) == len(packed)
    reader = Reader(memoryview(packed))
    read, noise = kind.unpack(reader, len(sent), KEY)
    reader.finish()
    assert noise == 0.0
    assert read.astype(kind.dtype).tobytes() == packed
    assert read.dtype.itemsize * 8 == width


def test_the_code_of_a_kind_never_changes():
    assert {name: kind.code for name, kind in values.KINDS.items()} == CODES
    assert list(values.KINDS) == list(CODES)
    assert {name for name, kind in values.KINDS.items() if kind.exact} == set(KINDS)


def test_few_bits_come_back_as_float32():
    assert {name: kind.dtype.str for name, kind in values.KINDS.items()} == dict.fromkeys(CODES, "<f4") | {
        "float64": "<f8"
    }


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_largest_value_travels_and_a_larger_one_does_not(name, sign):
    kind = values.value_kind(name)
    limit = sign * LIMITS[name]
    assert kind.unpack(Reader(memoryview(kind.pack(np.array([limit]), KEY))), 1, KEY)[0] == [limit]
    for beyond in TOO_LARGE[name]:
        with pytest.raises(InvalidInput, match="rescale"):
            kind.pack(np.array([1.0, sign * beyond]), KEY)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_refused_on_both_sides(name, bad):
    kind = values.value_kind(name)
    with pytest.raises(InvalidInput):
        kind.pack(np.array([1.0, bad, 2.0]), KEY)
    hostile = struct.pack(f"<3{FORMATS[name]}", 1.0, bad, 2.0)
    with pytest.raises(NonFiniteValues):
        kind.unpack(Reader(memoryview(hostile)), 3, KEY)


def test_absurd_doubles_are_refused_by_the_reader():
    with pytest.raises(NonFiniteValues):
        values.value_kind("float64").unpack(Reader(memoryview(struct.pack("<d", 1.1e100))), 1, KEY)


@pytest.mark.parametrize("name", CODES)
def test_missing_bytes_are_refused_before_anything_is_allocated(name):
    kind = values.value_kind(name)
    one = kind.pack(np.array([1.0]), KEY)
    for count in (9, 1 << 62):
        with pytest.raises(MalformedPayload, match="announced"):
            kind.unpack(Reader(memoryview(one)), count, KEY)
    with pytest.raises(MalformedPayload, match="announced"):
        kind.unpack(Reader(memoryview(one[:-1])), 1, KEY)


@pytest.mark.parametrize("name", ["float8", "Float32", "", None, 3, ["float32"]])
def test_an_unknown_kind_is_refused_with_those_that_exist(name):
    with pytest.raises(InvalidInput, match="float32, float64, float16, bfloat16, int8, int4, 2-bit, 1-bit"):
        values.value_kind(name)


@given(st.lists(st.sampled_from([1.0, -1.0, 0.0, -0.0, 5e-324, -5e-324]), max_size=40))
def test_signs_are_bits_low_first_with_zero_padding(sent):
    negative = [struct.pack("<d", value)[7] >> 7 for value in sent]
    packed = values.pack_signs(np.array(sent, np.float64))
    twin = sum(bit << i for i, bit in enumerate(negative)).to_bytes((len(sent) + 7) // 8, "little")
    assert packed == twin
    reader = Reader(memoryview(packed))
    assert values.unpack_signs(reader, len(sent)).tolist() == [-1.0 if bit else 1.0 for bit in negative]
    reader.finish()
    for padding in range(len(sent), 8 * len(packed)):
        spoilt = (int.from_bytes(packed, "little") | 1 << padding).to_bytes(len(packed), "little")
        with pytest.raises(MalformedPayload, match="padding"):
            values.unpack_signs(Reader(memoryview(spoilt)), len(sent))
