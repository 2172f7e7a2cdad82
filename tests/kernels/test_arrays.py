"""Passes over arrays: compiled loops against their NumPy twins, many pieces against one."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import sparsemean as sm
from sparsemean.decoding import totals
from sparsemean.kernels import add_scaled, compiled_arrays, power_sums, reweigh
from sparsemean.kernels.arrays import add_scaled_numpy, largest_numpy, power_sums_numpy, reweigh_numpy, scatter_numpy
from sparsemean.kernels.twin import ARRAYS, chosen, twin

TINY = float(np.finfo(np.float32).smallest_subnormal)
numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, TINY, -TINY, 3 * TINY]),
    st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=True),
)


# --- scatter --------------------------------------------------------------------------------------


def scattered(add: Callable[..., None], dim: int, seed: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    sums, counts = np.zeros(dim), np.zeros(dim, np.int32)
    for _ in range(3):
        chosen = rng.permutation(dim)[: rng.integers(0, dim + 1)]
        add(sums, counts, chosen, rng.normal(size=chosen.size) * 10.0 ** rng.integers(-30, 30))
    return [array.tobytes() for array in (sums, counts)]


@given(dim=st.integers(1, 60), seed=st.integers(0, 2**32))
def test_scattering_leaves_the_same_bits(dim: int, seed: int) -> None:
    assert scattered(compiled_arrays.scatter, dim, seed) == scattered(scatter_numpy, dim, seed)


def test_without_numba_estimates_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, scheme = np.random.default_rng(1).normal(size=(5, 40)), sm.named("rand-k-spatial-avg", k=0.3)
    with_numba = sm.estimate_mean(vectors, scheme)
    monkeypatch.setitem(sys.modules, "numba", None)
    assert chosen(scatter_numpy, "scatter", ARRAYS) is scatter_numpy
    monkeypatch.setattr(totals, "scatter", twin(scatter_numpy, "scatter", ARRAYS))
    without = sm.estimate_mean(vectors, scheme)
    assert without.mean.tobytes() == with_numba.mean.tobytes()
    assert (without.error, without.error_se) == (with_numba.error, with_numba.error_se)


# --- closing a round: power_sums, reweigh, add_scaled ---------------------------------------------


def some(dim: int, size: int, seed: int) -> tuple[Any, ...]:
    """Sums, powers at the coordinates of some tiles, counts, where the powers of each tile begin, and their size."""
    rng = np.random.default_rng(seed)
    keep = rng.random(-(-dim // size)) < 0.6
    begin = np.where(keep, (np.cumsum(keep) - 1) * size, -1)
    y = rng.normal(size=(5, dim)) * (rng.random((5, dim)) < 0.5)
    held = np.repeat(keep, size)[:dim]
    squares, cubes = ((y**power).sum(axis=0)[held] for power in (2, 3))
    return y.sum(axis=0), squares, cubes, np.count_nonzero(y, axis=0).astype(np.int32), begin, size


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    size=st.sampled_from([1, 4, 16, 64]),
    seed=st.integers(0, 2**32),
)
def test_power_sums_are_those_of_the_twin(sizes: list[int], size: int, seed: int) -> None:
    given, starts = some(sum(sizes), size, seed), np.cumsum([0, *sizes[:-1]])
    least, most = int(given[3].min()), int(given[3].max())
    further: tuple[Any, ...] = starts, least, most - least + 1
    for one, other in zip(power_sums(*given, *further), power_sums_numpy(*given, *further), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_sums_by_count_are_what_they_are_called() -> None:
    """By the definition, from the values of all nodes: M, S², then of held coordinates the central sums."""
    rng = np.random.default_rng(2)
    sent = rng.random((6, 90)) < 0.4
    y = np.where(sent, rng.normal(size=sent.shape), 0.0)
    counts, starts = sent.sum(axis=0).astype(np.int32), np.array([0, 50])
    begin, held = np.array([0, -1, 32]), np.r_[0:32, 64:90]  # tiles of 32, of which the second keeps no powers
    sums, squares, cubes = ((y**power).sum(axis=0) for power in (1, 2, 3))
    _, table = power_sums(sums, squares[held], cubes[held], counts, begin, 32, starts, 0, 7)
    for m, block in itertools.product(range(7), range(2)):
        here = [j for j in range(90) if counts[j] == m and (j >= 50) == block]
        expected = [len(here), sum(sums[j] ** 2 for j in here), *np.zeros(8)]
        for j in set(here) & set(held.tolist()):
            v = y[sent[:, j], j]
            x = v.mean() if m else 0.0
            c2, c3, c4 = (np.sum((v - x) ** power) for power in (2, 3, 4))
            expected[2:] += np.array([1, x**4, c2**2, x**2 * c2, x * c3, c4 - np.sum(v**4), c2**4, x**8])
        np.testing.assert_allclose(table[:, m, block], expected, rtol=1e-9, atol=1e-12)


@given(dim=st.integers(1, 60), nodes=st.integers(1, 9), seed=st.integers(0, 2**32), anew=st.booleans())
def test_reweighing_leaves_the_same_bits(dim: int, nodes: int, seed: int, anew: bool) -> None:
    rng = np.random.default_rng(seed)
    factors, counts, sums = rng.normal(size=nodes + 1), rng.integers(0, nodes + 1, dim, np.int32), rng.normal(size=dim)
    one, other = rng.normal(size=(1, dim)).repeat(2, axis=0)
    sums[rng.random(dim) < 0.1] = -0.0
    reweigh(factors, counts, sums, one, anew)
    reweigh_numpy(factors, counts, sums, other, anew)
    assert one.tobytes() == other.tobytes()
    for each in (reweigh, reweigh_numpy):  # in place
        inside = sums.copy()
        each(factors, counts, inside, inside, True)
        np.testing.assert_array_equal(inside, factors[counts] * sums)


@given(dim=st.integers(1, 60), seed=st.integers(0, 2**32), anew=st.booleans())
def test_adding_a_multiple_leaves_the_same_bits(dim: int, seed: int, anew: bool) -> None:
    rng = np.random.default_rng(seed)
    sums, factor, (one, other) = rng.normal(size=dim), rng.normal(), rng.normal(size=(1, dim)).repeat(2, axis=0)
    add_scaled(sums, factor, one, anew)
    add_scaled_numpy(sums, factor, other, anew)
    assert one.tobytes() == other.tobytes()


def test_pieces_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    given = some(5000, 16, seed=1)
    sums = given[0]
    starts, factors, counts = np.array([0, 10, 3000]), rng.normal(size=4), rng.integers(0, 4, 5000, np.int32)
    further: tuple[Any, ...] = starts, 0, 6
    whole = power_sums(*given, *further), np.zeros(5000)
    reweigh(factors, counts, sums, whole[1], False)
    monkeypatch.setattr(compiled_arrays, "_PIECE", 64)
    cut = power_sums(*given, *further), np.zeros(5000)
    reweigh(factors, counts, sums, cut[1], False)
    for one, other in zip(cut[0], whole[0], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)
    assert cut[1].tobytes() == whole[1].tobytes()


# --- largest --------------------------------------------------------------------------------------


@st.composite
def vectors(draw: st.DrawFn) -> tuple[np.ndarray, int]:
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    vector = draw(hnp.arrays(dtype, st.integers(1, 80), elements=numbers))
    size = vector.size
    return vector, draw(st.sampled_from([0, 1, size // 2, size - 1, size]) | st.integers(0, size))


def plainly(vector: np.ndarray, k: int) -> np.ndarray:
    """By a stable sort of all of it."""
    return np.sort(np.argsort(-np.abs(vector), kind="stable")[:k])


@given(vectors())
@settings(max_examples=300)
def test_both_choose_the_largest_as_a_stable_sort_does(case: tuple[np.ndarray, int]) -> None:
    expected = plainly(*case)
    assert np.array_equal(largest_numpy(*case), expected)
    assert np.array_equal(compiled_arrays.largest(*case), expected)
    assert compiled_arrays.largest(*case).dtype == np.int64


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("k", [1, 70, 7_000, 69_999, 70_000])
@pytest.mark.parametrize("kind", ["normal", "ties", "sorted", "one after another"])
def test_largest_where_the_guess_comes_from_a_few(
    kind: str, k: int, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    vector = rng.normal(size=70_000).astype(dtype)
    if kind == "ties":
        vector = np.round(vector, 1)
    elif kind == "sorted":
        vector = np.sort(vector)
    elif kind == "one after another":
        vector[:: 70_000 // compiled_arrays._TRIED] *= 1e6  # all that is tried is far too large
    monkeypatch.setattr(compiled_arrays, "_PIECE", 9_999)
    assert np.array_equal(compiled_arrays.largest(vector, k), plainly(vector, k))


def test_largest_of_vectors_with_gaps_in_memory() -> None:
    vector = np.random.default_rng(1).normal(size=600)[::3]
    assert np.array_equal(compiled_arrays.largest(vector, 20), largest_numpy(vector, 20))


def test_a_loaded_compiler_serves_short_vectors_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_arrays, "largest", lambda vector, k: "compiled")
    largest = twin(largest_numpy, "largest", ARRAYS, values=lambda vector, k: vector.size)
    assert largest(np.array([1.0, 2.0]), 1) == "compiled"
