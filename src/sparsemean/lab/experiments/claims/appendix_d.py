"""Claims of Appendix D: a memory of O(d)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sparsemean.lab.experiments.catalogue.schemes import AVG, BASELINES, SHARED, TEMPORAL
from sparsemean.lab.experiments.claims.check import Check, of_factors
from sparsemean.lab.experiments.claims.claim import IMAGES, Claim
from sparsemean.lab.experiments.claims.evidence import (
    Tables,
    Where,
    against_itself,
    compared,
    early,
    factors,
    late,
    stated,
    told,
)


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


def _head_start(tables: Tables) -> list[Check]:
    """The lead of the O(d) memory over the best other scheme in early rounds: at a smaller k over that at a larger."""
    gains: dict[float, dict[str, float]] = {}
    for share in sorted({float(panel["share"]) for panel in tables.panels("power-iteration", split="iid")}):
        pick: Where = {"split": "iid", "share": share}
        own = tables.per_seed("power-iteration", "mse", early, scheme=SHARED, **pick)
        others = [
            tables.per_seed("power-iteration", "mse", early, scheme=name, **pick)
            for name in (*BASELINES, AVG, TEMPORAL)
        ]
        gains[share] = {
            seed: min(other[seed] for other in others) / own[seed]
            for seed in own
            if own[seed] > 0 and all(seed in other for other in others)
        }
    checks = []
    for small, large in pairwise(gains):
        if found := factors(gains[small], gains[large]):
            what = f"rounds 3 to 10: lead over the best other scheme at k/d = {small:g}, over that at {large:g},"
            checks.append(of_factors(what, found, ">", 1.0))
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
        needs=(IMAGES,),
    ),
    Claim(
        "shared-smaller-k",
        "Appendix D",
        "The lead of the O(d) memory is larger for smaller values of k.",
        _head_start,
        needs=(IMAGES,),
    ),
    Claim(
        "shared-floor",
        "Appendix D, caption",
        "The error floor of the O(d) memory is lower than that of the schemes that do not use temporal information.",
        lambda tables: compared(
            *(tables, "power-iteration", "mse", [SHARED], (*BASELINES, AVG)),
            tables.panels("power-iteration", split="iid"),
        ),
        needs=(IMAGES,),
    ),
    Claim(
        "shared-not-zero",
        "Appendix D",
        "The error of the O(d) memory does not decay to zero, as that of Rand-k-Temporal with full storage does.",
        _not_to_zero,
        needs=(IMAGES,),
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
