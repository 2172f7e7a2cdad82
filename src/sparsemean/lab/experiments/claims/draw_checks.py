"""Checks that claims about designed draws share: a draw with the hybrid memory against independent draws with it."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.schemes import HYBRID
from sparsemean.lab.experiments.claims.beyond import at
from sparsemean.lab.experiments.claims.check import Check, of_number, of_values
from sparsemean.lab.experiments.claims.claim import IMAGES
from sparsemean.lab.experiments.claims.evidence import (
    Summary,
    Tables,
    Where,
    compared,
    late,
    overall,
    told,
)

PLACE = "Designed draws"
LAST = 25  # round of K-means
SEEDS = 12
"""The fewest that claims about the weather are judged by, because a month is short."""


def in_round(tables: Tables, scheme: str, round: int, limits: dict[str, float]) -> list[Check]:
    """Error of power iteration in a round, by split."""
    checks = []
    for split, limit in limits.items():
        pick: Where = {"data": IMAGES, "split": split, "share": 0.1, "scheme": scheme}
        found = list(tables.per_seed("designed-power", "mse", at(round), **pick).values())
        if found:
            checks.append(of_values(f"{split}: error of {scheme} in round {round}", found, "<", limit))
    return checks


def over_hybrid(
    tables: Tables,
    scheme: str,
    figure: str,
    limit: float,
    summary: Summary,
    column: str = "mse",
    relation: str = "<",
    **where: str | float,
) -> list[Check]:
    """A scheme over the hybrid memory with independent draws, in every panel."""
    panels = tables.panels(figure, **where)
    return compared(tables, figure, column, [scheme], [HYBRID], panels, limit, relation, summary)


def kmeans(tables: Tables, scheme: str) -> list[Check]:
    """Nowhere clearly worse, and in most settings at most 0.8 times the error, in geometric means over seeds."""
    worst = over_hybrid(tables, scheme, "designed-kmeans", 1.05, at(LAST), data=IMAGES)
    better = sum(check.value <= 0.8 for check in worst)
    most = of_number(f"settings of {len(worst)} with at most 0.8 times the error", better, ">", len(worst) / 2)
    return [*worst, most] if worst else []


def weather(tables: Tables, scheme: str, limits: dict[float, float]) -> list[Check]:
    """Mean error over the month, at each share."""
    return [
        check
        for share, limit in limits.items()
        for check in over_hybrid(tables, scheme, "designed-weather", 1 / limit, overall, "nmse", share=share)
    ]


def accuracy(
    tables: Tables, scheme: str, figure: str, data: str, relation: str = ">", limit: float = -0.01
) -> list[Check]:
    """Test accuracy over the last rounds, less that of the hybrid memory with independent draws."""
    checks = []
    for panel in tables.panels(figure, data=data):
        own, other = (tables.per_seed(figure, "test_accuracy", late, scheme=each, **panel) for each in (scheme, HYBRID))
        gained = [own[seed] - other[seed] for seed in own if seed in other]
        if gained:
            checks.append(of_values(f"{figure} {told(panel)}: test accuracy gained", gained, relation, limit))
    return checks
