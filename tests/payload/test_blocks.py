"""Blocks: three views of the same ranges agree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.payload.blocks import Blocks

SIZES = st.lists(st.integers(1, 7), min_size=1, max_size=6).map(tuple)


@given(SIZES, st.randoms(use_true_random=False))
def test_at_spread_and_sums_are_the_slow_ones(sizes: tuple[int, ...], random) -> None:
    blocks = Blocks(sizes)
    of_coordinate = [block for block, size in enumerate(sizes) for _ in range(size)]
    numbers = np.array([random.uniform(-1, 1) for _ in sizes])
    assert blocks.dim == len(of_coordinate)
    np.testing.assert_array_equal(blocks.expand(numbers), numbers[of_coordinate])
    chosen = np.array(random.sample(range(blocks.dim), random.randint(0, blocks.dim)), np.int64)
    at = np.broadcast_to(blocks.at(numbers, chosen), chosen.shape)
    np.testing.assert_array_equal(at, numbers[np.array(of_coordinate, int)[chosen]])
    values = np.array([random.uniform(-1, 1) for _ in of_coordinate])
    slow = [sum(v for v, b in zip(values, of_coordinate, strict=True) if b == block) for block in range(len(sizes))]
    np.testing.assert_allclose(blocks.sums(values), slow, rtol=0, atol=1e-12)
    rows = blocks.sums_at(np.arange(blocks.dim), np.stack([values, -values]))
    np.testing.assert_allclose(rows, np.outer([1.0, -1.0], slow), rtol=0, atol=1e-12)


def test_one_block_costs_no_array() -> None:
    blocks = Blocks((1_000,))
    assert isinstance(blocks.at(np.array([2.0]), np.arange(10)), float)
    assert blocks.expand(np.array([2.0])).strides == (0,)


def test_equal_sizes_are_equal_blocks() -> None:
    assert Blocks((1, 2)) == Blocks((1, 2)) != Blocks((2, 1))
    with pytest.raises(AttributeError):
        Blocks((1, 2)).sizes = (3,)  # type: ignore[misc]
