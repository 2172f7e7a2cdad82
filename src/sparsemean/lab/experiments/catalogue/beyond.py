"""Past the paper: estimators that adapt, memories that cannot diverge, few-bit values, nodes on thin links."""

from __future__ import annotations

from dataclasses import replace

from sparsemean.lab.experiments.catalogue.learning import (
    SPLITS,
    kmeans_setting,
    logistic_setting,
    power_setting,
)
from sparsemean.lab.experiments.catalogue.schemes import BEYOND
from sparsemean.lab.experiments.catalogue.size import ExperimentSize
from sparsemean.lab.experiments.setting import EXACT, Setting

FEW = ("float32", "float16", "int8", "int4", "1-bit")
PAPERS_BEST = ("rand-k-spatial-avg", "rand-k-temporal", "rand-k-temporal-shared")


def beyond_power(size: ExperimentSize, seed: int) -> list[Setting]:
    """Power iteration against the paper's best."""
    compared = [
        (EXACT, None),
        *((scheme, share) for share in size.beyond_shares[:2] for scheme in (*PAPERS_BEST, *BEYOND)),
    ]
    return [
        power_setting(size, seed, scheme, share, split, "beyond-power")
        for split in SPLITS
        for scheme, share in compared
    ]


def beyond_kmeans(size: ExperimentSize, seed: int) -> list[Setting]:
    """K-means against the paper's best and the strongest baseline."""
    schemes = (*PAPERS_BEST, "wangni", *BEYOND)
    compared = [(EXACT, None), *((scheme, share) for share in size.beyond_shares for scheme in schemes)]
    return [
        kmeans_setting(size, seed, scheme, share, split, "beyond-kmeans")
        for split in SPLITS
        for scheme, share in compared
    ]


def beyond_logistic(size: ExperimentSize, seed: int) -> list[Setting]:
    """Gradients of nodes that disagree, where a memory of all together has least to go by."""
    schemes = ("rand-k", "rand-k-temporal", "rand-k-temporal-shared", *BEYOND)
    compared = [(EXACT, None), *((scheme, 0.01) for scheme in schemes)]
    return [logistic_setting(size, seed, scheme, share, "beyond-logistic") for scheme, share in compared]


def few_bits(size: ExperimentSize, seed: int) -> list[Setting]:
    """Power iteration at one bit a coordinate, header apart: more values of fewer bits, or fewer of more."""
    made = []
    for split in SPLITS:
        for name in ("rand-k-spatial-adaptive", "rand-k-hybrid"):
            for kind in FEW:
                setting = power_setting(size, seed, f"{name} {kind}", 0.125, split, "few-bits")
                made.append(replace(setting, options=(("budget", "bits"),)))
    return made


def few_bits_correlated(size: ExperimentSize, seed: int) -> list[Setting]:
    """Nearly equal Gaussian vectors, rounds that know nothing of each other, 3.2 bits a coordinate."""
    dim = size.correlated_dim
    options = (("measure", "alike"), ("ratio", 8.9), ("trials", 5), ("dim", dim), ("bytes", int(0.4 * dim)))
    return [
        Setting("few-bits-alike", "alike", "normal", f"{name} {kind}", None, seed, nodes=10, options=options)
        for name in ("rand-k", "rand-k-spatial-avg", "rand-k-spatial-adaptive")
        for kind in FEW
    ]


def thin_links(size: ExperimentSize, seed: int) -> list[Setting]:
    """Power iteration where every second node can send but a tenth of what the others send."""
    schemes = ("rand-k", "rand-k-spatial-avg", "rand-k-temporal", "rand-k-spatial-adaptive-unbiased", "rand-k-hybrid")
    return [
        replace(power_setting(size, seed, scheme, 0.1, split, "thin-links"), options=(("thin", 0.01),))
        for split in SPLITS
        for scheme in schemes
    ]
