"""Designed draws: coordinates balanced over nodes or without replacement over rounds, and dither shared out."""

from __future__ import annotations

from dataclasses import replace

from sparsemean.lab.experiments.catalogue.correlation import STATIONS
from sparsemean.lab.experiments.catalogue.learning import SPLITS, kmeans_setting, logistic_setting, power_setting
from sparsemean.lab.experiments.catalogue.schemes import (
    BALANCED,
    BALANCED_HYBRID,
    BALANCED_RATIO,
    BALANCED_SHRUNK,
    EPOCHS_HYBRID,
    HYBRID,
    OPT,
    PLAIN,
    RATIO,
    SHRUNK,
    UNBIASED,
)
from sparsemean.lab.experiments.catalogue.size import ExperimentSize
from sparsemean.lab.experiments.setting import EXACT, Setting

APART = (1.0, 0.5, 0.1, 0.03, 0.01)
"""1 − (R2/R1)/(n − 1), from orthogonal vectors to nearly equal ones."""
ABSENT = (0.0, 0.1, 0.3, 0.5)
POOL = 1000
EQUAL_DIM, EQUAL = 1024, ((10, 100), (50, 20))
"""d, and (n, k): nearly every coordinate comes once."""
WEIGHTED_NODES, WEIGHTED_APART, SPREAD = 30, (0.1, 0.01), 1.0
"""n, 1 − (R2/R1)/(n − 1) and the σ of lognormal weights."""
EQUAL_WEIGHTS, ONE_K, IN_PROPORTION = "equal weights", "unequal weights", "unequal weights, k in proportion"
BATCH, RATE = 32, 0.1
CHANGE_NODES, CHANGE_DIM, CHANGE_ROUNDS, CHANGE = 30, 1000, 60, 30
"""n, d, rounds and, counted from 0, the round in which all vectors change."""
CHANGED_ALIKE = (0.0, 0.5, 0.9)
DITHER_ALIKE = (0.0, 0.5, 0.9, 0.99, 1.0)
"""(R2/R1)/(n − 1)."""
DITHER_SIZES = ((100, 1000, None), (50, 2000, 0.2))
"""n, d and k/d; None where all is sent."""
OWN_SCALES, COMMON_SCALE = "own scales", "common scale"
_NODES, _DIM = 10, 4000


def designed_correlation(size: ExperimentSize, seed: int) -> list[Setting]:
    """Single rounds, n = 10: all present at p = 0.1 (np = 1), parts absent at p = 0.3, and ten asked out of 1,000."""
    attendances = [(0.1, 0.0, _NODES), (0.1, 0.0, POOL), *((0.3, absent, _NODES) for absent in ABSENT)]
    options = (("measure", "alike-means"), ("dim", _DIM), ("trials", size.designed_trials))
    return [
        Setting(
            *("designed-correlation", "alike", "normal", scheme, share, seed, 1, attendance(absent, pool), _NODES),
            options=(*options, ("ratio", (1 - apart) * (_NODES - 1)), ("absent", absent), ("pool", pool)),
        )
        for share, absent, pool in attendances
        for apart in APART
        for scheme in (PLAIN, OPT, BALANCED)
    ]


def attendance(absent: float, pool: int) -> str:
    """Who takes part, as the table's ``split`` tells it.

    >>> attendance(0.3, 10), attendance(0.0, 1000)
    ('30 % absent', '10 of 1,000 asked')
    """
    return f"{_NODES} of {pool:,} asked" if pool > _NODES else f"{100 * absent:.0f} % absent"


def designed_equal(size: ExperimentSize, seed: int) -> list[Setting]:
    """Identical unit vectors, where the error of a balanced draw is what the coordinates leave out that nobody sent."""
    options = (("measure", "alike-means"), ("dim", EQUAL_DIM), ("trials", size.designed_trials))
    return [
        Setting(
            *("designed-equal", "alike", "normal", scheme, k / EQUAL_DIM, seed, 1, "", nodes),
            options=(*options, ("ratio", nodes - 1)),
        )
        for nodes, k in EQUAL
        for scheme in (PLAIN, OPT, BALANCED)
    ]


