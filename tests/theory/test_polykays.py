"""Fourth moments: what samples say of them is exact for every finite population, by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sparsemean.theory.polykays import FEW, SampleMoments, fourth_moments, normal_moments, triple_kurtosis

from .populations import POPULATIONS, mean_and_variance, polykays


@pytest.mark.parametrize("x", POPULATIONS, ids=len)
def test_moments_of_samples_are_those_of_the_formula(x: list[Fraction]) -> None:
    """Every sample without replacement of every size, against the five of the population."""
    five = np.array([float(each) for each in polykays(x)])
    for m in range(1, len(x) + 1):
        of = [mean_and_variance(sample) for sample in combinations(x, m)]
        kk, xk, xx = (
            float(sum(value) / len(of))
            for value in (
                [k * k for _, k in of] if m > 1 else [Fraction(0)],
                [a * a * k for a, k in of] if m > 1 else [Fraction(0)],
                [a**4 for a, _ in of],
            )
        )
        found = SampleMoments.of(float(m))
        assert [float(row @ five) for row in found] == pytest.approx([kk, xk, xx], rel=1e-12, abs=1e-12)
        assert float(found.product(2.0, 3.0, -1.0, 5.0) @ five) == pytest.approx(
            -2.0 * kk + 7.0 * xk + 15.0 * xx, rel=1e-12, abs=1e-12
        )


def expectations(m: np.ndarray, five: np.ndarray) -> np.ndarray:
    """Expected products of a coordinate as in ``kernels.power_sums``, and of y⁴, from the definitions of k2, k3, k4."""
    K4, K31, _, K211, K1111 = five
    samples, nu = SampleMoments.of(m), m - 1.0
    kk, xk, xx = (np.tensordot(five, each, 1) for each in samples)
    k3x, k4 = K31 + K4 / m, np.full(m.shape, K4)
    c2, c3x = nu * nu * kk, np.where(m > 2, nu * (m - 2.0) / m * k3x, 0.0)
    c4 = np.where(m > 3, nu * ((m - 2.0) * (m - 3.0) * k4 + 3.0 * c2) / (m * (m + 1.0)), c2 / 2.0)
    raw = K4 + 4 * K31 + 3 * five[2] + 6 * K211 + K1111  # E y⁴
    return np.array([np.ones(m.shape), xx, c2, nu * xk, c3x, c4 - m * raw, c2 * c2, xx * xx, m * raw])


@pytest.mark.parametrize("five", [(0.5, 0.2, 1.0, 0.3, 2.0), (-1.2, 0.0, 1.0, 0.0, 0.0), (0, 0, 0, 0, 1)], ids=str)
def test_sums_that_are_as_expected_give_the_moments_back(five: tuple[float, ...]) -> None:
    """Of so many coordinates that nothing is shrunk, in two blocks of different size."""
    m, number = np.arange(1.0, 9.0), np.array([3.0, 5.0]) * 1e9
    *held, fourths = expectations(m, np.array(five))[:, :, None] * number
    found = fourth_moments(m, np.array(held), fourths.sum(axis=0), np.zeros(2))
    np.testing.assert_allclose(found.values, np.tile(np.array(five)[:, None], 2), rtol=1e-6, atol=1e-6)


def test_where_nobody_met_the_moments_are_those_of_normal_values() -> None:
    m, x4 = np.array([1.0]), 6.0
    held = np.array([10.0, x4, 0.0, 0.0, 0.0, -x4, 0.0, 4.0])[:, None, None]
    for r in (0.0, 0.4, 1.0):
        found = fourth_moments(m, held, np.array([x4]), np.array([r])).values[:, 0]
        np.testing.assert_allclose(found, normal_moments(r)[0] * x4 / 30.0, rtol=1e-12, atol=1e-15)


def test_few_coordinates_are_trusted_in_part() -> None:
    """Half of FEW: half of what they say and half of what normal values would."""
    five, m = np.array([0.0, 0.0, 1.0, 0.0, 3.0]), np.array([2.0])
    *held, fourths = expectations(m, five)[:, :, None] * (FEW / 2.0)
    found = fourth_moments(m, np.array(held), fourths.sum(axis=0), np.array([0.0]))
    x4 = expectations(m, five)[1, 0]
    assert found.values[2, 0] == pytest.approx((five[2] + x4 / (3.0 * 0.25)) / 2.0, rel=1e-12)


def test_of_values_that_are_equal_to_rounding_no_kurtosis_is_told() -> None:
    m = np.array([5.0])
    held = np.array([100.0, 100.0, 1e-14, 1e-7, 0.0, -500.0 + 1e-9, 1e-28, 100.0])[:, None, None]
    found = fourth_moments(m, held, np.array([500.0]), np.array([1.0]))
    assert found.values[0, 0] == 0.0


def test_kurtosis_of_triples_is_the_smaller_of_two() -> None:
    """Where K4 is 4 times K22: what neighbours show of K22 gives it back, unless triples say less."""
    m = np.array([2.0, 3.0])
    *held, _ = expectations(m, np.array([4.0, 0.0, 1.0, 0.0, 0.0]))[:, :, None] * 50.0
    table = np.array(held)
    assert triple_kurtosis(0.9, 1.0, m, table) == pytest.approx(4.0)
    assert triple_kurtosis(0.1, 1.0, m, table) == pytest.approx(6.0 * 0.1 / 0.9)
    assert triple_kurtosis(0.9, 1e9, m, table) == pytest.approx(-2.0, abs=0.1)  # the least there is
    assert triple_kurtosis(2.0, 0.0, m, table) == pytest.approx(1000.0)  # and the most
    assert triple_kurtosis(0.9, math.nan, m, table) == 0.0
