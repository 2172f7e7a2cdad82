"""Trees survive being written down, and damage is noticed wherever it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sparsemean.errors import DamagedJournal
from sparsemean.journal.written_tree import TYPES, read_tree, written
from sparsemean.server.fingerprint import fingerprint
from sparsemean.state_tree import Tree

ARRAYS = st.sampled_from(sorted(TYPES)).flatmap(
    lambda kind: npst.arrays(np.dtype(kind), npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | NAMES | ARRAYS
TREES = st.recursive(
    LEAVES,
    lambda trees: st.lists(trees, max_size=4) | st.dictionaries(NAMES.filter(lambda name: name != "array"), trees),
    max_leaves=12,
)
TREE: Tree = {
    "round": 3,
    "names": ["a", "é", ""],
    "sums": np.arange(6.0).reshape(2, 3),
    "none": None,
    "u": np.array([1, 2], np.uint8),
}


@given(TREES)
@settings(max_examples=300)
def test_a_tree_is_read_as_it_was_written(tree):
    found = read_tree(b"".join(written(tree)))
    assert fingerprint(found) == fingerprint(tree)


def test_arrays_that_are_read_can_be_written_to_and_need_not_be_contiguous():
    table = np.arange(12.0).reshape(3, 4)
    found = read_tree(b"".join(written([table[:, ::2], table.T])))
    assert isinstance(found, list)
    assert isinstance(found[0], np.ndarray)
    np.testing.assert_array_equal(found[0], table[:, ::2])
    np.testing.assert_array_equal(found[1], table.T)
    found[0][...] = 0


def test_every_truncation_and_every_single_bit_flip_is_damage():
    blob = b"".join(written(TREE))
    for length in range(len(blob)):
        with pytest.raises(DamagedJournal):
            read_tree(blob[:length])
    for bit in range(8 * len(blob)):
        damaged = bytearray(blob)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(DamagedJournal):
            read_tree(bytes(damaged))


@given(st.binary(max_size=200))
def test_any_other_bytes_are_damage(blob):
    with pytest.raises(DamagedJournal):
        read_tree(blob)


@pytest.mark.parametrize("tree", [np.zeros(2, np.float16), {"array": 1}, [np.array(["a"])]])
def test_what_cannot_be_read_again_is_not_written(tree):
    with pytest.raises(TypeError):
        written(tree)
