"""Our own claims about designed draws: what balance over the nodes gains, what it leaves as it is, what it loses."""

from __future__ import annotations

import math

from sparsemean.lab.experiments.catalogue.designed import (
    ABSENT,
    EQUAL,
    EQUAL_WEIGHTS,
    IN_PROPORTION,
    ONE_K,
    POOL,
    WEIGHTED_APART,
    attendance,
)
from sparsemean.lab.experiments.catalogue.schemes import (
    BALANCED,
    BALANCED_HYBRID,
    BALANCED_RATIO,
    BALANCED_SHRUNK,
    HYBRID,
    OPT,
    RATIO,
    SHRUNK,
    UNBIASED,
)
from sparsemean.lab.experiments.claims.beyond import at
from sparsemean.lab.experiments.claims.check import Check, of_number, of_values
from sparsemean.lab.experiments.claims.claim import COLOUR, IMAGES, OWN, Claim
from sparsemean.lab.experiments.claims.draw_checks import (
    LAST,
    PLACE,
    SEEDS,
    accuracy,
    in_round,
    kmeans,
    over_hybrid,
    weather,
)
from sparsemean.lab.experiments.claims.evidence import (
    Line,
    Tables,
    Where,
    compared,
    factors,
    first,
    late,
    overall,
)

GAINS = {1.0: 0.99, 0.5: 1.7, 0.1: 6.4, 0.03: 19.0, 0.01: 55.0}
"""1 − (R2/R1)/(n − 1) → how many times lower than Opt's the error should be, n = 10 and p = 0.1."""
FIRST_ROUND = {"iid": 8e-4, "non-iid": 1.6e-2}


def _against_opt(tables: Tables, split: str, share: float, limits: dict[float, float]) -> list[Check]:
    """Error of a balanced draw over Opt's, at most 1/limit, at each distance from equal vectors."""
    return [
        check
        for apart, limit in limits.items()
        for check in compared(
            *(tables, "designed-correlation", "mse", [BALANCED], [OPT]),
            [{"split": split, "share": share, "apart": apart}],
            1 / limit,
            summary=first,
        )
    ]


def _theory(tables: Tables, figure: str, **where: str | float) -> list[Check]:
    """|z| of the measured error against the formula's in every setting, over the trials of all seeds."""
    groups: dict[str, list[Line]] = {}
    for row in tables.rows(figure, **where):
        place = f"{row['split'] or row['nodes'] + ' nodes'} k/d={float(row['share']):.3g} apart={row['apart']}"
        groups.setdefault(f"{place}: |z| of the error of {row['scheme']}", []).append(row)
    checks = []
    for what, rows in groups.items():
        off = sum(float(row["mse"]) - float(row["exact"]) for row in rows)
        checks.append(of_number(what, abs(off) / math.hypot(*(float(row["mse_se"]) for row in rows)), "<", 4.0))
    return checks


def _cohorts(tables: Tables) -> list[Check]:
    """Of ten nodes asked out of many, and of ten that are all there are: the exact error is the same number."""
    checks = _theory(tables, "designed-correlation", scheme=BALANCED, split=attendance(0.0, POOL))
    for apart in GAINS:
        pick: Where = {"scheme": BALANCED, "share": 0.1, "apart": apart}
        asked, alone = (
            tables.per_seed("designed-correlation", "exact", first, split=split, **pick)
            for split in (attendance(0.0, POOL), attendance(0.0, 0))
        )
        if found := factors(asked, alone):
            checks.append(of_values(f"apart={apart}: exact error over that of all present", found, "=", 1.0))
    return checks


def _equal(tables: Tables) -> list[Check]:
    """The measured error against (d/k − n)/n, and the formula itself."""
    checks = _theory(tables, "designed-equal", scheme=BALANCED)
    for nodes, k in EQUAL:
        found = list(tables.per_seed("designed-equal", "exact", first, scheme=BALANCED, nodes=nodes).values())
        if found:
            checks.append(of_values(f"n={nodes} k={k}: exact NMSE", found, "=", (1024 / k - nodes) / nodes))
    return checks


