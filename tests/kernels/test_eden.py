"""Rotation and levels of EDEN: against erf, against matrices, and both twins to the bit."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import compiled_eden, eden
from sparsemean.kernels.bit_stream import packed, packed_bytes, unpacked
from sparsemean.kernels.eden import LEAST, TILE, Tiles
from sparsemean.kernels.lloyd_max import UNIT, centroids, distortion, thresholds

STREAM = [5, 2**63 + 7]


@settings(deadline=None, max_examples=40)
@given(
    count=st.sampled_from([512, 513, 784, 1023, 2048, 4095, 4096, 4097, 4607, 4608, 9000]) | st.integers(512, 9000),
    rate=st.integers(16, 128),
    size=st.sampled_from([1e-44, 1e-30, 1.0, 1e30]),
    zeros=st.sampled_from([0, 1, 4096]),
    seed=st.integers(0, 2**32),
)
def test_both_leave_the_same_bits(count: int, rate: int, size: float, zeros: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = (size * rng.standard_normal(count)).astype(np.float32)
    values[:zeros] = 0.0
    stream = rng.integers(0, 2**64, 2, np.uint64).tolist()
    tiles = Tiles.of(count, rate)
    found = []
    for there, back in (
        (eden.rotate_and_round_numpy, eden.rotate_back_numpy),
        (compiled_eden.rotate_and_round, compiled_eden.rotate_back),
    ):
        scales, codes = np.full(tiles.finer.size, np.nan, "f4"), np.full(tiles.begins[-1], 255, np.uint8)
        there(stream, values, tiles, scales, codes)
        out, energies = np.full(count, np.nan, "f4"), np.full(scales.size, np.nan)
        back(stream, scales, codes, tiles, out, energies)
        found.append(tuple(array.tobytes() for array in (scales, codes, out, energies)))
        assert np.all(np.isfinite(out))
    assert found[0] == found[1]


def normal(x: float) -> float:
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("bits", range(1, 9))
def test_levels_are_centroids_of_what_is_nearest_to_them(bits: int) -> None:
    """Lloyd's conditions, to the rounding of the levels; and the distortion that follows."""
    levels, between = centroids(bits).astype(float), thresholds(bits).astype(float)
    assert levels.tolist() == (-levels[::-1]).tolist()
    assert between.tolist() == ((levels[1:] + levels[:-1]) / 2).tolist()
    edges = [-math.inf, *between.tolist(), math.inf]
    zq = qq = 0.0
    for level, (low, high) in zip(levels.tolist(), itertools.pairwise(edges), strict=True):
        mass = (math.erfc(low / math.sqrt(2)) - math.erfc(high / math.sqrt(2))) / 2
        if low > 0:  # where the difference of two numbers near 0 is exact enough
            assert (normal(low) - normal(high)) / mass == pytest.approx(level, abs=UNIT)
        zq, qq = zq + level * (normal(low) - normal(high)), qq + level**2 * mass
    assert distortion(bits) == pytest.approx(1 - zq**2 / qq, rel=1e-5, abs=1e-10)


def test_levels_of_one_and_two_bits_are_those_of_the_literature() -> None:
    """√(2/π); Max 1960: 0.4528 and 1.5104, distortion 0.1175."""
    assert centroids(1)[1] == pytest.approx(math.sqrt(2 / math.pi), abs=UNIT / 2)
    assert centroids(2)[2:] == pytest.approx([0.4528, 1.5104], abs=UNIT)
    assert distortion([1, 2, 3, 4]) == pytest.approx([1 - 2 / math.pi, 0.1175, 0.03454, 0.009497], rel=1e-3)


@pytest.mark.parametrize("size", [512, 513, 514, 767, 784, 1000, 2049, 4095, 4096])
def test_a_rotation_keeps_inner_products_and_is_undone(size: int) -> None:
    rng = np.random.default_rng(size)
    one, other = rng.standard_normal((2, size)).astype(np.float32)
    factor = eden.shrinkage(size)
    a, b = (eden.rotated(x, STREAM, 3).astype(float) * factor for x in (one, other))
    assert a @ b == pytest.approx(float(one.astype(float) @ other), abs=1e-4)
    assert eden.rotated_back(a.astype(np.float32), STREAM, 3) * factor == pytest.approx(one, abs=2e-6)


