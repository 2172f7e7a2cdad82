"""Values "eden-b": names, sizes, unbiasedness, the noise that is stated, and damage."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean import theory
from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues, PayloadError
from sparsemean.kernels import compiled_eden  # noqa: F401  loaded, so that small calls are compiled ones
from sparsemean.sampling import Key
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import EDEN, value_kind, value_name
from sparsemean.wire.values.eden import LARGEST_VALUE, Eden

KEY = Key(7, 3, "station-12")
RATES = ["eden-1", "eden-1.5", "eden-2.0625", "eden-3", "eden-4.9375", "eden-8"]


def unpack(name: str, blob: bytes, count: int, key: Key = KEY) -> tuple[np.ndarray, np.ndarray]:
    reader = Reader(memoryview(blob))
    values, noise = value_kind(name).unpack(reader, count, key)
    reader.finish()
    return values, np.asarray(noise)


def round_trip(name: str, values: np.ndarray, key: Key = KEY) -> tuple[np.ndarray, np.ndarray]:
    blob = value_kind(name).pack(values, key)
    assert len(blob) == value_kind(name).size(values.size)
    return unpack(name, blob, values.size, key)


# --- Names and sizes.


def test_there_is_a_kind_for_every_sixteenth_of_a_bit():
    assert len(EDEN) == 113
    codes = {"eden-1": 16, "eden-1.5": 24, "eden-2.0625": 33, "eden-3": 48, "eden-8": 128}
    assert {name: EDEN[value_name(name)].code for name in codes} == codes
    assert all(kind.name == name and value_kind(name) is kind for name, kind in EDEN.items())


@pytest.mark.parametrize(
    ("given", "use"),
    [
        *(("eden-3.0", "eden-3"), ("eden-03", "eden-3"), ("eden-3.", "eden-3"), ("eden-1.50", "eden-1.5")),
        *(("eden-1.3", "eden-1.3125"), ("eden-2.063", "eden-2.0625"), ("eden-0.5", "eden-1"), ("eden-0", "eden-1")),
        *(("eden-9", "eden-8"), ("eden-99", "eden-8"), ("eden-7.98", "eden-8")),
    ],
)
def test_other_spellings_are_refused_with_the_right_one(given, use):
    with pytest.raises(InvalidInput, match=f"'{given}' is none, use '{use}'$"):
        value_kind(given)


@pytest.mark.parametrize("name", ["eden", "eden-", "eden-x", "eden--1", "EDEN-1", "eden-1e0", "eden-1/2", "eden-³"])
def test_what_names_no_rate_is_refused_with_examples(name):
    with pytest.raises(InvalidInput, match=r"such as eden-3 or eden-2\.0625"):
        value_kind(name)


COUNTS = sorted(
    {*range(9001)[::97], *range(505, 520), *range(4090, 4100), *range(4600, 4612), *range(8185, 8200), 9000}
)


@pytest.mark.parametrize("name", RATES)
def test_sizes_are_known_never_fall_and_keep_the_rate(name):
    kind, before = value_kind(name), 0
    bits = kind.code / 16
    for count in COUNTS:
        size = kind.size(count)
        assert size >= before, "a part with more values is no shorter"
        if count in (0, 1, 300, 511, 512, 513, 784, 4095, 4096, 4097, 4608, 9000) or count % 8 == 1:
            assert len(kind.pack(np.ones(count), KEY)) == size
        if count >= 512:
            assert size <= 4 * -(-count // 2048) + math.ceil(count * bits / 8) + 1
            assert size >= 4 * (count // 4096) + count * bits / 8 - 2
        before = size
    assert [kind.size(4096 * tiles) for tiles in (1, 1000)] == [512 * bits + 4, 1000 * (512 * bits + 4)]


# --- What comes back.


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("count", [512, 513, 784, 4097, 5000])
@pytest.mark.parametrize("size", [1e-30, 1.0, 1e33])
def test_what_comes_back_has_the_right_inner_product_with_what_was_sent(name, count, size):
    sent = size * np.random.default_rng(count).standard_normal(count)
    read, noise = round_trip(name, sent)
    assert read.dtype == np.float32
    assert noise.shape == (count,)
    start = 2048 if count == 4097 else 4096 if count > 4096 else 0
    for tile in (slice(0, start), slice(start, count)):
        if sent[tile].size:
            assert (read[tile].astype(float) @ sent[tile]) / (sent[tile] @ sent[tile]) == pytest.approx(1.0, abs=1e-6)


def nasty(kind: str, count: int) -> np.ndarray:
    """Vectors on which a single Hadamard transform would be badly biased, or a scale by the largest very noisy."""
    x = np.zeros(count)
    if kind == "one entry":
        x[count // 3] = 1.0
    elif kind == "two entries":
        x[[0, count - 1]] = 1.0, 0.5
    elif kind == "neighbours":
        x[:2] = 1.0, -0.4
    elif kind == "constant":
        x[:] = 1.0
    else:
        x[:] = np.random.default_rng(2).standard_cauchy(count)
    return x / np.linalg.norm(x)


@pytest.mark.parametrize("kind", ["one entry", "two entries", "neighbours", "constant", "heavy tail"])
@pytest.mark.parametrize(("name", "count"), [("eden-1", 512), ("eden-1", 513), ("eden-1.5", 784), ("eden-3", 2049)])
def test_the_average_over_rotations_is_what_was_sent(kind, name, count):
    """|z| < 4.5 for the largest entries and a direction across them; one pass would lose the smaller of two."""
    sent, rounds = nasty(kind, count), 1000
    read = np.array([round_trip(name, sent, Key(7, round, "a"))[0] for round in range(rounds)], np.float64)
    largest = np.argsort(-np.abs(sent))[:4]
    across = np.zeros(count)
    across[largest[:2]] = sent[largest[1]], -sent[largest[0]]
    tested = np.column_stack(
        [read[:, largest] - sent[largest], read @ across - sent @ across, (read - sent).sum(axis=1)]
    )
    deviation = tested.std(axis=0)
    z = tested.mean(axis=0) / (deviation / math.sqrt(rounds) + 1e-6)
    assert np.abs(z).max() < 4.5


@pytest.mark.parametrize("bits", [1, 1.5, 2, 2.0625, 3, 4, 5, 6, 7, 8])
def test_the_noise_is_that_of_the_best_quantiser_and_stated_right(bits):
    """Within 3 %: the error of 2¹⁷ values varies by 0.4 % with 1 bit, by 0.9 % with 8."""
    sent = np.random.default_rng(1).standard_normal(1 << 17)
    read, noise = round_trip(f"eden-{bits:g}", sent)
    error = np.sum((read - sent) ** 2)
    assert error / (sent @ sent) == pytest.approx(theory.eden_error(bits), rel=0.03)
    assert noise.sum() == pytest.approx(error, rel=0.03)


def test_the_error_in_the_papers():
    assert [theory.eden_error(bits) for bits in (1, 2, 3, 4)] == pytest.approx(
        [math.pi / 2 - 1, 0.1331, 0.0358, 0.0096], rel=2e-3
    )
    assert theory.eden_error(1.5) == pytest.approx(0.3166, rel=1e-3)


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("count", [300, 512, 5000])
def test_zeros_are_zeros_and_so_is_a_tile_of_them(name, count):
    read, noise = round_trip(name, np.zeros(count))
    assert read.tobytes() == bytes(4 * count)  # not −0, and not NaN
    assert not np.any(noise)
    assert value_kind(name).pack(np.zeros(count), KEY) == bytes(value_kind(name).size(count))
    if count == 5000:
        sent = np.concatenate([np.zeros(4096), np.ones(904)])
        read, noise = round_trip(name, sent)
        assert not np.any(read[:4096])
        assert np.all(noise[4096:] > 0)
        assert not np.any(noise[:4096])


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("smallest", [1e-320, 1e-45, 1e-42])
def test_values_below_single_precision_come_back_as_small_ones(name, smallest):
    sent = smallest * np.random.default_rng(3).standard_normal(600)
    with np.errstate(all="raise", under="ignore"):
        read, noise = round_trip(name, sent)
    assert np.abs(read).max() < 1e-40
    assert np.all(np.isfinite(noise))


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("count", [2, 512])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_largest_magnitude_travels_and_a_larger_one_does_not(name, count, sign):
    sent = np.full(count, sign * LARGEST_VALUE)
    with np.errstate(all="raise"):
        read, noise = round_trip(name, sent)
    assert np.all(np.isfinite(read))
    assert np.all(np.isfinite(noise))
    for beyond in (np.nextafter(LARGEST_VALUE, np.inf), 1e39, np.inf, np.nan):
        sent[-1] = sign * beyond
        with pytest.raises(InvalidInput, match="rescale the vector, or use float32"):
            value_kind(name).pack(sent, KEY)


@pytest.mark.parametrize(("name", "like"), {"eden-1.9375": 1, "eden-2": 2, "eden-4.5": 4, "eden-8": 8}.items())
def test_few_values_are_rounded_with_dither_by_whole_bits(name, like):
    sent = np.random.default_rng(5).standard_normal(511)
    same = value_kind({1: "1-bit", 2: "2-bit", 4: "int4", 8: "int8"}[like])
    assert value_kind(name).pack(sent, KEY) == same.pack(sent, KEY)
    read, noise = round_trip("eden-3.5", sent)  # 3 bits, for which there is no kind
    steps = np.sqrt(12 * noise)
    assert np.all(np.abs(read - sent) <= steps * 0.5001)
    assert len(set(noise.tolist())) == 2  # groups of 256
    assert steps.max() == pytest.approx(2 * np.abs(sent).max() / 7, rel=0.02)


# --- Damage.


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize(
    ("scale", "error"),
    {
        "NaN": (0x7FC00000, NonFiniteValues),
        "−NaN": (0xFFC00000, NonFiniteValues),
        "∞": (0x7F800000, NonFiniteValues),
        "−∞": (0xFF800000, NonFiniteValues),
        "the largest float32": (0x7F7FFFFF, NonFiniteValues),
        "next above 2^116": (0x79800001, NonFiniteValues),
        "−1": (0xBF800000, MalformedPayload),
        "−0": (0x80000000, MalformedPayload),
        "the least negative": (0x80000001, MalformedPayload),
    }.values(),
)
def test_hostile_scales_are_refused(name, scale, error):
    codes = bytes(value_kind(name).size(5000) - 8)
    read, noise = unpack(name, struct.pack("<2I", 0x3F800000, 0x79800000) + codes, 5000)
    assert np.all(np.isfinite(read))
    assert np.all(np.isfinite(noise))
    for scales in ((scale, 0x3F800000), (0x3F800000, scale)):
        with pytest.raises(error):
            unpack(name, struct.pack("<2I", *scales) + codes, 5000)


@pytest.mark.parametrize("name", RATES)
def test_codes_in_a_tile_of_zeros_are_refused(name):
    size = value_kind(name).size(5000) - 8
    for at, scales in ((0, (0, 0x3F800000)), (size - 1, (0x3F800000, 0))):
        codes = bytearray(size)
        unpack(name, struct.pack("<2I", *scales) + bytes(codes), 5000)
        codes[at] = 1
        with pytest.raises(MalformedPayload, match="scale 0"):
            unpack(name, struct.pack("<2I", *scales) + bytes(codes), 5000)


@pytest.mark.parametrize(("name", "count", "bit"), [("eden-1", 513, 2), ("eden-3", 517, 128), ("eden-2.5", 4099, 64)])
def test_padding_bits_are_refused(name, count, bit):
    blob = bytearray(value_kind(name).pack(np.ones(count), KEY))
    assert blob[-1] < bit
    blob[-1] |= bit
    with pytest.raises(MalformedPayload, match="padding"):
        unpack(name, bytes(blob), count)


@pytest.mark.parametrize("name", RATES)
def test_missing_bytes_are_refused_before_anything_is_allocated(name):
    kind = value_kind(name)
    blob = kind.pack(np.ones(600), KEY)
    for count in (601 + 40, 1 << 40, 1 << 62):
        with pytest.raises(MalformedPayload, match="announced"):
            kind.unpack(Reader(memoryview(blob)), count, KEY)
    with pytest.raises(MalformedPayload, match="announced"):
        kind.unpack(Reader(memoryview(blob[:-1])), 600, KEY)


@settings(deadline=None)
@given(rate=st.integers(16, 128), count=st.integers(500, 700), seed=st.integers(0, 2**32))
def test_any_bytes_are_refused_or_are_finite_values(rate, count, seed):
    kind = Eden(rate)
    data = np.random.default_rng(seed).integers(0, 256, kind.size(count), np.uint8).tobytes()
    try:
        read, noise = kind.unpack(Reader(memoryview(data)), count, KEY)
    except PayloadError:
        return
    assert np.all(np.isfinite(read))
    assert np.all(np.isfinite(np.asarray(noise)))


def test_the_rotation_is_the_keys_own():
    sent = np.random.default_rng(0).standard_normal(600)
    kind = value_kind("eden-3")
    blob = kind.pack(sent, KEY)
    assert kind.pack(sent.copy(), KEY) == blob
    for other in (KEY.child(1), Key(7, 3, "b"), Key(7, 4, "station-12"), Key(8, 3, "station-12"), KEY.shared()):
        assert kind.pack(sent, other) != blob
        assert np.sum((unpack("eden-3", blob, 600, other)[0] - sent) ** 2) > np.sum(sent**2)  # nonsense
