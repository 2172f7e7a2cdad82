"""What k means: a count, a share, or half of either."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparsemean as sm
from sparsemean.encoders.size import Half, checked, count

DIMS = st.integers(1, 1 << 40)


@given(st.floats(0, 1, exclude_min=True, exclude_max=True), DIMS)
def test_a_share_is_rounded_half_up_and_never_nothing(share: float, dim: int) -> None:
    k = count(share, dim)
    assert k == max(1, math.floor(share * dim + 0.5))
    assert 1 <= k <= dim


@given(DIMS, st.data())
def test_both_halves_are_the_whole(dim: int, data) -> None:
    size = data.draw(st.integers(1, dim) | st.floats(0, 1, exclude_min=True, exclude_max=True))
    smaller, larger = count(Half(size), dim), count(Half(size, larger=True), dim)
    assert smaller + larger == count(size, dim)
    assert 0 <= larger - smaller <= 1


@pytest.mark.parametrize(("size", "dim", "k"), [(0.5, 3, 2), (0.5, 1, 1), (0.1, 4, 1), (0.999, 10, 10), (7, 7, 7)])
def test_examples(size: int | float, dim: int, k: int) -> None:
    assert count(size, dim) == k


@pytest.mark.parametrize("size", [0, -1, 0.0, 1.0, 1.5, -0.1, math.nan, math.inf, True, "3", None])
def test_what_can_be_no_size_is_refused_at_once(size) -> None:
    with pytest.raises(sm.InvalidInput):
        checked(size)
    with pytest.raises(sm.InvalidInput):
        Half(size)
    for encoder in (sm.RandK, sm.TopK, sm.RTopK, sm.Wangni):
        with pytest.raises(sm.InvalidInput):
            encoder(size)


def test_more_than_the_dimension_is_refused_with_the_dimension_in_the_message() -> None:
    with pytest.raises(sm.InvalidInput, match="dimension 5"):
        sm.Run(sm.named("rand-k", k=6), dim=5)


def test_the_smaller_half_of_one_is_nothing_and_may_be_refused() -> None:
    assert count(Half(1), 10) == 0
    assert count(Half(1, larger=True), 10, least=1) == 1
    with pytest.raises(sm.InvalidInput, match="larger k"):
        count(Half(1), 10, least=1)


def test_whole_numbers_of_numpy_are_plain_ones():
    five: Any = np.int64(5)
    assert sm.RandK(five) == sm.RandK(5)
    assert sm.Run(sm.named("induced", k=five), 9).digest == sm.Run(sm.named("induced", k=5), 9).digest
