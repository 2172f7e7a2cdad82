"""Vectors as people have them: tables of pandas, tensors of torch, and lists of either."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

import sparsemean as sm
from sparsemean.lab.compare import GivenVectors

VECTORS = np.array([[1.0, 2.5], [3.0, -4.0], [0.5, 8.0]])
TABLE = pd.DataFrame(VECTORS, columns=["x", "y"], index=pd.date_range("2024-01-01", periods=3))


@pytest.mark.parametrize(
    "vectors",
    [
        TABLE,
        TABLE.astype({"x": "Float64"}),
        [TABLE.iloc[i] for i in range(3)],
        torch.tensor(VECTORS, requires_grad=True),
        torch.tensor(VECTORS, dtype=torch.bfloat16),
        [torch.tensor(vector, requires_grad=True) for vector in VECTORS],
    ],
    ids=["table", "nullable", "series", "gradients", "bfloat16", "tensors"],
)
def test_tables_tensors_and_lists_of_them_are_vectors(vectors) -> None:
    assert sm.estimate_mean(vectors, sm.named("identity")).mean.tolist() == VECTORS.mean(axis=0).tolist()
    run = sm.Run(sm.named("identity"), dim=2)
    assert sm.simulate(run, [vectors, vectors])[1].mean.tolist() == VECTORS.mean(axis=0).tolist()
    assert GivenVectors(vectors).rounds.tolist() == [VECTORS.tolist()]


@pytest.mark.parametrize(
    ("vectors", "why"),
    [
        (TABLE.assign(station="Brest"), r"'station'; leave them out, as with table\.drop\(columns="),
        (TABLE.assign(time=TABLE.index), "not all numbers: 'time'"),
        (TABLE.astype(object), "not all numbers: 'x', 'y'"),
        (TABLE.assign(x=[1.0, None, 2.0]), "1 entries that are NaN"),
        (TABLE.assign(x=pd.array([1, None, 2], dtype="Int64")), "1 entries that are NaN"),
        ([[1.0, 2.0], [3.0]], "arrays of real numbers, all of one shape"),
        ([torch.ones(2), torch.ones(3)], "arrays of real numbers, all of one shape"),
        ({"a": [1.0, 2.0]}, "arrays of real numbers, all of one shape"),
        ([], r"shape \(n, d\) with n, d ≥ 1"),
    ],
)
def test_what_holds_no_vectors_is_refused_with_what_helps(vectors, why) -> None:
    with pytest.raises(sm.InvalidInput, match=why):
        sm.estimate_mean(vectors, sm.named("identity"))