def _weights(tables: Tables, schemes: tuple[str, ...], split: str, limit: float) -> list[Check]:
    """Error with unequal weights over that of Opt with equal ones."""
    checks = []
    for apart in WEIGHTED_APART:
        equal = tables.per_seed("designed-weights", "mse", first, scheme=OPT, split=EQUAL_WEIGHTS, apart=apart)
        for scheme in schemes:
            own = tables.per_seed("designed-weights", "mse", first, scheme=scheme, split=split, apart=apart)
            if found := factors(own, equal):
                checks.append(of_values(f"apart={apart}: error of {scheme}, {split}, over equal", found, "<", limit))
    return checks


def _shrunk(tables: Tables) -> list[Check]:
    """Error of shrunk estimates over that of the same without, k = 9; and what they state over what it is."""
    checks = []
    for own, other in ((SHRUNK, HYBRID), (BALANCED_SHRUNK, BALANCED_HYBRID)):
        pick: Where = {"scheme": own, "share": 0.1}
        said, found = (tables.per_seed("designed-weather", column, overall, **pick) for column in ("error", "mse"))
        if found:
            panels = tables.panels("designed-weather", share=0.1)
            checks += compared(tables, "designed-weather", "nmse", [own], [other], panels, 0.85, "<", overall)
            stated = sum(said.values()) / sum(found.values())
            checks.append(of_number(f"stated error of {own} over its error, all seeds", stated, ">", 0.95))
    return checks


