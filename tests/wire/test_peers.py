"""Quantisers of other papers: names, sizes, unbiasedness, the papers' errors, the noise that is stated, and damage."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest

from sparsemean import theory
from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues, PayloadError
from sparsemean.sampling import Key
from sparsemean.theory.quantisers import NATURAL_BOUND
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import EDEN, KINDS, PEERS, value_kind

KEY = Key(7, 3, "station-12")
SOME = ["terngrad", "natural", "qsgd-2", "qsgd-4", "qsgd-8", "rotated-1", "rotated-3", "rotated-8"]
GRIDS = [name for name in SOME if name != "natural"]
Z = 4.5


def unpack(name: str, blob: bytes, count: int, key: Key = KEY) -> tuple[np.ndarray, np.ndarray]:
    reader = Reader(memoryview(blob))
    values, noise = value_kind(name).unpack(reader, count, key)
    reader.finish()
    return values, np.broadcast_to(np.asarray(noise), count)


def round_trip(name: str, values: np.ndarray, key: Key = KEY) -> tuple[np.ndarray, np.ndarray]:
    blob = value_kind(name).pack(values, key)
    assert blob == value_kind(name).pack(values, key), "the same key gives the same bytes"
    assert len(blob) == value_kind(name).size(values.size)
    return unpack(name, blob, values.size, key)


# --- Names and sizes.


def test_every_kind_has_a_code_and_a_name_of_its_own():
    kinds = [*KINDS.values(), *EDEN.values(), *PEERS.values()]
    assert len({kind.code for kind in kinds}) == len({kind.name for kind in kinds}) == len(kinds)
    assert max(kind.code for kind in kinds) < 256
    assert {name: kind.code for name, kind in PEERS.items()} == {
        "terngrad": 9, "natural": 10, "qsgd-2": 130, "qsgd-3": 131, "qsgd-4": 132, "qsgd-5": 133, "qsgd-6": 134,
        "qsgd-7": 135, "qsgd-8": 136, "rotated-1": 145, "rotated-2": 146, "rotated-3": 147, "rotated-4": 148,
        "rotated-5": 149, "rotated-6": 150, "rotated-7": 151, "rotated-8": 152,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["qsgd-1", "qsgd-9", "qsgd-2.5", "qsgd", "rotated-0", "rotated-9", "TernGrad"])
def test_other_names_are_refused_with_the_right_ones(name):
    with pytest.raises(InvalidInput, match=r"qsgd-b for b from 2 to 8, and rotated-b for b from 1 to 8"):
        value_kind(name)


@pytest.mark.parametrize(
    ("name", "bits"),
    {"terngrad": 8 / 5, "natural": 9, "qsgd-2": 2, "qsgd-7": 7, "rotated-1": 1, "rotated-5": 5}.items(),
)
def test_sizes_never_fall_and_keep_the_rate(name, bits):
    kind = value_kind(name)
    sizes = [kind.size(count) for count in range(5000)]
    assert sizes[0] == 0
    assert sizes == sorted(sizes)
    scales = 0 if name == "natural" else 4 * 4096 // (4096 if name.startswith("rotated") else 512)
    assert sizes[4096] == 4 + scales + math.ceil(4096 * bits / 8)


# --- What comes back.


def nasty(kind: str, count: int) -> np.ndarray:
    """Vectors that are hard on one quantiser or another."""
    x = np.zeros(count)
    if kind == "one entry":
        x[count // 3] = 1.0
    elif kind == "two entries":
        x[[0, count - 1]] = 1.0, -0.3
    elif kind == "constant":
        x[:] = 0.7
    elif kind == "gaussian":
        x[:] = np.random.default_rng(1).standard_normal(count)
    else:
        x[:] = np.random.default_rng(2).standard_cauchy(count)
    return x


@pytest.mark.parametrize("kind", ["one entry", "two entries", "constant", "gaussian", "heavy tail"])
@pytest.mark.parametrize("count", [1, 600])
@pytest.mark.parametrize("name", ["terngrad", "natural", "qsgd-4", "rotated-1", "rotated-3"])
def test_it_is_right_on_average_and_says_how_far_it_is_off(name, count, kind):
    """Over 200 keys: |z| < 4.5 for the largest entries and sums, and for the stated noise less the measured."""
    sent, rounds = nasty(kind, count), 200
    found = [round_trip(name, sent, Key(7, round, "a")) for round in range(rounds)]
    read, stated = (np.array(each, np.float64) for each in zip(*found, strict=True))
    largest = np.argsort(-np.abs(sent))[:4]
    across = np.random.default_rng(5).choice([-1.0, 1.0], count)
    tested = np.column_stack([(read - sent)[:, largest], (read - sent) @ across, (read - sent).sum(axis=1)])
    slack = 1e-6 * math.sqrt(rounds)  # single precision
    assert np.all(
        np.abs(tested.mean(axis=0)) * math.sqrt(rounds) <= Z * tested.std(axis=0) + slack * np.abs(sent).sum()
    )
    error, said = np.sum((read - sent) ** 2, axis=1), stated.sum(axis=1)
    assert abs((error - said).mean()) * math.sqrt(rounds) <= Z * (error - said).std() + slack * np.sum(sent**2)
    assert error.mean() <= value_kind(name).omega(count) * np.sum(sent**2) * 1.1 + 1e-6 * np.sum(sent**2)


GAUSSIAN = np.random.default_rng(1).standard_normal(1 << 17)


def stochastic_error(x: np.ndarray, steps: np.ndarray) -> float:
    f = x / steps - np.floor(x / steps)
    return float(np.sum(f * (1 - f) * steps**2))


@pytest.mark.parametrize("name", SOME)
def test_errors_are_the_papers_on_gaussian_vectors(name):
    """Within 3 % of the exact variance given the vector; 2¹⁷ values vary by less than 1 %."""
    x = GAUSSIAN
    read, noise = round_trip(name, x)
    error = float(np.sum((read - x) ** 2))
    buckets = np.abs(x).reshape(-1, 512)
    if name == "terngrad":  # Wen et al.: Σ s|x| − x²
        exact = float(np.sum(buckets.max(axis=1) * buckets.sum(axis=1)) - x @ x)
    elif name == "natural":  # (|x| − 2^e)(2^(e+1) − |x|)
        power = 2.0 ** np.floor(np.log2(np.abs(x)))
        exact = float(np.sum((np.abs(x) - power) * (2 * power - np.abs(x))))
        assert error / (x @ x) <= NATURAL_BOUND
    elif name.startswith("qsgd"):
        s = 2 ** (int(name[5:]) - 1) - 1
        exact = stochastic_error(x, np.repeat(np.linalg.norm(buckets, axis=1) / s, 512))
        assert error / (x @ x) <= min(512 / s**2, math.sqrt(512) / s)
    else:  # a Gaussian vector stays one, with the largest of 4,096 as scale
        L, tops = 2 ** int(name[8:]), np.abs(x).reshape(-1, 4096).max(axis=1)
        u = np.repeat(2 * tops / (L - 1), 4096)
        exact = stochastic_error(x + np.repeat(tops, 4096), u)
        assert error / (x @ x) <= (2 * math.log(2 * 4096) + 2) / (L - 1) ** 2
        assert error == pytest.approx(exact, rel=0.12)  # the tops of other rotations are others
        exact = float(noise.sum())
    assert error == pytest.approx(exact, rel=0.03)
    assert noise.sum() == pytest.approx(exact, rel=1e-3 if not name.startswith("rotated") else 0.03)


def test_natural_values_are_powers_of_two_and_those_come_back_as_they_are():
    sent = np.array([0.0, -0.0, 1.0, -2.0, 2.0**-126, -(2.0**127), 0.5])
    read, noise = round_trip("natural", sent)
    assert read.tolist() == sent.tolist()
    assert not np.signbit(read[1])
    assert not np.any(noise)
    read, noise = round_trip("natural", np.full(1000, -3.0))
    assert set(read.tolist()) == {-2.0, -4.0}
    assert noise.sum() == pytest.approx(1000.0)  # ½·½·2² each


def test_terngrad_values_are_0_or_the_largest():
    read, _ = round_trip("terngrad", np.random.default_rng(0).normal(size=512))
    assert len(set(np.abs(read).tolist())) == 2
    assert read[np.argmax(np.abs(read))] != 0


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("count", [1, 300, 512, 5000])
def test_zeros_are_zeros_and_so_is_a_group_of_them(name, count):
    read, noise = round_trip(name, np.zeros(count))
    assert read.tobytes() == bytes(4 * count)  # not −0, and not NaN
    assert not np.any(noise)
    assert value_kind(name).pack(np.zeros(count), KEY) == bytes(value_kind(name).size(count))
    if count == 5000:
        read, noise = round_trip(name, np.concatenate([np.zeros(4096), np.full(904, -0.3)]))
        assert read[:4096].tobytes() == bytes(4 * 4096)
        assert not np.any(noise[:4096])
    assert unpack(name, b"", 0)[0].size == 0


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("smallest", [1e-320, 1e-45, 1e-40])
@pytest.mark.parametrize("count", [1, 600])
def test_values_below_single_precision_come_back_as_small_ones(name, smallest, count):
    sent = smallest * np.random.default_rng(3).standard_normal(count)
    with np.errstate(all="raise", under="ignore"):
        read, noise = round_trip(name, sent)
    assert np.abs(read).max() < 2e-38
    assert np.all(np.isfinite(noise))


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_largest_magnitude_travels_and_a_larger_one_does_not(name, sign):
    largest = 2.0 ** (127 if name == "natural" else 112)
    for count in (1, 4096):
        sent = np.full(count, sign * largest)
        with np.errstate(all="raise"):
            read, noise = round_trip(name, sent)
        assert np.all(np.isfinite(read))
        assert np.all(np.isfinite(noise))
        for beyond in (np.nextafter(largest, np.inf), 1e39, np.inf, np.nan):
            sent[-1] = sign * beyond
            with pytest.raises(InvalidInput, match="rescale the vector"):
                value_kind(name).pack(sent, KEY)


@pytest.mark.parametrize("name", SOME)
def test_units_do_not_matter(name):
    sent = np.random.default_rng(0).normal(size=700)
    (one, noise), (other, more) = round_trip(name, sent), round_trip(name, sent * 2.0**60)
    assert np.array_equal(one * np.float32(2.0**60), other)
    np.testing.assert_array_equal(noise * 4.0**60, more)


# --- Damage.


@pytest.mark.parametrize("name", SOME)
@pytest.mark.parametrize("factor", [0x7FC00000, 0x7F800000, 0x80000000, 0xBE000000, 0x3E800001, 0x3F800000])
def test_a_noise_that_cannot_be_is_refused(name, factor):
    """NaN, ∞, −0, −⅛, next above ¼, 1; but not ¼."""
    blob = value_kind(name).pack(np.ones(700), KEY)
    unpack(name, struct.pack("<I", 0x3E800000) + blob[4:], 700)
    with pytest.raises(MalformedPayload, match="stated noise"):
        unpack(name, struct.pack("<I", factor) + blob[4:], 700)


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize(
    ("scale", "error"),
    {
        "NaN": (0x7FC00000, NonFiniteValues),
        "−∞": (0xFF800000, NonFiniteValues),
        "next above 2^118": (0x7A800001, NonFiniteValues),
        "−1": (0xBF800000, MalformedPayload),
        "−0": (0x80000000, MalformedPayload),
    }.values(),
)
def test_hostile_scales_are_refused(name, scale, error):
    groups = 2 if name.startswith("rotated") else 10
    codes = bytes(value_kind(name).size(5000) - 4 - 4 * groups)
    read, noise = unpack(name, bytes(4) + struct.pack("<I", 0x7A800000) * groups + codes, 5000)
    assert np.all(np.isfinite(read))
    assert np.all(np.isfinite(noise))
    for at in (0, groups - 1):
        scales = [0x3F800000] * groups
        scales[at] = scale
        with pytest.raises(error):
            unpack(name, bytes(4) + struct.pack(f"<{groups}I", *scales) + codes, 5000)


@pytest.mark.parametrize("name", GRIDS)
def test_codes_of_a_group_of_zeros_are_refused(name):
    blob = bytearray(value_kind(name).size(100))
    unpack(name, bytes(blob), 100)
    blob[8] = 1
    with pytest.raises(MalformedPayload, match="scale 0"):
        unpack(name, bytes(blob), 100)


@pytest.mark.parametrize(("name", "byte"), [("terngrad", 243), ("qsgd-2", 3), ("qsgd-8", 255), ("qsgd-4", 0xF0)])
def test_codes_beyond_the_levels_are_refused(name, byte):
    head = bytes(4) + struct.pack("<f", 1.0)
    count = 5 if name == "terngrad" else 2
    unpack(name, head + bytes(value_kind(name).size(count) - 8), count)
    with pytest.raises(MalformedPayload, match=r"levels|trits"):
        unpack(name, head + bytes([byte]) + bytes(value_kind(name).size(count) - 9), count)


@pytest.mark.parametrize(
    ("name", "count", "last"), [("terngrad", 4, 81), ("qsgd-3", 1, 8), ("rotated-1", 3, 8), ("natural", 3, 8)]
)
def test_padding_is_refused(name, count, last):
    blob = bytearray(value_kind(name).pack(np.ones(count), KEY))
    blob[-1] |= last
    if name == "terngrad":
        blob[-1] = 2 * (1 + 3 + 9 + 27) + last
    with pytest.raises(MalformedPayload, match="padding"):
        unpack(name, bytes(blob), count)


def test_natural_numbers_that_are_none_are_refused():
    with pytest.raises(NonFiniteValues):
        unpack("natural", bytes(4) + b"\x7f\xff" + b"\0", 2)
    with pytest.raises(MalformedPayload, match="sign"):
        unpack("natural", bytes(4) + b"\x7f\x00" + b"\x02", 2)


@pytest.mark.parametrize("name", SOME)
def test_what_is_cut_off_is_refused_before_anything_is_allocated(name):
    blob = value_kind(name).pack(np.ones(700), KEY)
    for cut in (0, 3, 4, 10, len(blob) - 1):
        with pytest.raises(PayloadError):
            unpack(name, blob[:cut], 700)
    with pytest.raises(PayloadError):
        unpack(name, blob, 1 << 40)


@pytest.mark.parametrize("name", SOME)
def test_omega_is_the_bound_of_the_paper(name):
    kind = value_kind(name)
    wanted = {
        "terngrad": theory.terngrad_bound(512),
        "natural": 0.125,
        "qsgd-4": theory.qsgd_bound(7, 512),
        "rotated-3": theory.rotated_bound(8, 4096),
    }
    assert kind.omega(10**6) == wanted.get(name, kind.omega(10**6))
    assert 0 <= kind.omega(1) <= kind.omega(100) <= kind.omega(10**6)
