"""Numbers of which few differ: as the array they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean.levels import Levels


@given(st.integers(0, 40), st.integers(1, 7), st.booleans(), st.integers(0, 2**32))
def test_they_are_the_array_they_stand_for(size: int, group: int, grouped: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    levels = random.random(-(-size // group) if grouped else 9)
    which = random.integers(0, 9, size, np.uint8)
    made = Levels(levels, group if grouped else which, size)
    expected = np.array([levels[i // group] if grouped else levels[which[i]] for i in range(size)])
    assert np.array_equal(np.asarray(made), expected)
    assert np.array_equal(np.asarray(made * 3.0), 3.0 * expected)
    assert made.sum() == pytest.approx(expected.sum(), rel=1e-12)
    assert np.asarray(made, np.float32).dtype == np.float32
    assert made.nbytes <= levels.nbytes + size
