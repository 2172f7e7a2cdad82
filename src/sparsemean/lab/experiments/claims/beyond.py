"""Our own claims: what the estimators past the paper's reach on the data they were made for."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sparsemean.lab.experiments.catalogue.beyond import PAPERS_BEST
from sparsemean.lab.experiments.catalogue.schemes import ADAPTIVE, AVG, BEYOND, HYBRID, SHARED, STABLE, TEMPORAL
from sparsemean.lab.experiments.claims.check import Check, of_number, of_values
from sparsemean.lab.experiments.claims.claim import COLOUR, IMAGES, OWN, Claim
from sparsemean.lab.experiments.claims.evidence import Summary, Tables, Where, compared, late, told

PLACE = "Past the paper"


def at(round: int) -> Summary:
    """The value of one round, counted from 1."""

    def pick(values: Sequence[float]) -> float:
        return values[round - 1] if len(values) >= round else math.nan

    return pick


def _power(tables: Tables, split: str, other: str, round: int, limit: float) -> list[Check]:
    panels: list[Where] = [{"data": IMAGES, "split": split, "share": 0.1}]
    return compared(tables, "beyond-power", "mse", [HYBRID], [other], panels, limit, summary=at(round))


def _median(tables: Tables, column: str, scheme: str, panel: Where) -> float:
    found = tables.per_seed("beyond-kmeans", column, lambda values: values[-1], scheme=scheme, **panel)
    return float(np.median(list(found.values()))) if found else math.nan


def _kmeans_objective(tables: Tables) -> list[Check]:
    """The hybrid's median objective over the best of the others'."""
    checks = []
    for panel in tables.panels("beyond-kmeans", data=IMAGES):
        others = [_median(tables, "objective", scheme, panel) for scheme in (*PAPERS_BEST, "wangni", *BEYOND)]
        value = _median(tables, "objective", HYBRID, panel) / np.nanmin(others)
        checks.append(of_number(f"{told(panel)}: median objective over the best", value, "<", 1.02))
    return checks


def _kmeans_error(tables: Tables) -> list[Check]:
    """The hybrid's median error over the least of those that lost no cluster in the median."""
    checks = []
    for panel in tables.panels("beyond-kmeans", data=IMAGES):
        whole = [s for s in (*PAPERS_BEST, "wangni", *BEYOND) if _median(tables, "empty", s, panel) < 1]
        others = {scheme: _median(tables, "mse", scheme, panel) for scheme in whole if scheme != HYBRID}
        best = min(others, key=others.__getitem__, default="")
        if best:
            value = _median(tables, "mse", HYBRID, panel) / others[best]
            checks.append(of_number(f"{told(panel)}: median error over {best}", value, "<", 1.0))
    return checks


def _few_bits(tables: Tables, scheme: str, limit: float) -> list[Check]:
    panel: Where = {"data": IMAGES, "split": "iid", "scheme": f"{scheme} int8"}
    found = list(tables.per_seed("few-bits", "mse", at(40), **panel).values())
    return [of_values(f"error of {scheme} int8 at round 40", found, "<", limit)] if found else []


def _finite(tables: Tables, scheme: str) -> list[Check]:
    found = tables.per_seed("beyond-logistic", "mse", max, scheme=scheme, data=COLOUR)
    return [of_values(f"largest error of {scheme}", list(found.values()), "<", 1e6)] if found else []


def _few_bits_correlated(tables: Tables) -> list[Check]:
    found = [float(row["nmse"]) for row in tables.rows("few-bits-alike", scheme=f"{ADAPTIVE} int8", dim=65536)]
    return [of_values("NMSE", found, "<", 0.01)] if found else []


CLAIMS = (
    Claim(
        "hybrid-iid",
        PLACE,
        "Power iteration, IID, k = 0.1d, round 40: Hybrid has at most 1/500 of Rand-k-Temporal's error, 1/40 of the "
        "O(d) memory's.",
        lambda tables: [*_power(tables, "iid", TEMPORAL, 40, 1 / 500), *_power(tables, "iid", SHARED, 40, 1 / 40)],
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "hybrid-early",
        PLACE,
        "Power iteration, IID, k = 0.1d, round 3: Hybrid has at most 1/10 of Spatial(Avg)'s error.",
        lambda tables: _power(tables, "iid", AVG, 3, 1 / 10),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "hybrid-non-iid",
        PLACE,
        "Power iteration, non-IID, k = 0.1d, round 40: Hybrid has at most 1/8 of Rand-k-Temporal's error.",
        lambda tables: _power(tables, "non-iid", TEMPORAL, 40, 1 / 8),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "hybrid-kmeans",
        PLACE,
        "K-means, all six settings: Hybrid's objective is the best of all compressed schemes or within 2 % of it.",
        _kmeans_objective,
        "Medians over seeds at the last round.",
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "hybrid-kmeans-error",
        PLACE,
        "K-means, all six settings: Hybrid's error is the lowest of the schemes that lost no cluster.",
        _kmeans_error,
        "Medians over seeds at the last round.",
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "hybrid-logistic",
        PLACE,
        "Logistic regression, k = 0.01d: Hybrid's error is at most 3 % above Rand-k-Temporal's.",
        lambda tables: compared(
            *(tables, "beyond-logistic", "mse", [HYBRID], [TEMPORAL]),
            tables.panels("beyond-logistic", data=COLOUR),
            1.03,
            summary=late,
        ),
        needs=(COLOUR,),
        source=OWN,
    ),
    Claim(
        "memories-bounded",
        PLACE,
        "Neither Hybrid nor the stable O(d) memory diverges where the O(d) memory does.",
        lambda tables: [*_finite(tables, HYBRID), *_finite(tables, STABLE)],
        needs=(COLOUR,),
        source=OWN,
    ),
    Claim(
        "few-bits-hybrid",
        PLACE,
        "Power iteration, IID, 98 bytes of values and scales a node: Hybrid with int8 is at 1e-5 or below in round 40.",
        lambda tables: _few_bits(tables, HYBRID, 1e-5),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "few-bits-adaptive",
        PLACE,
        "Power iteration, IID, 98 bytes of values and scales a node: Spatial(adaptive) with int8 is at 3e-4 or below "
        "in round 40.",
        lambda tables: _few_bits(tables, ADAPTIVE, 3e-4),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "few-bits-alike",
        PLACE,
        "n = 10, d = 65,536, R2/R1 = 8.9, 3.2 bits a coordinate: Spatial(adaptive), int8, has an NMSE of at most 0.01.",
        _few_bits_correlated,
        full_size=True,
        source=OWN,
    ),
)
