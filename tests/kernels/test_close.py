"""Closing a round: compiled loops against their NumPy twins, many pieces against one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.kernels import add_scaled, compiled_arrays, power_sums, reweigh
from sparsemean.kernels.add_scaled import add_scaled_numpy
from sparsemean.kernels.power_sums import power_sums_numpy
from sparsemean.kernels.reweigh import reweigh_numpy


def some(dim: int, size: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Sums, powers at the coordinates of some blocks, and where these blocks begin."""
    rng = np.random.default_rng(seed)
    keep = rng.random(-(-dim // size)) < 0.6
    begin = np.where(keep, (np.cumsum(keep) - 1) * size, -1)
    held = int(np.repeat(keep, size)[:dim].sum())
    return rng.normal(size=dim), *rng.normal(size=(2, held)), begin


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    size=st.sampled_from([1, 4, 16, 64]),
    seed=st.integers(0, 2**32),
)
def test_power_sums_are_those_of_the_twin(sizes: list[int], size: int, seed: int) -> None:
    given, starts = some(sum(sizes), size, seed), np.cumsum([0, *sizes[:-1]])
    np.testing.assert_allclose(
        power_sums()(*given, size, starts), power_sums_numpy(*given, size, starts), rtol=1e-10, atol=1e-12
    )


@given(dim=st.integers(1, 60), nodes=st.integers(1, 9), seed=st.integers(0, 2**32), anew=st.booleans())
def test_reweighing_leaves_the_same_bits(dim: int, nodes: int, seed: int, anew: bool) -> None:
    rng = np.random.default_rng(seed)
    factors, counts, sums = rng.normal(size=nodes + 1), rng.integers(0, nodes + 1, dim, np.int32), rng.normal(size=dim)
    one, other = rng.normal(size=(1, dim)).repeat(2, axis=0)
    sums[rng.random(dim) < 0.1] = -0.0
    reweigh()(factors, counts, sums, one, anew)
    reweigh_numpy(factors, counts, sums, other, anew)
    assert one.tobytes() == other.tobytes()
    for twin in (reweigh(), reweigh_numpy):  # in place
        inside = sums.copy()
        twin(factors, counts, inside, inside, True)
        np.testing.assert_array_equal(inside, factors[counts] * sums)


@given(dim=st.integers(1, 60), seed=st.integers(0, 2**32), anew=st.booleans())
def test_adding_a_multiple_leaves_the_same_bits(dim: int, seed: int, anew: bool) -> None:
    rng = np.random.default_rng(seed)
    sums, factor, (one, other) = rng.normal(size=dim), rng.normal(), rng.normal(size=(1, dim)).repeat(2, axis=0)
    add_scaled()(sums, factor, one, anew)
    add_scaled_numpy(sums, factor, other, anew)
    assert one.tobytes() == other.tobytes()


def test_pieces_and_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    given = sums, *_ = some(5000, 16, seed=1)
    starts, factors, counts = np.array([0, 10, 3000]), rng.normal(size=4), rng.integers(0, 4, 5000, np.int32)
    whole = power_sums()(*given, 16, starts), np.zeros(5000)
    reweigh()(factors, counts, sums, whole[1], False)
    monkeypatch.setattr(compiled_arrays, "_PIECE", 64)
    cut = power_sums()(*given, 16, starts), np.zeros(5000)
    reweigh()(factors, counts, sums, cut[1], False)
    np.testing.assert_allclose(cut[0], whole[0], rtol=1e-11)
    assert cut[1].tobytes() == whole[1].tobytes()
