"""Values to codes: the compiled loop leaves the codes of its NumPy twin, and ``restore`` brings the values back."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import compiled
from sparsemean.kernels.quantise import quantise_numpy
from sparsemean.kernels.restore import CHUNK, restore_numpy


@settings(deadline=None)
@given(
    count=st.integers(0, 600) | st.sampled_from([CHUNK - 1, CHUNK, CHUNK + 257]),
    levels=st.sampled_from([2, 16, 256, 1 << 16]),
    double=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_both_leave_the_same_codes_and_values_come_back_within_half_a_step(
    count: int, levels: int, double: bool, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    drawn = rng.standard_normal(count)
    values = drawn if double else drawn.astype(np.float32)
    values[count // 3 : count // 3 + 300] = 0.0
    largest = np.maximum.reduceat(np.abs(values), np.arange(0, count, 256)) if count else np.empty(0)
    steps, stream = 2.0 * largest.astype(np.float64) / (levels - 1), rng.integers(0, 2**64, 2, np.uint64).tolist()
    one, other = np.ones((2, count), np.uint8 if levels <= 256 else np.uint16)
    compiled.quantise(stream, values, steps, 256, levels, one)
    quantise_numpy(stream, values, steps, 256, levels, other)
    assert np.array_equal(one, other)
    back, each = np.empty(count), np.repeat(steps, 256)[:count]
    restore_numpy(stream, one, steps, 256, levels, back)
    assert np.all(np.abs(back - values) <= 0.5 * each * (1 + 1e-9))
    assert not np.any(one[each == 0.0])
