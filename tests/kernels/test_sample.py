"""Both twins draw the coordinates of the sampler's specification, whole or in ranges, and gather the values there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import Sample, compiled
from sparsemean.kernels.hands import hand_size
from sparsemean.kernels.sample import drawn_near, gather_numpy, places, sample_numpy
from sparsemean.kernels.twin import chosen
from sparsemean.sampling import Key, balanced_sample_of, coordinates, coordinates_between, sample_between, tile_size

GOLDEN, BALANCED = (
    json.loads((Path(__file__).parents[1] / "golden" / f"{name}_v1.json").read_text())
    for name in ("sampling", "balanced")
)
TWINS = pytest.mark.parametrize("twin", [sample_numpy, compiled.sample], ids=["numpy", "numba"])
GATHERS = pytest.mark.parametrize("twin", [gather_numpy, compiled.gather], ids=["numpy", "numba"])


def sample_of(key: Key, dim: int, k: int) -> Sample:
    return Sample.keyed(key.digest(b"coordinates"), dim, k, tile_size(dim))


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Tiles and hands of other sizes than the sampler's too, so that there are many, and wide ones."""
    size = 1 << draw(st.integers(7, 13) | st.just(17))
    dim = draw(st.integers(1, 5 * size))
    k = draw(st.integers(1, dim) | st.just(dim) | st.integers(1, min(dim, 3)))
    digests = st.binary(min_size=32, max_size=32)
    sample = Sample.keyed(draw(digests), dim, k, size)
    if draw(st.booleans()):
        return sample
    slots = draw(st.integers(1, 20) | st.integers(2, 1 << 20))
    hand = draw(st.just(hand_size(dim, k, size)) | st.integers(1, size.bit_length() - 1).map(lambda w: 1 << w))
    return sample.balanced(draw(digests), hand, draw(st.integers(0, slots - 1)), slots)


def drawn(twin: Callable[..., None], sample: Sample, first: int, last: int, dtype: type = np.int64) -> np.ndarray:
    at = places(sample, first, last)
    out = np.full(at[-1] - at[0], -1, dtype)
    twin(sample, first, last, out)
    return out


def test_the_compiled_twin_is_tested() -> None:
    assert chosen(sample_numpy, "sample") is compiled.sample


@given(samples(), st.data())
@settings(max_examples=120)
def test_both_draw_the_same(sample: Sample, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, sample.tiles))
    last = data.draw(st.integers(first, sample.tiles))
    expected = drawn(sample_numpy, sample, first, last)
    assert np.array_equal(drawn(compiled.sample, sample, first, last), expected)
    assert np.array_equal(drawn(compiled.sample, sample, first, last, np.int32), expected)


