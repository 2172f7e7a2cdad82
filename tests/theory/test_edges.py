"""The corners: one node, everything sent, nothing to send, vectors that cancel."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparsemean import theory
from sparsemean.errors import InvalidInput


def steep(m, n):
    return np.exp(-np.minimum(m, 600.0))


MEMBERS = ["one", "max", "avg", -1, -0.999999, 0.5, 1e6, steep]


@pytest.mark.parametrize("T", MEMBERS, ids=lambda T: getattr(T, "__name__", str(T)))
@pytest.mark.parametrize("n", [1, 2, 3, 1000])
def test_everything_sent_is_exact(T, n):
    assert theory.error_coefficients(T, n, 1.0) == (0.0, 0.0)
    assert theory.constants(T, n, 1.0) == (0.0, 0.0)
    assert theory.feedback_factor(T, n, 1.0) == 0.0
    assert theory.gains(T, n, 1.0)[n] == 1.0
    assert theory.spatial_mse(1.0, n - 1.0, n, 1.0, T) == 0.0
    assert theory.rand_k_mse(1.0, n, 1.0) == theory.temporal_mse(1.0, n, 1.0) == theory.shared_sample_mse(1.0, 1.0) == 0


@pytest.mark.parametrize("T", MEMBERS, ids=lambda T: getattr(T, "__name__", str(T)))
@pytest.mark.parametrize("n", [1, 2, 3, 50, 1000])
@pytest.mark.parametrize("p", [1e-300, 1e-20, 1e-5, 0.5, 1 - 1e-16])
def test_no_nan_and_no_warning(T, n, p):
    gains = theory.gains(T, n, p)
    assert np.isfinite(gains).all()
    assert (gains >= 0.0).all()
    numbers = [*theory.error_coefficients(T, n, p), theory.feedback_factor(T, n, p), theory.beta_bar(T, n, p)]
    for ratio in (-1.0, 0.0, (n - 1) / 2, n - 1.0):
        numbers.append(theory.spatial_mse(2.0, 2.0 * ratio, n, p, T))
        assert numbers[-1] >= 0.0
    assert theory.spatial_mse(0.0, 0.0, n, p, T) == 0.0
    assert not any(math.isnan(number) for number in numbers)


def test_vectors_that_cancel():
    assert theory.spatial_mse(1.0, -1.0, 5, 0.1, -1) == 0.0
    assert theory.spatial_mse(1.0, -1.0 + 1e-16, 5000, 0.1, -1) == 0.0
    assert theory.spatial_mse(1.0, -0.5, 5000, 0.1, -1) == math.inf
    assert theory.error_coefficients(-1, 5000, 0.1) == (math.inf, math.inf)
    assert theory.gains(-1, 5000, 0.1).tolist() == [0.0] * 5001


def test_optimal_ratio():
    assert theory.optimal_ratio(1.0, 5.0, 3) == 2.0
    assert theory.optimal_ratio(1.0, -1.0000001, 3) == -1.0
    assert theory.optimal_ratio(5e-324, 1e300, 3) == 2.0
    assert theory.optimal_ratio(0.0, 0.0, 3) == theory.optimal_ratio(1.0, 0.0, 1) == 0.0
    assert theory.optimal_ratio(4.0, 3.0, 3) == 0.75


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, 50, float("nan"), 5e-324, "half", None])
def test_a_share_outside_0_1_is_refused(share):
    with pytest.raises(InvalidInput, match="share"):
        theory.error_coefficients("one", 3, share)


@pytest.mark.parametrize("n", [0, -1, 2.5, None])
def test_a_round_without_nodes_is_refused(n):
    with pytest.raises(InvalidInput, match="n must be"):
        theory.gains("one", n, 0.5)


@pytest.mark.parametrize("wrong", [-1.0, float("inf"), float("nan"), "x"])
def test_negative_energies_are_refused(wrong):
    with pytest.raises(InvalidInput):
        theory.rand_k_mse(wrong, 3, 0.5)
    with pytest.raises(InvalidInput):
        theory.spatial_mse(wrong, 0.0, 3, 0.5, "one")
    with pytest.raises(InvalidInput):
        theory.temporal_mse(wrong, 3, 0.5)
    with pytest.raises(InvalidInput):
        theory.shared_sample_mse(wrong, 0.5)


def test_every_exported_name_exists():
    assert theory.__all__ == sorted(theory.__all__)
    assert all(hasattr(theory, name) for name in theory.__all__)
