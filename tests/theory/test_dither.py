"""Shared dither: covariance, variance of the mean and bound, against enumeration in exact fractions."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean import theory

FINE = 12  # values are multiples of 1/12 of a step, and so are the ranks of 2, 3, 4 and 6 senders


def noise(x: Fraction, u: Fraction) -> Fraction:
    """x̂ − x for the step 1 and the dither D = u − ½: ⌊x + u⌋ + ½ − u − x."""
    return (x + u) // 1 + Fraction(1, 2) - u - x


def enumerated(values: list[int], senders: int) -> Fraction:
    """Variance of the mean of values/FINE over all ranks and the FINE dithers (i + ½)/FINE, which miss 1/(12·FINE²)."""
    squares, count = Fraction(0), 0
    for ranks in permutations(range(senders), len(values)):
        for i in range(FINE):
            u = Fraction(2 * i + 1, 2 * FINE)
            total = sum(
                noise(Fraction(x, FINE), (u + Fraction(r, senders)) % 1) for x, r in zip(values, ranks, strict=True)
            )
            squares, count = squares + total * total, count + 1
    return squares / count / len(values) ** 2 + Fraction(1, 12 * FINE**2)


@pytest.mark.parametrize("x", range(-3, 14, 3))
@pytest.mark.parametrize(("rank", "senders"), [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)])
def test_for_itself_the_noise_of_a_sender_takes_each_value_of_a_uniform_one_once(x, rank, senders):
    found = [noise(Fraction(x, 7), (Fraction(2 * i + 1, 2 * FINE) + Fraction(rank, senders)) % 1) for i in range(FINE)]
    spaced = sorted(found)
    assert all(b - a == Fraction(1, FINE) for a, b in pairwise(spaced))
    assert -Fraction(1, 2) <= spaced[0] < spaced[-1] <= Fraction(1, 2)


@pytest.mark.parametrize(
    ("values", "senders"),
    [
        *[([0, 0], 2), ([0, 6], 2), ([0, 1], 2), ([5, 5, 5], 3), ([0, 6, 3], 3), ([0, 4, 8], 3), ([0, 5], 3), ([7], 3)],
        *[([1, 1, 1, 1], 4), ([0, 6, 0, 6], 4), ([0, 3, 29, -14], 4), ([2, 2], 4), ([0, 6, 1], 4), ([9], 4)],
    ],
)
def test_the_variance_of_the_mean_is_that_of_all_ranks_and_dithers(values, senders):
    exact = float(enumerated(values, senders))
    assert theory.shared_dither_variance(np.array(values) / FINE, senders=senders) == pytest.approx(exact, abs=1e-14)
    scaled = theory.shared_dither_variance(np.array(values) / FINE * 0.3, 0.3, senders)
    assert scaled == pytest.approx(0.09 * exact, abs=1e-14)
    assert exact <= theory.shared_dither_bound(senders) / 12 / len(values) + 1e-14


@given(s=st.integers(2, 200), data=st.data())
def test_equal_values_gain_s_over_s_minus_m_plus_1(s, data):
    m = data.draw(st.integers(1, s))
    found = theory.shared_dither_variance([0.7] * m, senders=s)
    assert found == pytest.approx((s - m + 1) / (12 * m * s), rel=1e-9)


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=12), st.sampled_from([1, 2, 3, 4]))
def test_never_worse_than_the_bound(values, finest):
    x = np.round(np.array(values) * finest) / finest if finest > 1 else np.array(values)  # many a half step apart
    independent = 1 / 12 / x.size
    assert theory.shared_dither_variance(x) <= theory.shared_dither_bound(x.size) * independent * (1 + 1e-12)
    assert theory.shared_dither_variance(x) >= -1e-15


def test_two_values_half_a_step_apart_have_the_same_noise():
    assert theory.shared_dither_variance([0.0, 0.5]) == pytest.approx(1 / 12)
    with pytest.raises(ValueError, match="senders"):
        theory.shared_dither_bound(1)


def test_what_comes_does_not_tell_how_much_noise_is_left() -> None:
    """Two nodes that send two coordinates: one swaps its values, and all that a coordinate shows stays as it was.

    Outcomes are (u, what either node's value was rounded to, who has which rank), over a grid of u. So no function of
    them has the variance that is left in the mean as its expectation.
    """

    def shown(coordinates: list[tuple[float, float]]) -> Counter[tuple[int, ...]]:
        found: Counter[tuple[int, ...]] = Counter()
        for x, rank, step in product(coordinates, (0, 1), range(1000)):
            dither = [((step + 0.5) / 1000 + each / 2) % 1.0 - 0.5 for each in (rank, 1 - rank)]
            found[(rank, step, *(round(value + d) for value, d in zip(x, dither, strict=True)))] += 1
        return found

    one, other = [(0.1, 0.25), (0.2, 0.35)], [(0.1, 0.35), (0.2, 0.25)]
    assert shown(one) == shown(other)
    left, instead = (sum(map(theory.shared_dither_variance, each)) for each in (one, other))
    assert instead < 0.95 * left or left < 0.95 * instead
