"""Bounds of other papers' quantisers, against their worst vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparsemean import theory
from sparsemean.errors import InvalidInput
from sparsemean.theory.quantisers import NATURAL_BOUND


def rounding(x: np.ndarray, step: float) -> float:
    """E‖x̂ − x‖² of stochastic rounding to multiples of a step."""
    f = x / step - np.floor(x / step)
    return float(np.sum(f * (1 - f))) * step**2


@pytest.mark.parametrize("s", [1, 3, 127])
@pytest.mark.parametrize("d", [1, 2, 64, 512])
def test_no_vector_has_more_than_qsgds_bound_and_some_come_near(s, d):
    rng, bound = np.random.default_rng(d), theory.qsgd_bound(s, d)
    vectors = [rng.normal(size=d), np.ones(d), rng.standard_cauchy(d), np.eye(d)[0]]
    vectors += [np.full(d, share) for share in np.linspace(0.5, 1, 20) / math.sqrt(d)]
    worst = max(rounding(x / np.linalg.norm(x), 1 / s) for x in vectors)
    assert worst <= bound
    if s == 1 and d >= 64:
        assert worst > 0.9 * bound - 1


@pytest.mark.parametrize("d", [1, 2, 9, 512])
def test_terngrads_bound_is_attained(d):
    x = np.full(d, 1 / (1 + math.sqrt(d)))
    x[0] = 1.0
    assert rounding(x, 1.0) / np.sum(x**2) == pytest.approx(theory.terngrad_bound(d))
    rng = np.random.default_rng(d)
    for _ in range(50):
        x = rng.standard_t(2, size=d)
        x /= np.abs(x).max()
        assert rounding(x, 1.0) <= theory.terngrad_bound(d) * np.sum(x**2) + 1e-12


def test_an_eighth_is_the_most_that_natural_compression_adds():
    x = np.linspace(1, 2, 10_001)
    relative = (x - 1) * (2 - x) / x**2
    assert relative.max() == pytest.approx(NATURAL_BOUND)
    assert x[relative.argmax()] == pytest.approx(4 / 3, abs=1e-3)


@pytest.mark.parametrize("d", [64, 4096])
@pytest.mark.parametrize("levels", [2, 4, 16])
def test_rotated_vectors_have_less_than_their_bound(levels, d):
    """What rotation makes of a vector is about Gaussian; the bound is some two to four times what these have."""
    rng, found = np.random.default_rng(1), []
    for _ in range(20):
        z = rng.normal(size=d)
        z /= np.linalg.norm(z)
        top = np.abs(z).max()
        found.append(rounding(z + top, 2 * top / (levels - 1)))
    assert theory.rotated_bound(levels, d) / 5 < np.mean(found) < theory.rotated_bound(levels, d)


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.qsgd_bound(0, 5),
        lambda: theory.qsgd_bound(1, 0),
        lambda: theory.terngrad_bound(0),
        lambda: theory.rotated_bound(1, 5),
        lambda: theory.rotated_bound(2, 0.5),  # type: ignore[arg-type]
    ],
)
def test_there_is_at_least_one_of_everything(call):
    with pytest.raises(InvalidInput):
        call()
