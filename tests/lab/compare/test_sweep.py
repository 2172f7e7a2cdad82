"""Other budgets: each has the k that it allows, once."""

from __future__ import annotations

import numpy as np

from sparsemean.lab.compare import Budget, Contest, GivenVectors
from sparsemean.lab.compare.sweep import errors_by_bytes


def test_a_sweep_has_other_budgets_but_no_point_twice():
    given = GivenVectors(np.random.default_rng(0).normal(size=(2, 4, 30)))
    contest = Contest(given, Budget(bytes=100), ["rand-k", "rand-k int8", "auto"], seeds=2)
    found = contest.comparison(contest.results())
    points = errors_by_bytes(given, found)
    at = {name: [p["budget"] for p in points if p["scheme"] == name] for name in ("rand-k", "rand-k int8", "auto")}
    assert at == {"rand-k": [100, 200], "rand-k int8": [100], "auto": [100, 200, 400]}  # int8 sends all 30 in 100
    assert all(point["bytes_per_node"] <= point["budget"] for point in points)
    assert errors_by_bytes(given, Contest(given, Budget(share=0.5), ["rand-k"], 1).comparison([])) == []
