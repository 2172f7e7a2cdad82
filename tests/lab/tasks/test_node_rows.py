"""NodeRows: one array from one array per node."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean import InvalidInput
from sparsemean.lab.tasks import NodeRows


def test_unequal_parts_lie_one_after_the_other() -> None:
    parts = [np.arange(6.0).reshape(3, 2), np.arange(2.0).reshape(1, 2), np.arange(4.0).reshape(2, 2)]
    data = NodeRows.of(parts)
    assert (data.nodes, data.dim) == (3, 2)
    for own, part in zip(data.slices, parts, strict=True):
        np.testing.assert_array_equal(data.rows[own], part)
    np.testing.assert_array_equal(data.targets([[0, 1, 2], [3], [4, 5]]), np.arange(6))


def test_one_array_is_not_copied_and_equal_parts_need_no_weights() -> None:
    block = np.ones((2, 3, 4), np.float32)
    data = NodeRows.of(block)
    assert np.shares_memory(data.rows, block)
    assert data.weights is None


@pytest.mark.parametrize(("given", "kept"), [("f4", "f4"), ("f8", "f8"), ("u1", "f4"), ("i8", "f4"), ("f2", "f4")])
def test_precision_is_that_of_the_data_and_float32_for_other_numbers(given: str, kept: str) -> None:
    assert NodeRows.of(np.ones((2, 3, 4), given)).rows.dtype == kept
    assert NodeRows.of([np.ones((3, 4), given), np.ones((1, 4), given)]).rows.dtype == kept


@pytest.mark.parametrize(
    "parts", [[], [[1.0, 2.0]], [[[1.0]], [[1.0, 2.0]]], [np.empty((0, 2)), np.ones((1, 2))], [[[np.nan]]]]
)
def test_what_is_not_one_array_of_rows_per_node_is_refused(parts: list[object]) -> None:
    with pytest.raises(InvalidInput):
        NodeRows.of(parts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "targets", [[[1, 2]], [[1], [2, 3]], [[1, 2], [[3]]], [[1.0, np.nan], [1.0]], [["a", "b"], ["c"]]]
)
def test_targets_are_one_finite_number_per_row(targets: list[object]) -> None:
    with pytest.raises(InvalidInput):
        NodeRows.of([np.ones((2, 1)), np.ones((1, 1))]).targets(targets)  # type: ignore[arg-type]
