"""Variances of estimates of the error: exact for every small population, by enumeration of every sample."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sparsemean.theory import CountLaw
from sparsemean.theory.forms import CoordinateError, Form, plug_in_form, within_form
from sparsemean.theory.gaps import actual_gap, blend_weight, expected_gap
from sparsemean.theory.polykays import normal_moments
from sparsemean.theory.within import decoding

from .populations import POPULATIONS, mean_and_variance, polykays, symmetric_mean


def samples(x: list[Fraction], m: int) -> list[tuple[float, float]]:
    """Mean and variance of every m of the values; (0, 0) for none."""
    if m == 0:
        return [(0.0, 0.0)]
    return [(float(a), float(k)) for a, k in map(mean_and_variance, combinations(x, m))]


@pytest.mark.parametrize("x", POPULATIONS, ids=len)
def test_mean_and_mean_square_of_a_gap_are_exact(x: list[Fraction]) -> None:
    """At one coordinate that m nodes send, of any form and target, expected and actual."""
    n, rng = len(x), np.random.default_rng(1)
    five, (mean, variance) = np.array([float(each) for each in polykays(x)]), map(float, mean_and_variance(x))
    k11 = float(symmetric_mean(x, (1, 1)))
    for m in range(n + 1):
        on_spread, on_means, excess = rng.normal(size=3)
        form = Form(np.array([on_spread]), np.array([[on_means if m else 0.0]]))
        error = CoordinateError(*rng.random((2, 1)))
        size, number = np.array([float(m)]), np.ones((1, 1))
        stated = np.array([on_spread * max(m - 1, 0) * k + on_means * a * a for a, k in samples(x, m)])
        targets = {
            "expected": error.on_spread[0] * variance + error.on_mean[0] * mean**2,  # type: ignore[index]
            "actual": np.array([((1.0 + excess) * a - mean) ** 2 for a, _ in samples(x, m)]),
        }
        gaps = {
            "expected": expected_gap(form, error, np.array([float(n)]), size, number),
            "actual": actual_gap(
                form, np.array([[excess if m else -1.0]]), np.array([float(n)]), size, number, np.zeros(1)
            ),
        }
        if m == 0:
            targets["actual"] = np.array([mean**2])
        for name, gap in gaps.items():
            off = stated - targets[name]
            assert float(gap.squares[:, 0] @ five) == pytest.approx(np.mean(off**2), rel=1e-11, abs=1e-11), (name, m)
            assert gap.at(variance, k11)[0, 0] == pytest.approx(np.mean(off), rel=1e-11, abs=1e-11), (name, m)


@pytest.mark.parametrize("T", ["one", "max", "avg"])
@pytest.mark.parametrize(("n", "share", "slots"), [(2, 0.5, None), (10, 0.3, None), (10, 0.3, 12), (100, 0.1, None)])
@pytest.mark.parametrize("r", [0.0, 0.5, 0.9, 1.0])
def test_the_blend_has_the_least_variance(T: str, n: int, share: float, slots: int | None, r: float) -> None:
    """Of 41 weights in [0, 1], for normal values with this correlation."""
    law = CountLaw(n, share, slots)
    error, m = decoding(T, law).error, np.arange(n + 1.0)
    plug_in, within = (form(error, n, m, law.count) for form in (plug_in_form, within_form))
    five, k2, k11 = normal_moments(r)

    def variance(weight: float) -> float:
        gap = expected_gap(plug_in.blended(within, weight), error, n, m, law.count)
        return float(gap.squares @ five - np.sum(law.count * gap.at(k2, k11) ** 2))

    best, size = variance(blend_weight(T, law, r)), variance(0.0) + variance(1.0)
    assert best <= min(map(variance, np.linspace(0.0, 1.0, 41))) + 1e-9 * size
    assert best >= -1e-9 * size
    assert blend_weight(T, law, None) == 1.0


def test_the_blend_leaves_a_correlation_out_of_range_where_it_makes_sense() -> None:
    law = CountLaw(10, 0.3)
    assert blend_weight("max", law, -0.2) == blend_weight("max", law, 0.0)
    assert blend_weight("max", law, 1.5) == blend_weight("max", law, 1.0)
    assert blend_weight(-1, CountLaw(5000, 0.1), 0.5) == 1.0  # whose error is infinite


def test_coordinates_of_a_count_vary_in_proportion_to_their_energy() -> None:
    """Values of variance 1 and mean 2 at a coordinate that two nodes sent, of mean 5 at one that three did."""
    n, excess, squares = np.array([6.0]), np.array([[-0.3], [0.4]]), np.array([4.0, 25.0])
    form = Form(np.array([0.1]), excess**2)
    arguments = form, excess, n, np.array([2.0, 3.0])
    apart = 0.0
    for i, square in enumerate(squares):
        number = (np.arange(2) == i).astype(float)[:, None]
        gap = actual_gap(*arguments, number, np.zeros(1))
        apart += float(gap.squares[:, 0] @ (0.0, 0.0, 1.0, square, square**2))
    energy = (squares / squares.mean())[:, None]
    together = actual_gap(*arguments, np.ones((2, 1)), np.zeros(1), energy).squares[:, 0]
    assert float(together @ (0.0, 0.0, 1.0, squares.mean(), np.mean(squares**2))) == pytest.approx(apart, rel=1e-12)
