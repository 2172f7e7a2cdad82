"""Loops over single coordinates: the compiled ones leave the same bits as their NumPy twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import compiled_arrays as compiled
from sparsemean.kernels.at import Known, carry_at_numpy, expected_at_numpy, fit_at_numpy

sizes = st.lists(st.integers(1, 30), min_size=1, max_size=5)


def some(sizes: list[int], seed: int, dtype: str) -> tuple[np.random.Generator, Known, Any]:
    """What is known of a node, and distinct coordinates in no order; some values nearly equal to the common ones."""
    rng, dim = np.random.default_rng(seed), sum(sizes)
    heard = rng.integers(0, 2, dim).astype(np.uint8)
    common = rng.normal(size=dim) * 10.0 ** rng.integers(-20, 20)
    last = heard * np.where(rng.random(dim) < 0.3, common * (1 + 1e-10), rng.normal(size=dim))
    starts = np.cumsum([0, *sizes[:-1]])
    return rng, Known(last.astype(dtype), heard, common, starts), rng.permutation(dim)[: rng.integers(0, dim + 1)]


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@given(sizes=sizes, seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_what_is_expected(dtype, sizes, seed):
    rng, known, at = some(sizes, seed, dtype)
    coefficients = rng.random((3, len(sizes)))
    one, other = (each(known, coefficients, at) for each in (compiled.expected_at, expected_at_numpy))
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@given(sizes=sizes, seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_what_a_fit_sums(dtype, sizes, seed):
    rng, known, at = some(sizes, seed, dtype)
    weight, values = rng.random(len(sizes)), rng.normal(size=at.size).astype(dtype)
    one, other = (each(known, weight, at, values, 1e-9) for each in (compiled.fit_at, fit_at_numpy))
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
@given(sizes=sizes, seed=st.integers(0, 2**32))
@settings(max_examples=40)
def test_what_changes_in_sums(dtype, sizes, seed):
    rng, known, at = some(sizes, seed, "f8")
    weight, before = rng.random(len(sizes)), known.last[at] * 10.0 ** rng.integers(0, 12, at.size)
    after = rng.integers(0, 2, at.size).astype(dtype)
    found = []
    for each in (compiled.carry_at, carry_at_numpy):
        sums = known.last.astype(np.float64)
        sums[at] += before
        lost = each(sums, weight, known.starts, at, before, after)
        found.append((sums.tobytes(), lost.tolist()))
    assert found[0] == found[1]
