"""Both twins send the values at the coordinates of the sample, in their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import Sample, gather
from sparsemean.kernels.gather import Gather, gather_numpy
from sparsemean.sampling import Key, coordinates, tile_size

TWINS = pytest.mark.parametrize("twin", [gather_numpy, gather()], ids=["numpy", "numba"])


@TWINS
@given(dim=st.integers(1, 13_000), data=st.data())
@settings(max_examples=60)
def test_values_at_the_coordinates(twin: Gather, dim: int, data: st.DataObject) -> None:
    k = data.draw(st.integers(1, dim))
    have, want = data.draw(st.sampled_from([("f4", "f4"), ("f8", "f8"), ("f8", "f4")]))
    key = Key(3, data.draw(st.integers(0, 1000)), "n")
    vector = np.random.default_rng(dim).normal(size=dim).astype(have)
    vector.flags.writeable = False
    sent = np.full(k, np.nan, want)
    twin(Sample.keyed(key.digest(b"coordinates"), dim, k, tile_size(dim)), vector, sent)
    assert sent.tobytes() == vector[coordinates(key, dim, k)].astype(want).tobytes()


@TWINS
def test_vectors_with_gaps_in_memory(twin: Gather) -> None:
    key, dim, k = Key(3, 0, None), 5000, 70
    vector, sent = np.arange(3 * dim, dtype=np.float32)[::3], np.empty(k, np.float32)
    twin(Sample.keyed(key.digest(b"coordinates"), dim, k, tile_size(dim)), vector, sent)
    assert np.array_equal(sent, vector[coordinates(key, dim, k)])


def test_a_vector_of_another_length_is_refused_before_memory_is_read() -> None:
    sample = Sample.keyed(bytes(range(32)), 100, 10, 4096)
    with pytest.raises(ValueError, match="100 numbers"):
        gather()(sample, np.ones(99), np.empty(10))
