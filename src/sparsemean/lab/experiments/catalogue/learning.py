"""Figure 5 and Appendix C: the three tasks, and the quadratic case study of Section 4."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.scale import Scale
from sparsemean.lab.experiments.catalogue.schemes import BASELINES, SPARSE
from sparsemean.lab.experiments.setting import EXACT, Setting

SPLITS = ("iid", "non-iid")
SHARES = (0.05, 0.1, 0.2)
LOGISTIC_SHARES = (0.005, 0.01, 0.02)


def power_iteration(scale: Scale, seed: int) -> list[Setting]:
    return [
        power_setting(scale, seed, scheme, share, split, "power-iteration")
        for split in SPLITS
        for scheme, share in with_shares(SHARES)
    ]


def power_setting(scale: Scale, seed: int, scheme: str, share: float | None, split: str, figure: str) -> Setting:
    """One run of power iteration; the same in every figure."""
    return Setting(figure, "power-iteration", scale.images, scheme, share, seed, scale.power_rounds, split, scale.nodes)


def kmeans(scale: Scale, seed: int) -> list[Setting]:
    return [
        kmeans_setting(scale, seed, scheme, share, split, "kmeans")
        for split in SPLITS
        for scheme, share in with_shares(SHARES)
    ]


def kmeans_setting(scale: Scale, seed: int, scheme: str, share: float | None, split: str, figure: str) -> Setting:
    """One run of K-means; the same in every figure."""
    return Setting(figure, "kmeans", scale.images, scheme, share, seed, scale.kmeans_rounds, split, scale.nodes)


def logistic(scale: Scale, seed: int) -> list[Setting]:
    return [logistic_setting(scale, seed, *compared, "logistic") for compared in with_shares(LOGISTIC_SHARES)]


def logistic_setting(scale: Scale, seed: int, scheme: str, share: float | None, figure: str) -> Setting:
    """One run of logistic regression; the same in every figure."""
    options = (("rate", scale.logistic_rate), ("loss_rows", scale.loss_rows))
    place = (seed, scale.logistic_rounds, "non-iid", 10, options)
    return Setting(figure, "logistic", scale.colour, scheme, share, *place)


def quadratic(scale: Scale, seed: int) -> list[Setting]:
    """η = 0.1 is the figure's, 0.05 the largest that Theorem 4 allows. float64, so that rounding is no floor."""
    return [
        Setting(
            *("quadratic", "quadratic", "normal", scheme, share, seed, scale.quadratic_rounds, "", 15),
            options=(("rate", rate), ("values", "float64")),
        )
        for rate in (0.1, 0.05)
        for scheme, share in ((EXACT, None), *((name, 0.1) for name in (*BASELINES, "rand-k-temporal")))
    ]


def with_shares(shares: tuple[float, ...]) -> list[tuple[str, float | None]]:
    """Every scheme at every share; the exact mean once."""
    return [(EXACT, None), *((scheme, share) for share in shares for scheme in SPARSE)]