@pytest.mark.parametrize("size", [8, 9, 11, 12, 13, 16])
def test_a_stage_is_a_matrix_and_the_way_back_its_transpose(size: int) -> None:
    unit = np.eye(size, dtype=np.float32)
    there = np.array([eden.butterflies(row) for row in unit], np.float64).T
    back = np.array([eden.butterflies_back(row) for row in unit], np.float64).T
    assert np.array_equal(there, back.T)
    assert there @ there.T == pytest.approx(2 * np.eye(size), abs=1e-6)
    if size == 16:
        hadamard = np.array([[(-1) ** (i & j).bit_count() for j in range(16)] for i in range(16)])
        assert np.array_equal(np.linalg.matrix_power(there, 4), hadamard)


def test_each_tile_and_pass_has_its_own_signs() -> None:
    drawn = np.array([eden.signs(STREAM, layer, TILE) for layer in range(20)])
    assert set(drawn.ravel().tolist()) == {1.0, -1.0}
    products = drawn @ drawn.T / math.sqrt(TILE)
    assert np.abs(products[np.triu_indices(20, 1)]).max() < 4.5  # z, of 190 pairs


def test_numbers_that_only_rounding_errors_keep_from_0_are_rounded_at_random() -> None:
    """Up as often as down, |z| < 4.5; of 512 rotated numbers of such a vector about fifteen are meant to be 0."""
    values, near = np.zeros(512, np.float32), np.empty(0)
    values[[0, 511]] = 0.1, 0.05
    for tile in range(200):
        z = eden.rotated(values, STREAM, tile) * np.float32(10 * eden.shrinkage(512) * math.sqrt(512))
        near = np.append(near, np.sign(eden.nudged(z, STREAM, tile)[np.abs(z) < 1e-5]))
    assert near.size > 1000
    assert abs(near.mean()) < 4.5 / math.sqrt(near.size)


@pytest.mark.parametrize("count", [*range(512, 9300, 97), 4095, 4096, 4097, 4607, 4608, 8191, 8192, 8193, 8703, 8704])
def test_tiles_cover_all_values_and_none_is_small(count: int) -> None:
    tiles = Tiles.of(count, 37)
    sizes = np.diff(tiles.starts)
    assert (tiles.starts[0], tiles.starts[-1]) == (0, count)
    assert sizes.min() >= LEAST
    assert sizes.max() <= TILE
    assert np.all(tiles.starts[:-1] % 2048 == 0)
    assert np.all(np.isin(sizes[:-1], [TILE, TILE // 2]))
    assert np.all(tiles.finer % 8 == 0)
    assert np.all((5 * sizes - 16 * tiles.finer >= 0) & (5 * sizes - 16 * tiles.finer < 128))  # 37 = 2·16 + 5


@given(width=st.integers(1, 8), codes=st.lists(st.integers(0, 255), max_size=40))
def test_integers_fill_bytes_from_the_lowest_bit_on(width: int, codes: list[int]) -> None:
    few = [code % 2**width for code in codes]
    stored = packed(np.array(few, np.uint8), width)
    number = sum(code << width * i for i, code in enumerate(few))
    assert stored.tobytes() == number.to_bytes(packed_bytes(len(few), width), "little")
    assert unpacked(stored, width)[: len(few)].tolist() == few


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=40))
def test_sums_by_halving_are_sums(numbers: list[float]) -> None:
    assert eden.halved(np.array(numbers)) == pytest.approx(math.fsum(numbers), abs=1e-7)
    assert eden.halved(np.array([1.0, 1e-17, -1.0, 1e-17])) == 2e-17  # 1 and −1 meet first
