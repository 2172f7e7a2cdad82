"""Modulo values: read by what is expected, exactly or not at all."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues
from sparsemean.payload import Resolved
from sparsemean.sampling import Key
from sparsemean.theory.eden import eden_error
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import value_kind
from sparsemean.wire.values.modulo import FAILED, Codes, Modulo, sketch_bytes, sketch_of, steps_of_spread

COUNT = 600


def key(trial: int = 0) -> Key:
    return Key(7, trial, "station-12")


def kind(bits: int = 3) -> Modulo:
    found = value_kind(f"modulo-{bits}")
    assert isinstance(found, Modulo)
    return found


def sent(x: np.ndarray, expected: np.ndarray, bits: int = 3, trial: int = 0) -> Codes:
    """The codes of a node that is told of the expectation, as they arrive."""
    blob = replace(kind(bits), sketch=sketch_of(expected, key(trial))).pack(x, key(trial))
    assert len(blob) == kind(bits).size(x.size)
    return kind(bits).codes(Reader(memoryview(blob)), x.size, key(trial))


def normal(seed: int, count: int = COUNT) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=count)


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("count", [512, 700, 4607])
def test_what_is_near_comes_back_with_the_stated_noise(bits, count):
    b = 10.0 * normal(1, count)
    x = b + 1e-3 * normal(2, count)
    codes = sent(x, b, bits)
    found = codes.near(b)
    assert found.failed == 0
    stated = np.asarray(found.noise)
    np.testing.assert_allclose(stated.mean(), 1e-6 * steps_of_spread(bits) ** 2 / 12, rtol=0.5)  # 64 numbers told it
    assert np.mean((found.values - x) ** 2) == pytest.approx(stated.mean() + 1e-12, rel=0.25)


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_what_is_far_or_not_told_of_is_as_by_eden(bits):
    x = normal(1)
    for expected in (100.0 * normal(2), np.zeros(COUNT)):
        codes = sent(x, expected, bits)
        assert np.all(codes.steps < 0.0)
        found = codes.near(expected)
        assert np.sum((found.values - x) ** 2) / np.sum(x**2) == pytest.approx(eden_error(bits), rel=0.3)
    values, noise = kind(bits).unpack(Reader(memoryview(kind(bits).pack(x, key()))), COUNT, key())
    np.testing.assert_array_equal(values, found.values)
    assert noise.sum() == found.noise.sum()


def test_estimates_are_unbiased_where_all_is_resolved():
    """The mean of 100 errors has the square of one of them over 100; of 600 coordinates that varies by 6 %."""
    b, trials = normal(1), 100
    x = b + 0.1 * normal(2)
    errors, noise = np.zeros(COUNT), 0.0
    for trial in range(trials):
        found = sent(x, b, trial=trial).near(b)
        assert not found.failed
        errors += found.values - x
        noise += found.noise.sum()
    assert np.sum((errors / trials) ** 2) == pytest.approx(noise / trials**2, rel=0.3)


def unwrapped(found: Resolved, x: np.ndarray, codes: Codes) -> bool:
    """Whether all values are within the noise of x: a point that is taken for another is off by whole turns."""
    return bool(np.sum((found.values - x) ** 2) < x.size * float(codes.steps.max()) ** 2 / 4)


@pytest.mark.parametrize("jump", [0.3, 1.0, 3.0, 100.0])
def test_no_abrupt_change_of_the_expectation_goes_unnoticed(jump):
    """As for a node that was told of another expectation than is there when its payload is read."""
    b, failed = normal(1), 0
    for trial in range(50):
        x = b + 0.05 * normal(2 + trial)
        codes, there = sent(x, b, trial=trial), b + jump * normal(1000 + trial)
        found = codes.near(there)
        failed += found.failed
        if found.failed:
            np.testing.assert_array_equal(found.values, there.astype(np.float32))
            left_out = FAILED * (float(codes.steps[0]) / steps_of_spread(3)) ** 2
            assert np.asarray(found.noise)[0] == pytest.approx(left_out)
        else:
            assert unwrapped(found, x, codes)
    assert failed == 50 or jump == 0.3


def test_heavy_tails_are_resolved_or_noticed():
    """A few coordinates have nearly all of the difference; the rotation spreads it."""
    b, failed = normal(1), 0
    for trial in range(100):
        rng = np.random.default_rng(trial)
        x = (
            b
            + np.where(rng.random(COUNT) < 0.005, 50.0, 0.0) * rng.normal(size=COUNT)
            + 0.01 * rng.standard_cauchy(COUNT)
        )
        codes = sent(x, b, trial=trial)
        found = codes.near(b)
        failed += found.failed
        assert found.failed or codes.steps[0] < 0.0 or unwrapped(found, x, codes)
    assert failed <= 2


def test_a_single_point_that_is_taken_for_another_is_noticed():
    b = normal(1)
    codes = sent(b + 0.05 * normal(2), b)
    assert not codes.near(b).failed
    for at in range(0, COUNT, 7):  # another code, as if that point had been one step farther
        stored = codes.codes.copy()
        stored[at * 3 // 8] ^= 1 << at * 3 % 8
        assert replace(codes, codes=stored).near(b).failed == 1


def test_a_tile_fails_as_often_as_students_t_says():
    """With 2 bits one tile of 4,096 in 600 fails; 100 tiles of 600 numbers, which have a seventh of that."""
    b = normal(1)
    assert sum(sent(b + 0.1 * normal(trial), b, 2, trial).near(b).failed for trial in range(100)) <= 2


def test_each_tile_stands_for_itself():
    b = normal(1, 3 * 4096)
    x = b + 0.01 * normal(2, b.size)
    codes = sent(x, b)
    there = b.copy()
    there[4096:8192] += 1.0
    found = codes.near(there)
    assert found.failed == 1
    np.testing.assert_array_equal(found.values[4096:8192], there[4096:8192].astype(np.float32))
    assert np.abs(found.values - x)[:4096].max() < 0.1 > np.abs(found.values - x)[8192:].max()
    assert sketch_bytes(b.size) == 3 * 256 == sketch_of(b, key()).nbytes


def test_of_what_came_the_part_is_kept_that_is_not_noise():
    b, x = np.zeros(4096), 0.1 * normal(2, 4096)
    b = b + normal(1, 4096)
    x = b + x
    found = sent(x, b, bits=2).near(b)
    assert np.sum((found.kept - x) ** 2) < 0.75 * np.sum((found.values - x) ** 2)


def test_vectors_of_zeros_and_absurd_expectations():
    zeros = np.zeros(COUNT)
    for expected in (zeros, normal(1)):
        found = sent(zeros, expected).near(expected)
        assert not found.failed
        assert not found.values.any()
    x = normal(1)
    found = sent(x, x + 1e-3 * normal(2)).near(np.full(COUNT, 3e38))
    assert found.failed == 1
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.kept).all()


def test_damage_is_refused():
    b = normal(1)
    blob = replace(kind(), sketch=sketch_of(b, key())).pack(b + 0.01 * normal(2), key())
    plain = kind().pack(b, key())

    def with_step(step: float, frame: bytes) -> bytes:
        return struct.pack("<f", step) + frame[4:]

    def read(frame: bytes) -> Codes:
        return kind().codes(Reader(memoryview(frame)), COUNT, key())

    with pytest.raises(NonFiniteValues, match="steps must be finite"):
        read(with_step(np.nan, blob))
    with pytest.raises(NonFiniteValues, match="at most"):
        read(with_step(-1e38, blob))
    for step in (0.0, -0.0):
        with pytest.raises(MalformedPayload, match="step 0"):
            read(with_step(step, plain))
    with pytest.raises(MalformedPayload, match="has a checksum"):
        read(with_step(-1.0, blob))
    with pytest.raises(MalformedPayload, match="told of none"):
        kind().unpack(Reader(memoryview(blob)), COUNT, key())
    with pytest.raises(MalformedPayload, match="are left"):
        read(blob[:-1])
    with pytest.raises(InvalidInput, match="rescale"):
        kind().pack(np.full(COUNT, 1e30), key())
    padded = kind().pack(normal(1, 601), key())
    with pytest.raises(MalformedPayload, match="padding"):
        kind().codes(Reader(memoryview(padded[:-1] + bytes([padded[-1] | 0x80]))), 601, key())


def test_fewer_than_512_values_are_dithered():
    x = normal(1, 100)
    values, noise = kind(4).unpack(Reader(memoryview(kind(4).pack(x, key()))), 100, key())
    assert np.mean((values - x) ** 2) == pytest.approx(noise.sum() / 100, rel=0.4)
