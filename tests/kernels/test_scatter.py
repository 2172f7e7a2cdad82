"""The compiled scatter and its NumPy twin leave the same bits, and the twin serves where numba is not installed."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean.kernels import scatter
from sparsemean.kernels.scatter import Scatter, scatter_numpy


def scattered(add: Scatter, dim: int, seed: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    sums, counts = np.zeros(dim), np.zeros(dim, np.int32)
    for _ in range(3):
        chosen = rng.permutation(dim)[: rng.integers(0, dim + 1)]
        add(sums, counts, chosen, rng.normal(size=chosen.size) * 10.0 ** rng.integers(-30, 30))
    return [array.tobytes() for array in (sums, counts)]


@given(dim=st.integers(1, 60), seed=st.integers(0, 2**32))
def test_both_leave_the_same_bits(dim: int, seed: int) -> None:
    compiled = scatter()
    assert compiled is not scatter_numpy
    assert scattered(compiled, dim, seed) == scattered(scatter_numpy, dim, seed)


def test_without_numba_the_twin_serves_and_estimates_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, scheme = np.random.default_rng(1).normal(size=(5, 40)), sm.named("rand-k-spatial-avg", k=0.3)
    with_numba = sm.estimate_mean(vectors, scheme)
    monkeypatch.setitem(sys.modules, "numba", None)
    scatter.cache_clear()
    try:
        assert scatter() is scatter_numpy
        without = sm.estimate_mean(vectors, scheme)
    finally:
        scatter.cache_clear()
    assert without.mean.tobytes() == with_numba.mean.tobytes()
    assert (without.error, without.error_se) == (with_numba.error, with_numba.error_se)
