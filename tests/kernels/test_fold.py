"""Both twins add a batch alike, bit for bit where sums have one order; threads change nothing at all."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import Batch, Blend, Sample, Totals, compiled, fold
from sparsemean.kernels.arrays import scatter_numpy
from sparsemean.kernels.fold import fold_numpy
from sparsemean.sampling import Key, balanced_sample_of, coordinates, tile_size


def totals(dim: int, size: int, blocks: int, with_moments: np.ndarray, moments: bool) -> Totals:
    """Not from 0, as a later batch of a round finds them."""
    rng = np.random.default_rng(9)
    moment_begin = np.where(with_moments, (np.cumsum(with_moments) - 1) * size, -1)
    powers = int(with_moments.sum()) * size if moments else 0
    return Totals(
        sums=rng.normal(size=dim),
        counts=rng.integers(0, 9, dim).astype(np.int32),
        energy=rng.random(blocks if moments else 0),
        moment_begin=moment_begin,
        squares=rng.random(powers),
        cubes=rng.random(powers),
        fourths=rng.random(blocks if moments else 0),
    )


@st.composite
def batches(draw: st.DrawFn) -> tuple[Batch, np.ndarray]:
    """A batch, and which tiles have moments."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = 1 << draw(st.integers(7, 9))
    dim = draw(st.integers(1, 6 * size))
    k, n = draw(st.integers(1, dim)), draw(st.integers(0, 5))
    samples = [Sample.keyed(rng.bytes(32), dim, k, size) for _ in range(n)]
    if slots := draw(st.sampled_from([0, 1, 2, 9, 1 << 20])):
        hand = 1 << draw(st.integers(1, 7))
        samples = [each.balanced(rng.bytes(32), hand, int(rng.integers(slots)), slots) for each in samples]
    starts = np.unique(np.append(0, rng.integers(0, dim, draw(st.sampled_from([0, 1, 4, 200])))))
    weights = np.ones((n, starts.size))
    if draw(st.booleans()):
        weights = rng.random(weights.shape) * rng.integers(0, 3, weights.shape)
    value_type, known_type = draw(st.sampled_from(["f4", "f8"])), draw(st.sampled_from(["f4", "f8"]))
    values = [(rng.normal(size=k) * 10.0 ** rng.integers(-20, 20)).astype(value_type) for _ in range(n)]
    rows = [rng.normal(size=dim).astype(known_type) for _ in range(n)]
    rows_of: dict[str, list[np.ndarray | None]] = {
        "nothing": [None] * n,
        "shared": [*rows[:1] * n],
        "per node": [*rows],
        "some": [row if rng.random() < 0.5 else None for row in rows],
    }
    expected = rows_of[draw(st.sampled_from(sorted(rows_of)))]
    blend = None
    if draw(st.booleans()):
        heard = [None if row is None else rng.integers(0, 2, dim, np.uint8) for row in expected]
        blend = Blend(rng.normal(size=dim), heard, rng.random((3, starts.size)))
    batch = Batch(samples, values, expected, weights, starts, dim / k, blend)
    return batch, rng.random(-(-dim // size)) < draw(st.sampled_from([0.0, 0.5, 1.0]))


def folded(add, batch: Batch, with_moments: np.ndarray, moments: bool, threads: int = 1) -> Totals:
    dim, size = (batch.samples[0].dim, batch.samples[0].size) if batch.samples else (with_moments.size * 128, 128)
    into = totals(dim, size, batch.starts.size, with_moments, moments)
    add(into, batch, threads)
    return into


@given(batches(), st.booleans())
@settings(max_examples=150)
def test_both_add_the_same(case: tuple[Batch, np.ndarray], moments: bool) -> None:
    one, other = (folded(twin, *case, moments) for twin in (fold_numpy, compiled.fold))
    for name in ("sums", "counts", "squares", "cubes"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name
    for name in ("energy", "fourths"):  # their order differs
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-12)


@given(batches())
@settings(max_examples=50)
def test_threads_do_not_change_a_bit(case: tuple[Batch, np.ndarray]) -> None:
    one, three = (folded(compiled.fold, *case, moments=True, threads=threads) for threads in (1, 3))
    assert [array.tobytes() for array in one] == [array.tobytes() for array in three]


@pytest.mark.parametrize("twin", [fold_numpy, compiled.fold], ids=["numpy", "numba"])
def test_as_payloads_added_one_by_one_at_the_coordinates_of_the_sampler(twin) -> None:
    dim, k, n, scale = 10_000, 999, 7, 10_000 / 999
    rng, keys = np.random.default_rng(4), [Key(7, 0, f"station-{i}") for i in range(n)]
    values, weights = rng.normal(size=(n, k)).astype(np.float32), rng.random(n)
    size = tile_size(dim)
    samples = [Sample.keyed(key.digest(b"coordinates"), dim, k, size) for key in keys]
    tiles = -(-dim // size)
    into = Totals(
        np.zeros(dim), np.zeros(dim, np.int32), np.zeros(1), np.arange(tiles) * size,
        np.zeros(tiles * size), np.zeros(tiles * size), np.zeros(1),
    )  # fmt: skip
    twin(into, Batch(samples, list(values), [None] * n, weights[:, None], np.zeros(1, np.int64), scale), 1)
    sums, counts, squares, cubes = np.zeros(dim), np.zeros(dim, np.int32), np.zeros(dim), np.zeros(dim)
    y = weights[:, None] * (scale * values.astype(np.float64))
    for key, one in zip(keys, y, strict=True):
        chosen = coordinates(key, dim, k)
        scatter_numpy(sums, counts, chosen, one)
        squares[chosen] += one * one
        cubes[chosen] += one * one * one
    found = [array[:dim].tobytes() for array in (into.sums, into.counts, into.squares, into.cubes)]
    assert found == [array.tobytes() for array in (sums, counts, squares, cubes)]
    np.testing.assert_allclose([into.energy[0], into.fourths[0]], [(y**2).sum(), (y**4).sum()], rtol=1e-12)


@pytest.mark.parametrize("twin", [fold_numpy, compiled.fold], ids=["numpy", "numba"])
def test_slots_of_a_balanced_draw_count_every_coordinate_equally_often(twin) -> None:
    dim, k, n = 10_000, 1_000, 25  # 2.5 nodes a coordinate
    samples = [balanced_sample_of(Key(7, 0, None), dim, k, slot, n) for slot in range(n)]
    into = totals(dim, tile_size(dim), 1, np.ones(samples[0].tiles, bool), False)._replace(
        sums=np.zeros(dim), counts=np.zeros(dim, np.int32)
    )
    twin(into, Batch(samples, [np.ones(k)] * n, [None] * n, np.ones((n, 1)), np.zeros(1, np.int64), 1.0), 1)
    assert np.array_equal(into.sums, into.counts)
    assert np.unique(into.counts).tolist() == [2, 3]


def test_arrays_that_do_not_fit_are_refused_before_memory_is_read() -> None:
    sample = Sample.keyed(bytes(range(32)), 100, 10, 4096)
    fits = Batch([sample], [np.ones(10)], [None], np.ones((1, 1)), np.zeros(1, np.int64), 1.0)
    into = totals(100, 4096, 1, np.ones(1, bool), False)
    for wrong in (
        fits._replace(values=[np.ones(9)]),
        fits._replace(expected=[np.ones(99)]),
        fits._replace(samples=[sample, sample._replace(k=9)], values=[np.ones(10)] * 2, expected=[None] * 2),
        fits._replace(samples=[sample, sample._replace(slots=2)], values=[np.ones(10)] * 2, expected=[None] * 2),
    ):
        with pytest.raises(ValueError, match=r"size|numbers"):
            fold(into, wrong, 1)
