"""Coefficients kept in the unit interval and the unit square are the best there, whatever the features."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sparsemean._types import Doubles
from sparsemean.memory.fit import unit_pair, unit_ratio

ROWS, PROBLEMS = 12, 400
GRID = np.linspace(0.0, 1.0, 201)
Problem = tuple[Doubles, Doubles, Doubles]
"""Features f and r, and values x: one row a problem."""


def problems(kind: str) -> Problem:
    rng = np.random.default_rng(0)
    f, r, noise = rng.normal(size=(3, PROBLEMS, ROWS))
    if kind == "alike":
        r = f + 0.05 * r
    elif kind == "opposed":
        r = 0.05 * r - f
    elif kind == "unequal":
        r *= 1e-3
    elif kind == "proportional":
        r = rng.choice([-3.0, -0.5, 0.5, 3.0], size=(PROBLEMS, 1)) * f
    elif kind == "no first":
        f = np.zeros_like(f)
    elif kind == "no second":
        r = np.zeros_like(r)
    elif kind == "one row":
        f[:, 1:] = r[:, 1:] = 0.0
    a, g = rng.uniform(-1.5, 2.5, size=(2, PROBLEMS, 1))
    return f, r, a * f + g * r + noise


KINDS = ["independent", "alike", "opposed", "unequal", "proportional", "no first", "no second", "one row"]


def sums_of(f: Doubles, r: Doubles, x: Doubles) -> list[Doubles]:
    return [np.sum(one * other, axis=1) for one, other in ((f, f), (f, r), (r, r), (x, f), (x, r))]


def loss(problem: Problem, a: Doubles, g: Doubles) -> Doubles:
    f, r, x = problem
    return np.asarray(np.sum((x - a[:, None] * f - g[:, None] * r) ** 2, axis=1))


@pytest.mark.parametrize("kind", KINDS)
def test_no_point_of_a_fine_grid_is_better_than_the_pair(kind: str) -> None:
    """Fixing one coefficient at the edge and fitting the other is exact: losses agree to rounding, 1e-9 of Σx²."""
    problem = problems(kind)
    rng = np.random.default_rng(1)
    a, g = unit_pair(sums_of(*problem), (rng.uniform(size=PROBLEMS), rng.uniform(size=PROBLEMS)))
    assert np.all((a >= 0) & (a <= 1) & (g >= 0) & (g <= 1))
    found, slack = loss(problem, a, g), 1e-9 * np.sum(problem[2] ** 2, axis=1)
    for some in GRID:
        for other in GRID[::4]:
            assert np.all(found <= loss(problem, np.full(PROBLEMS, some), np.full(PROBLEMS, other)) + slack)


def test_the_problems_above_have_their_best_point_everywhere() -> None:
    a, g = unit_pair(sums_of(*problems("independent")), (np.zeros(PROBLEMS), np.zeros(PROBLEMS)))
    places = [tuple(np.where(pair <= 0, -1, np.where(pair >= 1, 1, 0))) for pair in np.stack([a, g], axis=1)]
    assert set(places) == set(itertools.product((-1, 0, 1), repeat=2)), "inside, on every edge, in every corner"


@pytest.mark.parametrize("kind", ["independent", "alike", "opposed"])
def test_inside_the_square_it_is_the_plain_least_squares_fit(kind: str) -> None:
    f, r, x = problems(kind)
    a, g = unit_pair(sums_of(f, r, x), (np.zeros(PROBLEMS), np.zeros(PROBLEMS)))
    inside = np.flatnonzero((a > 0) & (a < 1) & (g > 0) & (g < 1))
    assert inside.size > 3
    for i in inside:
        plain = np.linalg.lstsq(np.stack([f[i], r[i]], axis=1), x[i], rcond=None)[0]
        assert (a[i], g[i]) == pytest.approx(tuple(plain), rel=1e-8)


@pytest.mark.parametrize("exponent", [-600, -270, -100, 100, 270, 600])
def test_units_do_not_matter(exponent: int) -> None:
    """Sums of squares of 2^e are those of values from 1e-90 to 1e90."""
    sums, otherwise = sums_of(*problems("independent")), (np.full(PROBLEMS, 0.3), np.full(PROBLEMS, 0.6))
    other = unit_pair([2.0**exponent * each for each in sums], otherwise)
    assert np.array_equal(unit_pair(sums, otherwise), other)
    ratio = unit_ratio(2.0**exponent * sums[3], 2.0**exponent * sums[0], otherwise[0])
    assert np.array_equal(unit_ratio(sums[3], sums[0], otherwise[0]), ratio)


def test_without_features_the_coefficients_stay_as_they_were() -> None:
    nothing, before = np.zeros(2), np.array([0.3, 0.8])
    assert unit_ratio(nothing, nothing, before).tolist() == before.tolist()
    first, second = unit_pair([nothing] * 5, (before, 1.0 - before))
    assert (first.tolist(), second.tolist()) == (before.tolist(), (1.0 - before).tolist())


def test_what_overflowed_says_nothing() -> None:
    endless, before = np.array([np.inf]), np.array([0.3])
    assert unit_ratio(endless, endless, before).tolist() == unit_ratio(before, endless, before).tolist() == [0.3]
    assert unit_ratio(np.array([np.nan]), np.ones(1), before).tolist() == [0.3]


def test_blocks_are_fitted_each_for_itself() -> None:
    sums = sums_of(*problems("independent"))
    together = np.array(unit_pair(sums, (np.ones(PROBLEMS), np.zeros(PROBLEMS))))
    for i in range(0, PROBLEMS, 37):
        alone = unit_pair([each[i : i + 1] for each in sums], (np.ones(1), np.zeros(1)))
        assert np.array_equal(np.array(alone)[:, 0], together[:, i])


def test_what_was_there_before_is_not_written_to() -> None:
    before = (np.array([0.3]), np.array([0.6]))
    unit_pair([np.ones(1), np.zeros(1), np.ones(1), np.ones(1), np.ones(1)], before)
    unit_ratio(np.ones(1), np.ones(1), before[0])
    assert (before[0][0], before[1][0]) == (0.3, 0.6)
