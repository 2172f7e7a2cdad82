"""What T may be, and what it may not."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean.errors import InvalidInput
from sparsemean.theory import fill_gains, gains, weights


def test_the_families():
    assert weights("one", 4).tolist() == [1.0] * 4
    assert weights("max", 4).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert weights("avg", 5).tolist() == [1.0, 1.625, 2.25, 2.875, 3.5]
    assert weights(3, 4).tolist() == weights(np.float64(3), 4).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert weights(lambda m, n: m / n, 4).tolist() == [0.25, 0.5, 0.75, 1.0]
    assert weights(lambda m, n: 2.0, 3).tolist() == [2.0] * 3
    assert weights((5.0, 6.0, 7.0), 2).tolist() == [5.0, 6.0]


@pytest.mark.parametrize("T", ["one", "max", "avg", -1, 0.5, 7])
def test_one_node_needs_no_weighting(T):
    assert weights(T, 1).tolist() == [1.0]
    assert gains(T, 1, 0.3).tolist() == [0.0, 1.0]


def test_a_table_is_copied():
    table = np.array([1.0, 2.0])
    weights(table, 2)[0] = 9.0
    assert table[0] == 1.0


@pytest.mark.parametrize(
    ("T", "message"),
    [
        ("opt", "one, max, avg"),
        (-1.5, "at least -1"),
        (float("nan"), "finite"),
        ([1.0, 2.0], "one entry for each count"),
        (np.ones((3, 3)), "one entry for each count"),
        ([1.0, 0.0, 2.0], r"T\(2\)"),
        ([1.0, 2.0, np.inf], r"T\(3\)"),
        (lambda m, n: 2.0 - m, r"T\(2\)"),
        ([1e-200, 1.0, 1e200], "1e300"),
    ],
)
def test_refusals_name_the_remedy(T, message):
    with pytest.raises(InvalidInput, match=message):
        weights(T, 3)


def test_fill_gains():
    assert fill_gains("avg", 5).tolist() == pytest.approx([0.0, 3.5, 3.5 / 1.625, 3.5 / 2.25, 3.5 / 2.875, 1.0])
    assert fill_gains("one", 3).tolist() == [0.0, 1.0, 1.0, 1.0]
    with pytest.raises(InvalidInput, match="above -1"):
        fill_gains(-1, 3)
