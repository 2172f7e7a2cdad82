"""The Pareto front is what the definition says, point by point."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sparsemean.lab.frontier import pareto_front

LEVELS = (0.0, 1.0, 2.0, 3.0, math.inf, math.nan)


def by_definition(costs: list[tuple[float, float]]) -> set[int]:
    """Compares every point with every other."""

    def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
        return a[0] <= b[0] and a[1] <= b[1] and (a[0] < b[0] or a[1] < b[1])

    finite = [i for i, cost in enumerate(costs) if all(map(math.isfinite, cost))]
    return {i for i in finite if not any(beats(costs[j], costs[i]) for j in finite)}


@pytest.mark.parametrize("size", [0, 1, 2, 5, 9])
def test_it_holds_exactly_the_points_that_no_other_beats(size):
    rng = np.random.default_rng(size)
    for _ in range(200):
        costs = [(LEVELS[a], LEVELS[b]) for a, b in rng.integers(len(LEVELS), size=(size, 2))]
        front = pareto_front(costs)
        assert set(front) == by_definition(costs)
        assert len(front) == len(set(front))
        assert [costs[i][0] for i in front] == sorted(costs[i][0] for i in front)
