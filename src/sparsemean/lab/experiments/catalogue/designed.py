"""Designed draws: the coordinates of the nodes balanced against each other instead of drawn independently."""

from __future__ import annotations

from dataclasses import replace

from sparsemean.lab.experiments.catalogue.correlation import STATIONS
from sparsemean.lab.experiments.catalogue.learning import SPLITS, kmeans_setting, logistic_setting, power_setting
from sparsemean.lab.experiments.catalogue.schemes import (
    BALANCED,
    BALANCED_HYBRID,
    BALANCED_RATIO,
    BALANCED_SHRUNK,
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
    schemes = (PLAIN, UNBIASED, BALANCED, HYBRID, BALANCED_HYBRID)
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
        for scheme in (HYBRID, BALANCED_HYBRID)
    ]


def designed_weather(size: ExperimentSize, seed: int) -> list[Setting]:
    """A month of weather, k = 9 and 18 of 89; several runs for each seed, because they are short and noisy."""
    seeds = range(size.weather_runs * seed, size.weather_runs * (seed + 1))
    return [
        Setting("designed-weather", "stream", "weather", scheme, share, own, 31, "stations", STATIONS)
        for own in seeds
        for share in (0.1, 0.2)
        for scheme in (PLAIN, BALANCED, HYBRID, BALANCED_HYBRID, SHRUNK, BALANCED_SHRUNK)
    ]


def designed_logistic(size: ExperimentSize, seed: int) -> list[Setting]:
    """Gradients of nodes that disagree, R2 < 0, where balance has nothing to gain."""
    schemes = (PLAIN, BALANCED, HYBRID, BALANCED_HYBRID)
    compared = [(EXACT, None), *((scheme, 0.01) for scheme in schemes)]
    return [logistic_setting(size, seed, scheme, share, "designed-logistic") for scheme, share in compared]


def designed_batches(size: ExperimentSize, seed: int) -> list[Setting]:
    """Stochastic gradients of small batches, which have little in common after the first rounds.

    Shrunk ones show why these are not for training.
    """
    options = (("rate", RATE), ("loss_rows", size.loss_rows), ("batch", BATCH))
    schemes = (PLAIN, BALANCED, HYBRID, BALANCED_HYBRID, SHRUNK)
    return [
        replace(
            logistic_setting(size, seed, scheme, share, "designed-batches"),
            data=size.images,
            split="iid",
            options=options,
        )
        for scheme, share in ((EXACT, None), *((scheme, 0.1) for scheme in schemes))
    ]
