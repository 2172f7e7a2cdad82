"""Few-bit values with a common scale: noise as ever for each node, less of it in the mean, and what damage does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean import theory
from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues, PayloadError
from sparsemean.kernels.sample import drawn
from sparsemean.sampling import Key, Plan, balanced_sample_of
from sparsemean.wire import coordinates
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import value_kind
from sparsemean.wire.values.dithered import Dithered
from sparsemean.wire.values.stratified import COMMON, OWN, Stratified, most_bytes

LEVELS = {"int8": 256, "int4": 16, "2-bit": 4, "1-bit": 2}
KINDS = pytest.mark.parametrize("name", list(LEVELS))


def kind_of(name: str, scale: float, dim: int, k: int, slot: int = 0, slots: int = 1, round: int = 0) -> Stratified:
    kind = value_kind(name)
    assert isinstance(kind, Dithered)
    return Stratified(kind, scale, balanced_sample_of(Key(7, round, None), dim, k, slot, slots))


def back(kind: Stratified, packed: bytes, count: int, key: Key) -> np.ndarray:
    reader = Reader(memoryview(packed))
    values, noise, wanted = kind.read(reader, count, key)
    reader.finish()
    assert wanted is not None
    assert wanted >= 0
    if packed[0] == COMMON:
        assert np.array_equal(noise, np.full(count, kind.step**2 / 12.0))
    return values


def rounds_of(name: str, x: np.ndarray, scale: float, rounds: int) -> np.ndarray:
    """What comes back of (n, d) vectors of which everything is sent: (rounds, n, d), through bytes."""
    n, dim = x.shape
    found = np.empty((rounds, n, dim))
    for round in range(rounds):
        for slot in range(n):
            kind, key = kind_of(name, scale, dim, dim, slot, n, round), Key(7, round, str(slot))
            at = drawn(kind.sample)
            packed = kind.pack(x[slot][at], key)
            assert packed[0] == COMMON
            found[round, slot, at] = back(kind, packed, dim, key)
    return found


@KINDS
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_what_comes_back_is_within_half_a_step(name, data):
    count = data.draw(st.sampled_from([1, 2, 9, 255, 256, 257, 700]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    x = rng.normal(size=count) * data.draw(st.sampled_from([2.0**-100, 1.0, 3.0, 2.0**100]))
    x[rng.random(count) < 0.1] = 0.0
    scale = 2.0 ** data.draw(st.sampled_from([-100, -1, 0, 1, 2, 100]))
    kind, key = kind_of(name, scale, max(count, 800), count, 3, 5), Key(7, 0, "c")
    packed = kind.pack(x, key)
    assert len(packed) <= kind.size(count) == 1 + most_bytes(kind.kind, count)
    if packed[0] == OWN:
        assert packed[1:] == kind.kind.pack(x, key)
    else:
        tiny = 1e-6 * (np.abs(x) + kind.step)
        assert np.all(np.abs(back(kind, packed, count, key) - x) <= kind.step / 2 + tiny)


@KINDS
def test_each_nodes_noise_is_uniform_with_variance_step_squared_over_12(name):
    """Three senders, values also beyond the scale, 60 rounds of 100: moments of noise/step, |z| < 4.5 for each node."""
    x = np.random.default_rng(1).normal(size=100) * 0.45 + np.array([[0.0], [0.1], [-0.2]])
    step = 2.0 / (LEVELS[name] - 1)
    noise = (rounds_of(name, x, 1.0, 60) - x).transpose(1, 0, 2).reshape(3, -1) / step
    assert np.all(np.abs(noise) <= 0.5 + 1e-4)
    for power, expected in ((1, 0.0), (2, 1 / 12), (3, 0.0), (4, 1 / 80)):
        for node in noise:
            assert abs(np.mean(node**power) - expected) < 4.5 * np.std(node**power) / np.sqrt(node.size)


@KINDS
@pytest.mark.parametrize("apart", [0.0, 0.05, 0.5, 0.6])
def test_the_noise_of_the_mean_is_what_theory_says(name, apart):
    """Four senders, of which two are ``apart`` steps from the other two, 80 rounds: |z| < 4.5."""
    step = 2.0 / (LEVELS[name] - 1)
    x = np.linspace(-0.3, 0.3, 60) + apart * step * np.array([[-0.5], [0.5], [0.5], [-0.5]])
    x[:, 7] = 0.95
    errors = np.mean(rounds_of(name, x, 1.0, 80), axis=1) - x.mean(axis=0)
    exact = [theory.shared_dither_variance(x[:, j], step) for j in range(60)]
    squares = np.mean(errors**2, axis=1)
    assert abs(squares.mean() - np.mean(exact)) < 4.5 * squares.std() / np.sqrt(80)
    assert np.mean(exact) <= theory.shared_dither_bound(4) * step**2 / 48
    if apart == 0.0:
        assert np.mean(exact) == pytest.approx(step**2 / (12 * 4**2))


@KINDS
def test_values_beyond_the_codes_are_listed_and_no_worse(name):
    rng = np.random.default_rng(5)
    x = rng.normal(size=2000)
    kind, key = kind_of(name, 2.5, 2000, 2000, 1, 4), Key(7, 0, "b")
    packed = kind.pack(x, key)
    at = coordinates.unpack(Reader(memoryview(packed)[1:]), 2000, 2000)
    assert packed[0] == COMMON
    assert 0 < at.size < 2000 / 64
    assert np.all(np.abs(x[at]) > 2.5)
    assert np.all(np.abs(back(kind, packed, 2000, key) - x) <= kind.step / 2 * (1 + 1e-5))


@KINDS
@pytest.mark.parametrize(("factor", "mode"), [(1e-3, OWN), (0.2, OWN), (1.0, COMMON), (4.0, OWN), (1e3, OWN)])
def test_a_scale_far_from_the_nodes_own_is_left_alone(name, factor, mode):
    x = np.random.default_rng(5).normal(size=1024)
    scale = {"int8": 3.0, "int4": 3.0, "2-bit": 2.5, "1-bit": 2.0}[name]
    kind = kind_of(name, float(np.float32(scale)), 1024, 1024)
    packed = kind.pack(x / factor, Key(7, 0, "b"))
    assert packed[0] == mode
    _, _, wanted = kind.read(Reader(memoryview(packed)), 1024, Key(7, 0, "b"))
    assert 0.7 < wanted / (scale / factor) < 1.8, "so that a later round fits"


@KINDS
def test_zeros_and_infinite_values(name):
    kind = kind_of(name, 1.0, 300, 300)
    packed = kind.pack(np.zeros(300), Key(7, 0, "b"))
    assert packed == bytes([OWN]) + kind.kind.pack(np.zeros(300), Key(7, 0, "b"))
    assert np.array_equal(back(kind, packed, 300, Key(7, 0, "b")), np.zeros(300))
    for wrong in (np.nan, np.inf, 2.0**127):
        with pytest.raises(InvalidInput, match="takes values up to"):
            kind.pack(np.full(300, wrong), Key(7, 0, "b"))


# --- damage ---------------------------------------------------------------------------------------


def test_an_unknown_way_of_rounding_is_refused():
    kind = kind_of("int4", 1.0, 9, 9)
    for mode in (2, 255):
        with pytest.raises(MalformedPayload, match="unknown way"):
            kind.read(Reader(memoryview(bytes([mode]) + bytes(20))), 9, Key(7, 0, "b"))


@pytest.mark.parametrize("name", ["int8", "int4", "2-bit"])
def test_a_value_beyond_the_codes_has_the_first_or_the_last(name):
    kind, bits = kind_of(name, 1.0, 8, 8), value_kind(name).bits  # type: ignore[attr-defined]
    listed = bytes([COMMON]) + coordinates.pack(np.array([0]), 8) + b"\0"
    for code, fine in ((0, True), (1, False), (LEVELS[name] - 2, False), (LEVELS[name] - 1, True)):
        body = listed + bytes([code]) + bytes(bits - 1)
        if fine:
            assert abs(back(kind, body, 8, Key(7, 0, "b"))[0]) > 1.0
        else:
            with pytest.raises(MalformedPayload, match="a code between"):
                kind.read(Reader(memoryview(body)), 8, Key(7, 0, "b"))


def test_a_value_beyond_float32_is_refused():
    kind = kind_of("1-bit", 2.0**126, 8, 8)
    body = bytes([COMMON]) + coordinates.pack(np.array([0]), 8) + b"\xff" + b"\x01"
    with pytest.raises(NonFiniteValues, match="beyond float32"):
        kind.read(Reader(memoryview(body)), 8, Key(7, 0, "b"))


@KINDS
@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(name, body):
    kind, reader = kind_of(name, 0.5, 40, 20, 1, 3), Reader(memoryview(body))
    try:
        values, noise, _ = kind.read(reader, 20, Key(7, 0, "b"))
        reader.finish()
    except PayloadError:
        return
    assert np.all(np.isfinite(values))
    assert np.all(np.asarray(noise) >= 0)


@pytest.mark.parametrize(
    "scale", [0.0, -1.0, float("nan"), float("inf"), 2.0**127, 1.0000001, 1 + 2**-8, 2.0**-140, 1, "1", True]
)
def test_what_is_no_scale_is_refused(scale):
    with pytest.raises(InvalidInput, match="bfloat16"):
        Plan(0, 2, scale=scale)
    with pytest.raises(InvalidInput, match="with a slot and without an epoch"):
        Plan(None, 0, scale=1.0)


@KINDS
def test_which_way_values_travel_does_not_depend_on_the_dither(name):
    """Else the dither of those that travel by the common scale would not be uniform."""
    count, ways = 700, set()
    for larger in range(0, 200, 4):
        values = np.full(count, 0.9)
        values[:larger] = 1.2
        found = {
            kind_of(name, 1.0, count, count, round=round).pack(values, Key(7, round, "a"))[0] for round in range(8)
        }
        assert len(found) == 1
        ways |= found
    assert ways == {OWN, COMMON}
