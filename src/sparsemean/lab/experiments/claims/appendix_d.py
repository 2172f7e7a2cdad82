"""Claims of Appendix D: a memory of O(d)."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemean.lab.experiments.catalogue.schemes import AVG, BASELINES, SHARED, TEMPORAL
from sparsemean.lab.experiments.claims.check import Check
from sparsemean.lab.experiments.claims.claim import Claim
from sparsemean.lab.experiments.claims.evidence import Tables, against_itself, compared, early, late, stated, told


def _middle(values: Sequence[float]) -> float:
    """The mean of the second quarter of the rounds."""
    some = values[len(values) // 4 : len(values) // 2] or values
    return sum(some) / len(some)


def _not_to_zero(tables: Tables) -> list[Check]:
    """Late over middle error: near 1 on a floor, far below it while decaying."""
    checks = []
    for panel in tables.panels("power-iteration", split="iid"):
        for scheme, relation in ((SHARED, ">"), (TEMPORAL, "<")):
            what = f"{told(panel)}: error of the last quarter over that of the second, {scheme}"
            columns = (("mse", late), ("mse", _middle))
            checks += against_itself(
                tables, what, "power-iteration", *columns, relation, 0.5, {**panel, "scheme": scheme}
            )
    return checks


CLAIMS = (
    Claim(
        "shared-fast",
        "Appendix D",
        "The O(d) memory reaches a lower error in fewer rounds (here: 3 to 10) than all other schemes.",
        lambda tables: compared(
            *(tables, "power-iteration", "mse", [SHARED], (*BASELINES, AVG, TEMPORAL)),
            tables.panels("power-iteration", split="iid"),
            summary=early,
        ),
    ),
    Claim(
        "shared-floor",
        "Appendix D, caption",
        "Its error floor is lower than that of the schemes that do not use temporal information.",
        lambda tables: compared(
            *(tables, "power-iteration", "mse", [SHARED], (*BASELINES, AVG)),
            tables.panels("power-iteration", split="iid"),
        ),
    ),
    Claim(
        "shared-not-zero",
        "Appendix D",
        "Its error does not decay to zero, as that of Rand-k-Temporal with full storage does.",
        _not_to_zero,
    ),
    Claim(
        "shared-safe",
        "Appendix D",
        "The O(d) memory can be used wherever the O(nd) memory can (its feedback factor stays below 1).",
        lambda tables: [
            *stated(tables, "feedback", "<", 1.0),
            *compared(tables, "logistic", "mse", [SHARED], ["rand-k"], tables.panels("logistic")),
        ],
        "Implied, not stated: the appendix tests n = 100 and k ≥ 0.05d alone. It diverges where (d/k − 1)/n ≥ 1.",
    ),
)