CLAIMS = (
    Claim(
        "balanced-gain",
        PLACE,
        "n = 10, k = 0.1d, (R2/R1)/(n − 1) = 0 / 0.5 / 0.9 / 0.97 / 0.99: the error of balanced draws is 0.99 / 1.7 / "
        "6.4 / 19 / 55 times lower than that of Opt, which is told R2/R1.",
        lambda tables: _against_opt(tables, attendance(0.0, 0), 0.1, GAINS),
        source=OWN,
    ),
    Claim(
        "balanced-theory",
        PLACE,
        "The error of balanced draws is that of the formula, whoever is absent.",
        lambda tables: _theory(tables, "designed-correlation", scheme=BALANCED),
        source=OWN,
    ),
    Claim(
        "balanced-absent",
        PLACE,
        "k = 0.3d, with 10, 30 and 50 % of the nodes absent: still below Opt wherever nodes are similar.",
        lambda tables: [
            check
            for absent in ABSENT[1:]
            for check in _against_opt(tables, attendance(absent, 0), 0.3, {a: 1.0 for a in GAINS if a < 1})
        ],
        source=OWN,
    ),
    Claim(
        "balanced-cohorts",
        PLACE,
        "Ten nodes asked out of 1,000, others in every round: the error is that of ten nodes, all present.",
        _cohorts,
        source=OWN,
    ),
    Claim(
        "balanced-equal",
        PLACE,
        "Identical vectors, d = 1,024, n = 10 with k = 100 and n = 50 with k = 20: NMSE (d/k − n)/n = 0.024.",
        _equal,
        source=OWN,
    ),
    Claim(
        "weights-ratio",
        PLACE,
        "Lognormal weights, σ = 1, n = 30, k = 0.2d, (R2/R1)/(n − 1) = 0.9 and 0.99: the ratio decoder has at most "
        "twice the error of Opt with equal weights, with either draw.",
        lambda tables: _weights(tables, (RATIO, BALANCED_RATIO), ONE_K, 2.0),
        "Opt with the same unequal weights has 11 and 65 times that error.",
        source=OWN,
    ),
    Claim(
        "weights-proportion",
        PLACE,
        "Lognormal weights, σ = 1, n = 30, k = 0.2d on average, (R2/R1)/(n − 1) = 0.9 and 0.99: nodes that send in "
        "proportion to their weights have, unbiased, at most 1.1 times the error of Opt with equal weights, with "
        "either draw.",
        lambda tables: _weights(tables, (UNBIASED, BALANCED), IN_PROPORTION, 1.1),
        source=OWN,
    ),
    Claim(
        "balanced-first-round",
        PLACE,
        "Power iteration, k = 0.1d, round 1: balanced draws are at 8e-4 or below IID, at 1.6e-2 or below non-IID.",
        lambda tables: in_round(tables, BALANCED_HYBRID, 1, FIRST_ROUND),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "balanced-later",
        PLACE,
        "Power iteration, last quarter of the rounds: with the hybrid memory the draw makes less than 10 % difference.",
        lambda tables: [
            *over_hybrid(tables, BALANCED_HYBRID, "designed-power", 1.1, late, data=IMAGES),
            *over_hybrid(tables, BALANCED_HYBRID, "designed-power", 0.9, late, relation=">", data=IMAGES),
        ],
        "What balance spreads evenly is what nodes have in common, and that the memory expects by then.",
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "balanced-kmeans",
        PLACE,
        "K-means at round 25, both splits, k = 0.05d and 0.1d: balanced draws with the hybrid memory have at most 0.8 "
        "times the error of independent ones in most settings, and nowhere more than 1.05 times.",
        lambda tables: kmeans(tables, BALANCED_HYBRID),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "balanced-kmeans-objective",
        PLACE,
        "K-means at round 25, both splits, k = 0.05d and 0.1d: the objective of balanced draws with the hybrid memory "
        "is better than that of independent draws, or within 2 %.",
        lambda tables: over_hybrid(
            tables, BALANCED_HYBRID, "designed-kmeans", 1.02, at(LAST), "objective", data=IMAGES
        ),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "balanced-weather",
        PLACE,
        "Weather, k = 9 and 18 of 89, mean over the month: balanced draws with the hybrid memory have 1.3 and 1.1 "
        "times less error than independent ones.",
        lambda tables: weather(tables, BALANCED_HYBRID, {0.1: 1.3, 0.2: 1.1}),
        seeds=SEEDS,
        source=OWN,
    ),
    Claim(
        "balanced-logistic",
        PLACE,
        "CIFAR-10 logistic regression, where R2 < 0: with the hybrid memory, balanced draws have at most 1.05 times "
        "the error of independent ones, and lose less than one percent point of accuracy.",
        lambda tables: [
            *over_hybrid(tables, BALANCED_HYBRID, "designed-logistic", 1.05, overall, data=COLOUR),
            *accuracy(tables, BALANCED_HYBRID, "designed-logistic", COLOUR),
        ],
        needs=(COLOUR,),
        source=OWN,
    ),
    Claim(
        "balanced-batches",
        PLACE,
        "Stochastic gradients, batches of 32: with the hybrid memory, balanced draws have at most 1.05 times the error "
        "of independent ones, and lose less than one percent point of accuracy.",
        lambda tables: [
            *over_hybrid(tables, BALANCED_HYBRID, "designed-batches", 1.05, overall, data=IMAGES),
            *accuracy(tables, BALANCED_HYBRID, "designed-batches", IMAGES),
        ],
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "shrunk-weather",
        PLACE,
        "Weather, k = 9 of 89: shrunk estimates have at most 0.85 times the error, with either draw, and the one they "
        "state is not too low.",
        _shrunk,
        seeds=SEEDS,
        source=OWN,
    ),
    Claim(
        "shrunk-training",
        PLACE,
        "Stochastic gradients: shrunk estimates have less than half the error, and training with them loses more than "
        "two percent points of accuracy.",
        lambda tables: [
            *compared(
                *(tables, "designed-batches", "mse", [SHRUNK], [HYBRID]),
                *(tables.panels("designed-batches", data=IMAGES), 0.5, "<", overall),
            ),
            *accuracy(tables, SHRUNK, "designed-batches", IMAGES, "<", -0.02),
        ],
        "A biased gradient is too short in the directions that the memory has not learnt.",
        needs=(IMAGES,),
        source=OWN,
    ),
)
