"""Numbers that are made when they are asked for: as the array they stand for."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.payload.noise import _CHUNK, Levels, Octaves


def check(made: Levels | Octaves, expected: npt.NDArray[np.float64]) -> None:
    assert np.array_equal(np.asarray(made), expected)
    assert np.array_equal(np.asarray(made * 4.0), 4.0 * expected)
    assert made.sum() == pytest.approx(expected.sum(), rel=1e-12)
    assert np.asarray(made, np.float32).dtype == np.float32
    some = np.arange(0, expected.size, 3)
    assert np.array_equal(made.at(some), expected[some])


@given(st.integers(0, 40), st.integers(1, 7), st.integers(0, 2**32))
def test_levels_stand_in_a_row(size: int, each: int, seed: int) -> None:
    levels = np.random.default_rng(seed).random(-(-size // each))
    made = Levels(levels, each, size)
    check(made, np.array([levels[i // each] for i in range(size)]))
    assert made.arrays[0] is levels


@given(st.lists(st.floats(-(2.0**60), 2.0**60, width=32)), st.integers(-126, 3))
def test_octaves_are_those_of_the_values(values: list[float], lowest: int) -> None:
    roots = [2.0 ** max(math.frexp(x)[1] - 1 if x else lowest, lowest) for x in values]
    array = np.array(values, np.float32)
    made = Octaves(array, 2.0**lowest, 1.5)
    check(made, 1.5 * np.array(roots, np.float64) ** 2)
    assert made.arrays[0] is array


def test_octaves_of_many_values_are_added_piece_by_piece() -> None:
    values = np.random.default_rng(1).normal(size=3 * _CHUNK + 5).astype(np.float32)
    made = Octaves(values, 2.0**-14, 0.25)
    check(made, np.asarray(made))
