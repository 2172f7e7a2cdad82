"""Codes back to values: the compiled loop leaves the bits of its NumPy twin."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import compiled
from sparsemean.kernels.restore import CHUNK, restore_numpy


@settings(deadline=None)
@given(
    count=st.integers(0, 600) | st.sampled_from([CHUNK - 1, CHUNK, CHUNK + 257]),
    levels=st.sampled_from([2, 16, 256]),
    seed=st.integers(0, 2**32),
)
def test_both_leave_the_same_bits(count: int, levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, steps = rng.integers(0, levels, count, np.uint8), rng.exponential(size=-(-count // 256))
    stream = rng.integers(0, 2**64, 2, np.uint64).tolist()
    one, other = np.zeros((2, count), np.float32)
    compiled.restore(stream, codes, steps, 256, levels, one)
    restore_numpy(stream, codes, steps, 256, levels, other)
    assert one.tobytes() == other.tobytes()