@TWINS
@pytest.mark.parametrize(
    "dim", [1, 2, 3, 63, 64, 65, 66, 127, 128, 129, 784, 4095, 4096, 4097, 4160, 4161, 8191, 8192, 12289, 100_000]
)
def test_as_the_sampler(twin: Callable[..., None], dim: int) -> None:
    key = Key(2**64 - 1, 2**63 - 1, "ü")
    for k in {1, 2, dim // 3, dim - 1, dim} & set(range(1, dim + 1)):
        sample = sample_of(key, dim, k)
        assert np.array_equal(drawn(twin, sample, 0, sample.tiles), coordinates(key, dim, k))


@TWINS
@pytest.mark.parametrize("dim", [2**33 + 5, 2**37 - 1, 2**40])
def test_as_the_sampler_where_tiles_are_wide(twin: Callable[..., None], dim: int) -> None:
    key, k = Key(5, 0, None), dim // 1000
    sample = sample_of(key, dim, k)
    for first in (0, 12_345, sample.tiles - 3):
        found, place = coordinates_between(key, dim, k, first * sample.size, min((first + 3) * sample.size, dim))
        assert np.array_equal(drawn(twin, sample, first, first + 3), found)
        assert places(sample, first, first)[0] == place


@TWINS
@pytest.mark.parametrize("dim", [2**33 + 5, 2**37 - 1, 2**40])
def test_balanced_where_everything_is_large(twin: Callable[..., None], dim: int) -> None:
    for k, slot in ((dim // 1000, 0), (dim // 3, 777_777), (dim, (1 << 20) - 1)):
        sample = balanced_sample_of(Key(5, 0, None), dim, k, slot, 1 << 20)
        for first in (0, sample.tiles - 1):
            found, place = sample_between(sample, first * sample.size, min((first + 1) * sample.size, dim))
            assert np.array_equal(drawn(twin, sample, first, first + 1), found)
            assert places(sample, first, first)[0] == place


@TWINS
def test_golden(twin: Callable[..., None]) -> None:
    for case in GOLDEN["coordinates"]:
        key = Key(int(case["seed"]), int(case["round"]), case["node"], case["part"])
        sample = sample_of(key, case["dim"], case["k"])
        found = drawn(twin, sample, 0, sample.tiles)
        assert found[:8].tolist() == case["first"]
        assert hashlib.sha256(found.astype("<i8").tobytes()).hexdigest() == case["sha256"]


@TWINS
def test_golden_balanced(twin: Callable[..., None]) -> None:
    for case in BALANCED["coordinates"]:
        key = Key(int(case["seed"]), int(case["round"]), None, case["part"])
        sample = balanced_sample_of(key, case["dim"], case["k"], case["slot"], case["slots"])
        found = drawn(twin, sample, 0, sample.tiles)
        assert hashlib.sha256(found.astype("<i8").tobytes()).hexdigest() == case["sha256"]


@given(samples(), st.data())
@settings(max_examples=60)
def test_coordinates_near_others_are_those_of_their_tiles(sample: Sample, data: st.DataObject) -> None:
    at = np.array(data.draw(st.lists(st.integers(0, sample.dim - 1), max_size=3)), np.int64)
    every = drawn(sample_numpy, sample, 0, sample.tiles)
    near, where = drawn_near(sample, at)
    assert np.array_equal(where, np.flatnonzero(np.isin(every // sample.size, at // sample.size)))
    assert np.array_equal(near, every[where])


@GATHERS
@given(sample=samples())
@settings(max_examples=60)
def test_values_of_every_kind_of_sample_are_gathered(twin: Callable[..., None], sample: Sample) -> None:
    vector, sent = np.arange(sample.dim, dtype=np.float64), np.full(sample.k, np.nan)
    twin(sample, vector, sent)
    assert np.array_equal(sent, drawn(sample_numpy, sample, 0, sample.tiles))


@GATHERS
@given(dim=st.integers(1, 13_000), data=st.data())
@settings(max_examples=60)
def test_values_are_gathered_at_the_coordinates(twin: Callable[..., None], dim: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, dim))
    have, want = data.draw(st.sampled_from([("f4", "f4"), ("f8", "f8"), ("f8", "f4")]))
    key = Key(3, data.draw(st.integers(0, 1000)), "n")
    vector = np.random.default_rng(dim).normal(size=dim).astype(have)
    vector.flags.writeable = False
    sent = np.full(k, np.nan, want)
    twin(Sample.keyed(key.digest(b"coordinates"), dim, k, tile_size(dim)), vector, sent)
    assert sent.tobytes() == vector[coordinates(key, dim, k)].astype(want).tobytes()


@GATHERS
def test_values_are_gathered_from_vectors_with_gaps_in_memory(twin: Callable[..., None]) -> None:
    key, dim, k = Key(3, 0, None), 5000, 70
    vector, sent = np.arange(3 * dim, dtype=np.float32)[::3], np.empty(k, np.float32)
    twin(Sample.keyed(key.digest(b"coordinates"), dim, k, tile_size(dim)), vector, sent)
    assert np.array_equal(sent, vector[coordinates(key, dim, k)])


def test_a_vector_of_another_length_is_refused_before_memory_is_read() -> None:
    sample = Sample.keyed(bytes(range(32)), 100, 10, 4096)
    with pytest.raises(ValueError, match="100 numbers"):
        compiled.gather(sample, np.ones(99), np.empty(10))
