"""Figure 5 and Appendix C: the three tasks, and the quadratic case study of Section 4."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.schemes import AVG, BASELINES, BIASED, SPARSE, TEMPORAL
from sparsemean.lab.experiments.catalogue.size import ExperimentSize
from sparsemean.lab.experiments.setting import EXACT, Setting

SPLITS = ("iid", "non-iid")
SHARES = (0.05, 0.1, 0.2)
LOGISTIC_SHARES = (0.005, 0.01, 0.02)


def power_iteration(size: ExperimentSize, seed: int) -> list[Setting]:
    return [
        power_setting(size, seed, scheme, share, split, "power-iteration")
        for split in SPLITS
        for scheme, share in with_shares(SHARES)
    ]


def power_setting(
    size: ExperimentSize, seed: int, scheme: str, share: float | None, split: str, figure: str
) -> Setting:
    """One run of power iteration; the same in every figure."""
    return Setting(figure, "power-iteration", size.images, scheme, share, seed, size.power_rounds, split, size.nodes)


def kmeans(size: ExperimentSize, seed: int) -> list[Setting]:
    return [
        kmeans_setting(size, seed, scheme, share, split, "kmeans")
        for split in SPLITS
        for scheme, share in with_shares(SHARES)
    ]


def kmeans_setting(
    size: ExperimentSize, seed: int, scheme: str, share: float | None, split: str, figure: str
) -> Setting:
    """One run of K-means; the same in every figure."""
    return Setting(figure, "kmeans", size.images, scheme, share, seed, size.kmeans_rounds, split, size.nodes)


def logistic(size: ExperimentSize, seed: int) -> list[Setting]:
    return [logistic_setting(size, seed, *compared, "logistic") for compared in with_shares(LOGISTIC_SHARES)]


def logistic_variants(size: ExperimentSize, seed: int) -> list[Setting]:
    """The same with IID data, where nodes are more alike; and non-IID with nodes that send their largest entries."""
    return [
        logistic_setting(size, seed, scheme, None if scheme == EXACT else 0.01, "logistic-variants", split)
        for split, more in (("iid", ()), ("non-iid", BIASED))
        for scheme in (EXACT, *BASELINES, AVG, TEMPORAL, *more)
    ]


def logistic_setting(
    size: ExperimentSize, seed: int, scheme: str, share: float | None, figure: str, split: str = "non-iid"
) -> Setting:
    """One run of logistic regression; the same in every figure."""
    options = (("rate", size.logistic_rate), ("loss_rows", size.loss_rows))
    place = (seed, size.logistic_rounds, split, 10, options)
    return Setting(figure, "logistic", size.colour, scheme, share, *place)


def quadratic(size: ExperimentSize, seed: int) -> list[Setting]:
    """η = 0.1 is the figure's, 0.05 the largest that Theorem 4 allows. float64, so that rounding is no floor."""
    return [
        Setting(
            *("quadratic", "quadratic", "normal", scheme, share, seed, size.quadratic_rounds, "", 15),
            options=(("rate", rate), ("values", "float64")),
        )
        for rate in (0.1, 0.05)
        for scheme, share in ((EXACT, None), *((name, 0.1) for name in (*BASELINES, "rand-k-temporal")))
    ]


def with_shares(shares: tuple[float, ...]) -> list[tuple[str, float | None]]:
    """Every scheme at every share; the exact mean once."""
    return [(EXACT, None), *((scheme, share) for share in shares for scheme in SPARSE)]