def designed_weights(size: ExperimentSize, seed: int) -> list[Setting]:
    """Single rounds of nodes of unequal weight, k = 0.2d on average."""
    options = (("measure", "alike-means"), ("dim", _DIM), ("trials", max(size.designed_trials // 4, 2)))
    unequal, sized = (("spread", SPREAD),), (("spread", SPREAD), ("proportional", 1))
    compared = [
        *((scheme, EQUAL_WEIGHTS, ()) for scheme in (OPT, BALANCED)),
        *((scheme, ONE_K, unequal) for scheme in (OPT, BALANCED, RATIO, BALANCED_RATIO)),
        *((scheme, IN_PROPORTION, sized) for scheme in (UNBIASED, BALANCED)),
    ]
    return [
        Setting(
            *("designed-weights", "alike", "normal", scheme, 0.2, seed, 1, split, WEIGHTED_NODES),
            options=(*options, *more, ("ratio", (1 - apart) * (WEIGHTED_NODES - 1))),
        )
        for apart in WEIGHTED_APART
        for scheme, split, more in compared
    ]


def designed_power(size: ExperimentSize, seed: int) -> list[Setting]:
    """Power iteration: each draw without a memory and with the hybrid one."""
    schemes = (PLAIN, UNBIASED, BALANCED, HYBRID, BALANCED_HYBRID, EPOCHS_HYBRID)
    return [
        power_setting(size, seed, scheme, share, split, "designed-power")
        for split in SPLITS
        for scheme, share in ((EXACT, None), *((scheme, 0.1) for scheme in schemes))
    ]


def designed_kmeans(size: ExperimentSize, seed: int) -> list[Setting]:
    """K-means: ten centres as blocks, weighted by the sizes of the clusters, which unbalances what was balanced."""
    return [
        kmeans_setting(size, seed, scheme, share, split, "designed-kmeans")
        for split in SPLITS
        for share in size.beyond_shares[:2]
        for scheme in (HYBRID, BALANCED_HYBRID, EPOCHS_HYBRID)
    ]


def designed_weather(size: ExperimentSize, seed: int) -> list[Setting]:
    """A month of weather, k = 9 and 18 of 89; several runs for each seed, because they are short and noisy."""
    seeds = range(size.weather_runs * seed, size.weather_runs * (seed + 1))
    return [
        Setting("designed-weather", "stream", "weather", scheme, share, own, 31, "stations", STATIONS)
        for own in seeds
        for share in (0.1, 0.2)
        for scheme in (PLAIN, BALANCED, HYBRID, BALANCED_HYBRID, EPOCHS_HYBRID, SHRUNK, BALANCED_SHRUNK)
    ]


def designed_logistic(size: ExperimentSize, seed: int) -> list[Setting]:
    """Gradients of nodes that disagree, R2 < 0, where balance has nothing to gain."""
    schemes = (PLAIN, BALANCED, HYBRID, BALANCED_HYBRID, EPOCHS_HYBRID)
    compared = [(EXACT, None), *((scheme, 0.01) for scheme in schemes)]
    return [logistic_setting(size, seed, scheme, share, "designed-logistic") for scheme, share in compared]


def designed_batches(size: ExperimentSize, seed: int) -> list[Setting]:
    """Stochastic gradients of small batches, which have little in common after the first rounds.

    Shrunk ones show why these are not for training.
    """
    options = (("rate", RATE), ("loss_rows", size.loss_rows), ("batch", BATCH))
    schemes = (PLAIN, BALANCED, HYBRID, BALANCED_HYBRID, EPOCHS_HYBRID, SHRUNK)
    return [
        replace(
            logistic_setting(size, seed, scheme, share, "designed-batches"),
            data=size.images,
            split="iid",
            options=options,
        )
        for scheme, share in ((EXACT, None), *((scheme, 0.1) for scheme in schemes))
    ]


def designed_change(size: ExperimentSize, seed: int) -> list[Setting]:
    """Vectors that have come to rest and then all change at once, which is what a memory is least prepared for."""
    options = (("dim", CHANGE_DIM), ("change", CHANGE))
    return [
        Setting(
            *("designed-change", "abrupt-change", "normal", scheme, 0.1, seed, CHANGE_ROUNDS, similar(correlation)),
            nodes=CHANGE_NODES,
            options=(*options, ("correlation", correlation)),
        )
        for correlation in CHANGED_ALIKE
        for scheme in (PLAIN, HYBRID, BALANCED_HYBRID, EPOCHS_HYBRID)
    ]


def similar(correlation: float) -> str:
    """How alike nodes are, as the table's ``split`` tells it.

    >>> similar(0.5)
    '(R2/R1)/(n − 1) = 0.5'
    """
    return f"(R2/R1)/(n − 1) = {correlation:g}"


def designed_dither(size: ExperimentSize, seed: int) -> list[Setting]:
    """Few-bit values of a balanced draw, rounded by each node's own scale or by a common one."""
    return [
        Setting(
            *("designed-dither", "dither", kind, f"{BALANCED} {kind}", share, seed, 12, split, nodes),
            options=(("measure", "dither"), ("dim", dim), ("correlation", correlation), ("common", common)),
        )
        for kind in size.dithered
        for nodes, dim, share in DITHER_SIZES
        for correlation in DITHER_ALIKE
        for common, split in enumerate((OWN_SCALES, COMMON_SCALE))
    ]
