"""int8, int4, 2-bit and 1-bit: noise that is uniform round the value, whatever the value is."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues, PayloadError
from sparsemean.kernels.quantise import quantised
from sparsemean.kernels.restore import restored
from sparsemean.sampling import Key
from sparsemean.sampling.plan import LARGEST_SCALE
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import value_kind
from sparsemean.wire.values.dithered import GROUP, step
from sparsemean.wire.values.sixteen import BFLOAT16, bfloat16_above

LEVELS = {"int8": 256, "int4": 16, "2-bit": 4, "1-bit": 2}
KINDS = list(LEVELS)
KEY = Key(7, 3, "station-12")
EVERY = (np.arange(0x7F80, dtype=np.uint32) << 16).view(np.float32).astype(np.float64)  # bfloat16 from 0 on
EDGE = 0.5 - 2.0**-33  # the largest |D|


def unpack(name: str, packed: bytes, count: int, key: Key = KEY) -> tuple[np.ndarray, np.ndarray]:
    reader = Reader(memoryview(packed))
    values, noise = value_kind(name).unpack(reader, count, key)
    reader.finish()
    return values, np.asarray(noise)


def round_trip(name: str, values: np.ndarray, key: Key = KEY) -> tuple[np.ndarray, np.ndarray]:
    packed = value_kind(name).pack(values, key)
    assert len(packed) == value_kind(name).size(values.size)
    return unpack(name, packed, values.size, key)


def scales_by_hand(values: np.ndarray) -> list[float]:
    """The smallest bfloat16 not below the largest magnitude of each group, by search among all of them."""
    starts = range(0, values.size, GROUP)
    return [EVERY[np.searchsorted(EVERY, np.abs(values[i : i + GROUP]).max())].item() for i in starts]


def steps_by_hand(name: str, values: np.ndarray) -> np.ndarray:
    scales = scales_by_hand(values)
    return np.array([2.0 * scales[i // GROUP] / (LEVELS[name] - 1) for i in range(values.size)])


# --- The formulas, with the dither fed in.


@pytest.mark.parametrize("levels", LEVELS.values())
@pytest.mark.parametrize("scale", [1.0, 37.5, 2.0**-133, 2.0**126])
def test_the_average_over_a_lattice_of_dithers_is_x_and_the_variance_is_that_of_the_lattice(levels, scale):
    """Over N dithers the noise takes N equidistant values: variance s²/12 · (1 − N⁻²); on the wire N is 2³²."""
    N = 512
    D = (np.arange(N) + 0.5) / N - 0.5
    s = step(np.array([scale]), levels)
    limit = (levels - 1) / 2
    for t in {-limit, limit, 0.0, *(np.round(np.linspace(-limit, limit, 23) * N) / N)}:
        x = np.full(N, t) * s
        noise = (restored(quantised(x, s, levels, D), s, levels, D) - x) / s
        assert abs(noise.mean()) < 1e-12
        assert noise.var() == pytest.approx((1.0 - N**-2.0) / 12.0, rel=1e-12)
        assert np.abs(noise).max() <= 0.5


@pytest.mark.parametrize("levels", LEVELS.values())
@given(position=st.floats(-1.0, 1.0), scale=st.floats(2.0**-20, 2.0**20))
def test_between_the_points_of_the_lattice_the_average_is_off_by_half_a_point_at_most(levels, position, scale):
    N = 64
    D = (np.arange(N) + 0.5) / N - 0.5
    s = step(np.array([scale]), levels)
    x = np.full(N, position * scale)
    noise = (restored(quantised(x, s, levels, D), s, levels, D) - x) / s
    assert abs(noise.mean()) <= 0.5 / N + 1e-12


@pytest.mark.parametrize("levels", LEVELS.values())
def test_no_code_has_to_be_clipped(levels):
    """The largest values, with the most extreme dithers, at every fraction and exponent of a scale."""
    scales = BFLOAT16.widen(np.arange(1, 0x7E81, dtype="<u2")).astype(np.float64)
    s = step(scales, levels)
    for sign, dither in ((1.0, EDGE), (1.0, -EDGE), (-1.0, EDGE), (-1.0, -EDGE)):
        within = np.floor(sign * scales / s + levels / 2 + dither)
        assert within.min() >= 0
        assert within.max() <= levels - 1
        codes = quantised(sign * scales, s, levels, np.full(s.size, dither))
        assert np.array_equal(codes, within)
        with np.errstate(over="raise"):
            assert np.all(np.isfinite(restored(codes, s, levels, np.full(s.size, dither)).astype(np.float32)))


# --- Scales.


@given(
    st.floats(0.0, BFLOAT16.largest) | st.floats(0.0, 1e-37) | st.sampled_from([5e-324, 2.0**-149, 2.0**-133, 1e-40])
)
def test_scales_are_rounded_up_to_the_next_bfloat16(value):
    bits = int(bfloat16_above(np.array([value]))[0])
    above = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    assert above >= value
    assert bits == 0 or struct.unpack("<f", struct.pack("<I", bits - 1 << 16))[0] < value


# --- Through the bytes.

magnitudes = st.sampled_from([0.0, 1e-320, 1e-42, 2.0**-133, 1e-20, 1e-3, 1.0, 7.5, 1e6, 1e30, LARGEST_SCALE])


@st.composite
def arrays(draw) -> np.ndarray:
    count = draw(st.sampled_from([0, 1, 2, 7, 8, 9, 255, 256, 257, 511, 513, 700]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    of_groups = np.repeat([draw(magnitudes) for _ in range(-(-count // GROUP))], GROUP)[:count]
    mixed = rng.uniform(-1, 1, count) * 10.0 ** -rng.integers(0, 20, count) if draw(st.booleans()) else 1.0
    values: np.ndarray = of_groups * mixed * rng.choice([-1.0, 1.0], count)
    return values.astype(np.float32) if draw(st.booleans()) and np.all(np.abs(values) < 1e38) else values


@pytest.mark.parametrize("name", KINDS)
@given(sent=arrays())
def test_what_comes_back_is_within_half_a_step_and_zeros_are_zeros(name, sent):
    read, noise = round_trip(name, sent)
    s = steps_by_hand(name, sent.astype(np.float64))
    assert read.dtype == np.float32
    assert np.array_equal(noise, s * s / 12.0)
    to_float32 = np.maximum(np.abs(read) * 2.0**-24, 2.0**-150)
    assert np.all(np.abs(read - sent) <= s * (0.5 + 1e-12) + to_float32)
    assert read[s == 0.0].tobytes() == bytes(4 * np.count_nonzero(s == 0.0))  # not −0


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 255, 256, 257, 512, 65536, 65537, 70001])
def test_sizes_and_determinism(name, count):
    sent = np.random.default_rng(count).normal(size=count)
    kind, bits = value_kind(name), int(math.log2(LEVELS[name]))
    packed = kind.pack(sent, KEY)
    assert len(packed) == kind.size(count) == 2 * math.ceil(count / 256) + math.ceil(count * bits / 8)
    assert kind.pack(sent.copy(), KEY) == packed
    first, second = unpack(name, packed, count), unpack(name, packed, count)
    assert first[0].tobytes() == second[0].tobytes()
    if count > 200:
        for other in (KEY.child(1), Key(7, 3, "b"), Key(7, 4, "station-12"), Key(8, 3, "station-12"), KEY.shared()):
            assert kind.pack(sent, other) != packed


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("x", [0.3, -1.0, 0.999, 1e-9, 0.5])
def test_the_noise_of_the_real_stream_is_unbiased_and_has_the_variance_that_is_said(name, x):
    count = 1 << 17
    sent = np.full(count, x)
    sent[::GROUP] = 1.0  # so that the scale is 1 everywhere
    read, noise = round_trip(name, sent)
    s = 2.0 / (LEVELS[name] - 1)
    assert np.all(noise == s * s / 12.0)
    error = (read - sent) / s
    assert abs(error.mean()) * math.sqrt(12.0 * count) < 4.5
    # The square of a uniform number on (−½, ½) has variance 1/80 − 1/144.
    assert abs(np.mean(error**2) - 1.0 / 12.0) / math.sqrt((1 / 80 - 1 / 144) / count) < 4.5
    # Neighbours, which share a word of the stream, are independent.
    for lag in (1, 2, GROUP):
        assert abs(np.mean(error[lag:] * error[:-lag])) * 12.0 * math.sqrt(count - lag) < 4.5


@pytest.mark.parametrize("name", KINDS)
def test_the_noise_does_not_depend_on_the_values(name):
    count = 1 << 16
    rng = np.random.default_rng(5)
    sent = rng.choice([-1.0, 1.0], count) * rng.uniform(0, 1, count) ** 3
    read, noise = round_trip(name, sent)
    error = (read - sent) / np.sqrt(noise)
    for function in (sent, np.abs(sent), sent**2):
        z = np.sum((function - function.mean()) * error) / (function.std() * math.sqrt(count))
        assert abs(z) < 4.5
        z = np.sum((function - function.mean()) * (error**2 - 1)) / (function.std() * math.sqrt(0.8 * count))
        assert abs(z) < 4.5


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_largest_magnitude_travels_and_a_larger_one_does_not(name, sign):
    sent = np.full(300, sign * LARGEST_SCALE)
    with np.errstate(all="raise"):
        read, _ = round_trip(name, sent)
    assert np.all(np.isfinite(read))
    for beyond in (np.nextafter(LARGEST_SCALE, np.inf), 1e39, 1e100, np.inf, np.nan):
        with pytest.raises(InvalidInput, match="rescale the vector, or use float32"):
            value_kind(name).pack(np.array([1.0, sign * beyond]), KEY)


def body(name: str, scales: list[int], codes: bytes) -> bytes:
    return struct.pack(f"<{len(scales)}H", *scales) + codes


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("scale", "error"),
    {
        "NaN": (0x7FC0, NonFiniteValues),
        "NaN, signalling": (0x7F81, NonFiniteValues),
        "−NaN": (0xFFC0, NonFiniteValues),
        "∞": (0x7F80, NonFiniteValues),
        "−∞": (0xFF80, NonFiniteValues),
        "the largest bfloat16": (0x7F7F, NonFiniteValues),
        "next above 2^126": (0x7E81, NonFiniteValues),
        "−2^127": (0xFF00, NonFiniteValues),
        "−1": (0xBF80, MalformedPayload),
        "−0": (0x8000, MalformedPayload),
        "the least negative": (0x8001, MalformedPayload),
    }.values(),
)
def test_hostile_scales_are_refused(name, scale, error):
    codes = bytes(value_kind(name).size(300) - 4)
    assert len(unpack(name, body(name, [0x3F80, 0x7E80], codes), 300)[0]) == 300
    for scales in ([scale, 0x3F80], [0x3F80, scale]):
        with pytest.raises(error):
            unpack(name, body(name, scales, codes), 300)


@pytest.mark.parametrize("name", KINDS)
def test_codes_in_a_group_of_zeros_are_refused(name):
    size = value_kind(name).size(300) - 4
    for at, scales in ((0, [0, 0x3F80]), (size - 1, [0x3F80, 0])):
        codes = bytearray(size)
        assert unpack(name, body(name, scales, bytes(codes)), 300)[0][0 if at == 0 else -1] == 0.0
        codes[at] = 1
        with pytest.raises(MalformedPayload, match="scale 0"):
            unpack(name, body(name, scales, bytes(codes)), 300)


@pytest.mark.parametrize(
    ("name", "count", "last"),
    [("int4", 3, 0x10), ("2-bit", 3, 0x40), ("2-bit", 1, 0x04), ("1-bit", 5, 0x20), ("1-bit", 7, 0x80)],
)
def test_padding_bits_are_refused(name, count, last):
    codes = bytearray(value_kind(name).size(count) - 2)
    codes[-1] = last - 1
    unpack(name, body(name, [0x3F80], bytes(codes)), count)
    codes[-1] = last
    with pytest.raises(MalformedPayload, match="padding"):
        unpack(name, body(name, [0x3F80], bytes(codes)), count)


@pytest.mark.parametrize("name", KINDS)
@given(data=st.binary(max_size=40), count=st.integers(0, 80))
def test_any_bytes_are_refused_or_are_finite_values(name, data, count):
    try:
        values, noise = value_kind(name).unpack(Reader(memoryview(data)), count, KEY)
    except PayloadError:
        return
    assert values.shape == np.asarray(noise).shape == (count,)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(np.asarray(noise)))
