"""R1 and R2 of given vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sparsemean.errors import InvalidInput
from sparsemean.theory import correlation, optimal_ratio, ratio_range


def test_definition():
    x = np.random.default_rng(0).standard_normal((7, 30))
    pairs = sum(2.0 * x[i] @ x[j] for i in range(7) for j in range(i))
    assert correlation(x) == pytest.approx((np.sum(x * x), pairs), rel=1e-12)


def test_the_ends_of_the_range():
    assert correlation(np.ones((4, 3))) == (12.0, 36.0)
    assert correlation([[1.0, 2.0], [-1.0, -2.0]]) == (10.0, -10.0)
    assert correlation([[3.0, 4.0]]) == (25.0, 0.0)
    assert correlation(np.zeros((3, 2))) == (0.0, 0.0)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int64, np.bool_, np.longdouble])
def test_sums_are_float64_whatever_comes(dtype):
    x = np.ones((100, 1000), dtype=dtype)
    assert correlation(x) == (1e5, 1e7 - 1e5)


@settings(deadline=None)
@given(hnp.arrays(np.float64, (4, 5), elements=st.floats(-1e3, 1e3)))
def test_the_ratio_lies_in_its_range(x):
    r1, r2 = correlation(x)
    low, high = ratio_range(4)
    assert low * r1 * (1 + 1e-12) - 1e-300 <= r2 <= high * r1 * (1 + 1e-12) + 1e-300
    assert low <= optimal_ratio(r1, r2, 4) <= high


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones(3), "shape"),
        (np.ones((0, 3)), "shape"),
        (np.ones((2, 2, 2)), "shape"),
        ([[1.0, np.nan]], "NaN"),
        ([[1.0, np.inf]], "NaN or infinity"),
        ([["a", "b"]], "real numbers"),
        (np.ones((2, 2), dtype=complex), "real numbers"),
        (np.full((2, 2), 1e200), "scale them down"),
    ],
)
def test_refusals(wrong, message):
    with pytest.raises(InvalidInput, match=message):
        correlation(wrong)
