"""The Pareto front: the points that no other beats in both of two costs."""

from __future__ import annotations

import math
from collections.abc import Sequence


def pareto_front(costs: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the points on the front, by ascending first cost.

    A point is on the front if no other has both costs at most as large, and one of them smaller. Equal points are on
    it together; those with a cost that is not finite never are.

    >>> pareto_front([(1, 9), (2, 9), (2, 5), (3, 6), (2, 5), (4, math.nan)])
    [0, 2, 4]
    """
    known = [i for i, cost in enumerate(costs) if all(map(math.isfinite, cost))]
    front: list[int] = []
    for i in sorted(known, key=lambda i: (*costs[i], i)):
        if not front or costs[i][1] < costs[front[-1]][1] or costs[i] == costs[front[-1]]:
            front.append(i)
    return front
