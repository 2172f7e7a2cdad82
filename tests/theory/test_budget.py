"""The share for a wanted error, there and back."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.errors import InvalidInput
from sparsemean.theory import share_for_error, spatial_mse

families = st.sampled_from(["one", "max", "avg", -1, -0.5, 2.0])


@settings(deadline=None)
@given(st.integers(1, 40), st.floats(1e-4, 0.99), st.floats(0.05, 1.0), families)
def test_round_trip(n, share, where, T):
    r2 = (where * n - 1.0) * 3.0 if n > 1 else 0.0
    error = spatial_mse(3.0, r2, n, share, T)
    found = share_for_error(error, 3.0, r2, n, T)
    assert spatial_mse(3.0, r2, n, found, T) <= error
    assert found <= share * (1 + 2e-14)
    # Where the error hardly falls, the share is only as certain as the error.
    assert spatial_mse(3.0, r2, n, found, T) == pytest.approx(error, rel=1e-10)


@settings(deadline=None)
@given(st.integers(2, 200), st.floats(0.0, 1.0), families)
def test_more_is_better(n, where, T):
    shares = np.geomspace(1e-4, 1.0, 60)
    errors = [spatial_mse(1.0, where * n - 1.0, n, share, T) for share in shares]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(errors))


def test_known_values():
    assert share_for_error(0.01, 1.0, 0.0, 10) == pytest.approx(0.5, rel=2e-14)
    assert share_for_error(1e-30, 1.0, 0.0, 1) == pytest.approx(1.0)
    assert share_for_error(1e9, 1.0, 0.0, 1) == pytest.approx(1 / (1e9 + 1), rel=2e-14)
    assert share_for_error(0.0, 1.0, 0.0, 10) == 1.0
    with pytest.raises(InvalidInput, match="negative"):
        share_for_error(-1.0, 1.0, 0.0, 10)


def test_where_any_share_will_do():
    assert share_for_error(1e-9, 0.0, 0.0, 10) == 2.0**-512
    assert share_for_error(1e-9, 1.0, -1.0, 10, -1) == 2.0**-512


def test_a_share_that_meets_the_error_even_if_the_error_is_not_monotone():
    table = np.ones(100)
    table[49] = 1e-9
    found = share_for_error(0.01, 1.0, 0.0, 100, table)
    assert spatial_mse(1.0, 0.0, 100, found, table) <= 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.nan, 1.0, 0.0, 3), "error"),
        ((0.1, -1.0, 0.0, 3), "r1"),
        ((0.1, 1.0, 2.5, 3), "clip"),
        ((0.1, 1.0, -1.5, 3), "clip"),
        ((0.1, 1.0, 0.0, 0), "n must be"),
        ((0.1, 1.0, 0.0, 3, "best"), "unknown T"),
        ((0.0, 1.0, 0.0, 3, "best"), "unknown T"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        share_for_error(*arguments)
