"""Both twins draw the coordinates that the sampler's specification says, whole and range by range."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import Sample, draw
from sparsemean.kernels.sample import Draw, places, sample_numpy
from sparsemean.sampling import Key, coordinates, coordinates_between, tile_size

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "sampling_v1.json").read_text())
TWINS = pytest.mark.parametrize("twin", [sample_numpy, draw()], ids=["numpy", "numba"])


def sample_of(key: Key, dim: int, k: int) -> Sample:
    return Sample.keyed(key.digest(b"coordinates"), dim, k, tile_size(dim))


@st.composite
def samples(draw: st.DrawFn) -> Sample:
    """Blocks of other sizes than the sampler's too, so that there are many, and wide ones."""
    size = 1 << draw(st.integers(7, 13) | st.just(17))
    dim = draw(st.integers(1, 5 * size))
    k = draw(st.integers(1, dim) | st.just(dim) | st.integers(1, min(dim, 3)))
    return Sample.keyed(draw(st.binary(min_size=32, max_size=32)), dim, k, size)


def drawn(twin: Draw, sample: Sample, first: int, last: int, dtype: type = np.int64) -> np.ndarray:
    at = places(sample, first, last)
    out = np.full(at[-1] - at[0], -1, dtype)
    twin(sample, first, last, out)
    return out


def test_the_compiled_twin_is_tested() -> None:
    assert draw() is not sample_numpy


@given(samples(), st.data())
@settings(max_examples=200)
def test_both_draw_the_same(sample: Sample, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, sample.tiles))
    last = data.draw(st.integers(first, sample.tiles))
    expected = drawn(sample_numpy, sample, first, last)
    assert np.array_equal(drawn(draw(), sample, first, last), expected)
    assert np.array_equal(drawn(draw(), sample, first, last, np.int32), expected)


@TWINS
@pytest.mark.parametrize(
    "dim", [1, 2, 3, 63, 64, 65, 66, 127, 128, 129, 784, 4095, 4096, 4097, 4160, 4161, 8191, 8192, 12289, 100_000]
)
def test_as_the_sampler(twin: Draw, dim: int) -> None:
    key = Key(2**64 - 1, 2**63 - 1, "ü")
    for k in {1, 2, dim // 3, dim - 1, dim} & set(range(1, dim + 1)):
        sample = sample_of(key, dim, k)
        assert np.array_equal(drawn(twin, sample, 0, sample.tiles), coordinates(key, dim, k))


@TWINS
@pytest.mark.parametrize("dim", [2**33 + 5, 2**37 - 1, 2**40])
def test_as_the_sampler_where_blocks_are_wide(twin: Draw, dim: int) -> None:
    key, k = Key(5, 0, None), dim // 1000
    sample = sample_of(key, dim, k)
    for first in (0, 12_345, sample.tiles - 3):
        found, place = coordinates_between(key, dim, k, first * sample.size, min((first + 3) * sample.size, dim))
        assert np.array_equal(drawn(twin, sample, first, first + 3), found)
        assert places(sample, first, first)[0] == place


@TWINS
def test_golden(twin: Draw) -> None:
    for case in GOLDEN["coordinates"]:
        key = Key(int(case["seed"]), int(case["round"]), case["node"], case["part"])
        sample = sample_of(key, case["dim"], case["k"])
        found = drawn(twin, sample, 0, sample.tiles)
        assert found[:8].tolist() == case["first"]
        assert hashlib.sha256(found.astype("<i8").tobytes()).hexdigest() == case["sha256"]
