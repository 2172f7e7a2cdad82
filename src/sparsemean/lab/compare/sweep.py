"""Errors of a few schemes at other budgets than the one that was compared: what more bytes, or fewer, would buy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sparsemean.errors import InvalidInput
from sparsemean.lab.compare.budget import Budget
from sparsemean.lab.compare.comparison import Comparison
from sparsemean.lab.compare.contest import entries_within
from sparsemean.lab.compare.given_vectors import GivenVectors
from sparsemean.lab.compare.playing import played
from sparsemean.lab.compare.result import Entry, Result
from sparsemean.schemes import AUTO, SIZELESS

TIMES = (0.5, 2.0, 4.0)
"""The other budgets over the one that was compared."""
SCHEMES, SEEDS = 3, 2
"""How many schemes there are beside rand-k and auto, and how often each is played."""


def errors_by_bytes(
    given: GivenVectors, found: Comparison, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[dict[str, Any]]:
    """Bytes and errors of the best choices, rand-k and auto at half, twice and four times the bytes, and as compared.

    Parameters
    ----------
    given
        The vectors.
    found
        What was compared; where its budget is a share of the coordinates, there is nothing to sweep.
    progress
        Called with (done, total), in games of one seed.
    """
    if found.budget.bytes is None or not found.choices:
        return []
    best = [result for result in found.choices if result.name not in (AUTO, *SIZELESS)][:SCHEMES]
    named = {"rand-k", AUTO}
    chosen = [result for result in found.results if result in best or result.scheme in named]
    entries: list[Entry] = []
    there = {(result.scheme, result.k) for result in chosen if result.k}
    for times in TIMES:
        budget = Budget(bytes=int(times * found.budget.bytes))
        try:
            fitting = entries_within(given, [(result.scheme, budget) for result in chosen])[0]
        except InvalidInput:  # the smallest may have no room for a value
            continue
        new = [entry for entry in fitting if (entry.name, entry.k(given.task.dim)) not in there]
        there |= {(entry.name, k) for entry in new if (k := entry.k(given.task.dim))}
        entries += new
    budgets = [found.budget] * len(chosen) + [entry.budget for entry in entries]
    results = [*chosen, *played(given, entries, min(SEEDS, found.seeds), progress=progress)]
    points = [_point(result, budget) for result, budget in zip(results, budgets, strict=True)]
    return sorted(points, key=lambda point: (point["scheme"], point["bytes_per_node"]))


def _point(result: Result, budget: Budget) -> dict[str, Any]:
    plain = result.to_json()
    errors = [f"{error}{doubt}" for error in ("nmse", "steady") for doubt in ("", "_se", "_plus_minus")]
    return {**{name: plain[name] for name in ("scheme", "bytes_per_node", *errors)}, "budget": budget.bytes}
