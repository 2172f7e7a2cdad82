"""Our own claims about epochs, draws without replacement over rounds, and about dither that senders share out."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.designed import (
    CHANGE,
    CHANGED_ALIKE,
    COMMON_SCALE,
    OWN_SCALES,
    similar,
)
from sparsemean.lab.experiments.catalogue.schemes import BALANCED, EPOCHS_HYBRID, PLAIN
from sparsemean.lab.experiments.claims.beyond import at
from sparsemean.lab.experiments.claims.check import Check, of_factors
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
from sparsemean.lab.experiments.claims.evidence import Tables, compared, factors, first, overall

POWER = {
    1: {"iid": 8e-4, "non-iid": 1.6e-2},
    15: {"iid": 6e-6, "non-iid": 1e-5},
    40: {"iid": 1e-10, "non-iid": 1e-10},
}
"""Round → split → the largest error."""
DITHER = {0.9: 4.0, 0.99: 12.0, 1.0: 80.0}
"""(R2/R1)/(n − 1) → how many times lower the error should be with a common scale."""


def _change(tables: Tables) -> list[Check]:
    """Error over Rand-k's in the round of the change, and two rounds later."""
    return [
        check
        for later, limit in ((0, 6.0), (2, 1.25))
        for correlation in CHANGED_ALIKE
        for check in compared(
            *(tables, "designed-change", "mse", [EPOCHS_HYBRID], [PLAIN]),
            [{"split": similar(correlation)}],
            limit,
            summary=at(CHANGE + 1 + later),
        )
    ]


def _dither(tables: Tables) -> list[Check]:
    """Error with each node's own scale over that with a common one, 1-bit values, all of them sent."""
    checks = []
    for correlation, limit in DITHER.items():
        own, common = (
            tables.per_seed(
                *("designed-dither", "nmse", first),
                scheme=f"{BALANCED} 1-bit",
                split=split,
                correlation=correlation,
                nodes=100,
            )
            for split in (OWN_SCALES, COMMON_SCALE)
        )
        if found := factors(own, common):
            checks.append(of_factors(f"{similar(correlation)}: error, {OWN_SCALES} over common", found, ">", limit))
    return checks


CLAIMS = (
    Claim(
        "epochs-power",
        PLACE,
        "Power iteration, k = 0.1d, epochs with the hybrid memory: the error in rounds 1 / 15 / 40 is at most 8e-4 / "
        "6e-6 / 1e-10 IID and 1.6e-2 / 1e-5 / 1e-10 non-IID.",
        lambda tables: [
            check for round, limits in POWER.items() for check in in_round(tables, EPOCHS_HYBRID, round, limits)
        ],
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "epochs-kmeans",
        PLACE,
        "K-means at round 25, both splits, k = 0.05d and 0.1d: epochs with the hybrid memory have at most 0.8 times "
        "the error of independent draws in most settings, and nowhere more than 1.05 times.",
        lambda tables: kmeans(tables, EPOCHS_HYBRID),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "epochs-kmeans-objective",
        PLACE,
        "K-means at round 25, both splits, k = 0.05d and 0.1d: the objective of epochs with the hybrid memory is "
        "better than that of independent draws, or within 2 %.",
        lambda tables: over_hybrid(tables, EPOCHS_HYBRID, "designed-kmeans", 1.02, at(LAST), "objective", data=IMAGES),
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "epochs-weather",
        PLACE,
        "Weather, k = 9 and 18 of 89, mean over the month: epochs with the hybrid memory have 1.3 and 1.1 times less "
        "error than independent draws.",
        lambda tables: weather(tables, EPOCHS_HYBRID, {0.1: 1.3, 0.2: 1.1}),
        seeds=SEEDS,
        source=OWN,
    ),
    Claim(
        "epochs-logistic",
        PLACE,
        "CIFAR-10 logistic regression, where R2 < 0: with the hybrid memory, epochs have at most 1.05 times the error "
        "of independent draws, and lose less than one percent point of accuracy.",
        lambda tables: [
            *over_hybrid(tables, EPOCHS_HYBRID, "designed-logistic", 1.05, overall, data=COLOUR),
            *accuracy(tables, EPOCHS_HYBRID, "designed-logistic", COLOUR),
        ],
        needs=(COLOUR,),
        source=OWN,
    ),
    Claim(
        "epochs-batches",
        PLACE,
        "Stochastic gradients, batches of 32: with the hybrid memory, epochs have at most 1.05 times the error of "
        "independent draws, and lose less than one percent point of accuracy.",
        lambda tables: [
            *over_hybrid(tables, EPOCHS_HYBRID, "designed-batches", 1.05, overall, data=IMAGES),
            *accuracy(tables, EPOCHS_HYBRID, "designed-batches", IMAGES),
        ],
        needs=(IMAGES,),
        source=OWN,
    ),
    Claim(
        "epochs-change",
        PLACE,
        "Vectors that have come to rest all change at once: epochs have at most 6 times the error of Rand-k in that "
        "round, and about Rand-k's or less two rounds later (here: at most 1.25 times).",
        _change,
        source=OWN,
    ),
    Claim(
        "dither-gain",
        PLACE,
        "1-bit values of 100 nodes, all sent, (R2/R1)/(n − 1) = 0.9 / 0.99 / 1: the error with a common scale is "
        "4 / 12 / 80 times lower than with each node's own.",
        _dither,
        source=OWN,
    ),
)
