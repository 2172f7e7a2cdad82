"""float16 and bfloat16: one of the two neighbours, and the value on average."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.errors import InvalidInput, NonFiniteValues
from sparsemean.sampling import Key
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import value_kind
from sparsemean.wire.values.rounded import rounded
from sparsemean.wire.values.sixteen import BFLOAT16, FLOAT16, Sixteen

FORMATS = {"float16": FLOAT16, "bfloat16": BFLOAT16}
KINDS = list(FORMATS)
KEY = Key(7, 3, "station-12")


def every_number(name: str) -> np.ndarray:
    """All finite numbers of a format, ascending, by struct alone."""
    if name == "float16":
        numbers = [struct.unpack("<e", struct.pack("<H", bits))[0] for bits in range(0x7C00)]
    else:
        numbers = [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in range(0x7F80)]
    positive = np.array(numbers, np.float64)
    return np.concatenate([-positive[:0:-1], positive])


EVERY = {name: every_number(name) for name in KINDS}


def round_trip(name: str, values: np.ndarray, key: Key = KEY) -> tuple[np.ndarray, np.ndarray]:
    kind = value_kind(name)
    packed = kind.pack(values, key)
    assert len(packed) == kind.size(values.size) == 2 * values.size
    assert kind.pack(values.copy(), key) == packed
    reader = Reader(memoryview(packed))
    read, noise = kind.unpack(reader, values.size, KEY.child(9))  # the reader needs no dither
    reader.finish()
    return read, np.asarray(noise)


@pytest.mark.parametrize("name", KINDS)
def test_every_number_of_the_format_comes_back_as_it_is(name):
    for key in (KEY, KEY.child(1)):
        read, _ = round_trip(name, EVERY[name], key)
        assert read.dtype == np.float32
        assert np.array_equal(read, EVERY[name])


@pytest.mark.parametrize("name", KINDS)
def test_the_spacing_is_the_distance_to_the_next_number_away_from_zero(name):
    numbers, form = EVERY[name], FORMATS[name]
    positive = numbers[numbers >= 0]
    distance = np.append(np.diff(positive), positive[-1] - positive[-2])
    assert np.array_equal(form.spacing(positive), distance)
    assert np.array_equal(form.spacing(-positive), distance)
    single = positive.astype(np.float32)
    assert np.array_equal(form.noise_at(single), distance**2 / 6)
    assert np.array_equal(form.noise_at(-single), distance**2 / 6)
    assert np.array_equal(form.spacing(positive[:-1] + 0.75 * distance[:-1]), distance[:-1])


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data())
def test_what_comes_back_is_a_neighbour(name, data):
    largest = FORMATS[name].largest
    number = st.floats(-largest, largest) | st.floats(-1e-4, 1e-4) | st.floats(-1e-36, 1e-36)
    sent = np.array(data.draw(st.lists(number, max_size=30)), np.float64)
    read, noise = round_trip(name, sent)
    numbers = EVERY[name]
    above = numbers[np.searchsorted(numbers, sent)]
    below = numbers[np.searchsorted(numbers, sent, "right") - 1]
    assert np.all((read == above) | (read == below))
    assert np.array_equal(noise, FORMATS[name].spacing(read) ** 2 / 6.0)


@pytest.mark.parametrize("form", [FLOAT16, BFLOAT16])
@pytest.mark.parametrize("at", [1.0, -1.0, 1.75, -60000.0, 2.0**-24, 3e-6])
def test_over_a_lattice_of_dithers_the_average_is_x_and_the_variance_is_that_of_two_points(form: Sixteen, at):
    N = 256
    U = (np.arange(N) + 0.5) / N
    u = form.spacing(np.array([at]))
    low = np.floor(at / u) * u
    for f in np.arange(N) / N:
        x = low + f * u
        y = rounded(np.repeat(x, N), np.repeat(u, N), U)
        assert abs(y.mean() - x[0]) <= 1e-12 * u[0]
        assert y.var() == pytest.approx(f * (1 - f) * u[0] ** 2, rel=1e-12, abs=1e-12 * u[0] ** 2)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("f", [0.001, 0.25, 0.5, 0.9])
@pytest.mark.parametrize("near", [1.0, -3.0, 1000.0, 2.0**-14])
def test_the_real_stream_is_unbiased_and_has_the_variance_of_two_points(name, f, near):
    count = 1 << 16
    u = float(FORMATS[name].spacing(np.array([near]))[0])
    x = near + f * u
    read, _ = round_trip(name, np.full(count, x))
    spread = math.sqrt(f * (1 - f))
    error = (read.astype(np.float64) - x) / u
    assert abs(error.mean()) / (spread / math.sqrt(count)) < 4.5
    # The squares are (1 − f)² with probability f, else f².
    of_squares = abs((1 - f) ** 2 - f**2) * spread
    assert abs(np.mean(error**2) - spread**2) <= 4.5 * of_squares / math.sqrt(count) + 1e-9
    assert abs(np.mean(error[1:] * error[:-1])) / spread**2 * math.sqrt(count) < 4.5


@pytest.mark.parametrize("name", KINDS)
def test_the_variance_that_is_said_is_right_on_average(name):
    sent = np.random.default_rng(1).normal(size=1 << 17)
    read, noise = round_trip(name, sent)
    squared = (read - sent) ** 2
    off = squared - noise
    assert abs(off.mean()) < 4.5 * off.std() / math.sqrt(off.size) + 0.003 * noise.mean()


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_largest_number_is_never_rounded_beyond_and_a_larger_one_is_refused(name, sign):
    largest = FORMATS[name].largest
    for x in (largest, np.nextafter(largest, 0)):
        read, _ = round_trip(name, np.full(2000, sign * x))
        assert np.all(np.isfinite(read))
        assert np.abs(read).max() == largest
    for beyond in (np.nextafter(largest, np.inf), 1e39, np.inf, np.nan):
        with pytest.raises(InvalidInput, match=r"rescale the vector, or use .* bfloat16, float32"):
            value_kind(name).pack(np.array([1.0, sign * beyond]), KEY)
    single = np.array([sign * float(np.nextafter(np.float32(largest), np.float32(np.inf)))], np.float32)
    with pytest.raises(InvalidInput):
        value_kind(name).pack(single, KEY)


@pytest.mark.parametrize("name", KINDS)
def test_nan_and_infinity_are_refused_by_the_reader(name):
    infinity = {"float16": 0x7C00, "bfloat16": 0x7F80}[name]
    for bits in (infinity, infinity + 1, infinity | 0x8000, 0x7FFF, 0xFFFF):
        with pytest.raises(NonFiniteValues):
            value_kind(name).unpack(Reader(memoryview(struct.pack("<3H", 1, bits, 2))), 3, KEY)


@pytest.mark.parametrize("name", KINDS)
def test_other_keys_round_otherwise(name):
    sent = np.random.default_rng(2).normal(size=500)
    kind = value_kind(name)
    for other in (KEY.child(1), Key(7, 3, "b"), Key(7, 4, "station-12"), Key(8, 3, "station-12"), KEY.shared()):
        assert kind.pack(sent, other) != kind.pack(sent, KEY)
