"""Both twins choose the same entries: those of largest magnitude, and of equal ones those that come first."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparsemean.kernels import compiled_arrays, largest
from sparsemean.kernels.largest import largest_numpy

TINY = float(np.finfo(np.float32).smallest_subnormal)
numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, TINY, -TINY, 3 * TINY]),
    st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=True),
)


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
def test_both_choose_what_a_stable_sort_does(case: tuple[np.ndarray, int]) -> None:
    expected = plainly(*case)
    assert np.array_equal(largest_numpy(*case), expected)
    assert np.array_equal(compiled_arrays.largest(*case), expected)
    assert compiled_arrays.largest(*case).dtype == np.int64


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("k", [1, 70, 7_000, 69_999, 70_000])
@pytest.mark.parametrize("kind", ["normal", "ties", "sorted", "one after another"])
def test_where_the_guess_comes_from_a_few(kind: str, k: int, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_vectors_with_gaps_in_memory() -> None:
    vector = np.random.default_rng(1).normal(size=600)[::3]
    assert np.array_equal(compiled_arrays.largest(vector, 20), largest_numpy(vector, 20))


def test_a_loaded_compiler_serves_short_vectors_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_arrays, "largest", lambda vector, k: "compiled")
    assert largest(np.array([1.0, 2.0]), 1) == "compiled"
