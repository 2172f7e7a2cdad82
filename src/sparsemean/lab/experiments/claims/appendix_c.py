"""Claims of Appendix C: the three tasks at all shares and splits."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.schemes import AVG, BASELINES, TEMPORAL
from sparsemean.lab.experiments.claims.check import Check, of_factors, of_number, of_values
from sparsemean.lab.experiments.claims.claim import Claim
from sparsemean.lab.experiments.claims.evaluation import beaten
from sparsemean.lab.experiments.claims.evidence import Tables, against_itself, factors, late, told

EQUALLY_WELL = (0.5, 2.0)
"""Factors between these count as equally well."""


def _across_splits(tables: Tables, scheme: str) -> dict[float, list[float]]:
    """Share → late error of the mean, non-IID over IID, one per seed."""
    return {
        share: factors(
            tables.per_seed("power-iteration", "mse", late, scheme=scheme, share=share, split="non-iid"),
            tables.per_seed("power-iteration", "mse", late, scheme=scheme, share=share, split="iid"),
        )
        for share in sorted({float(panel["share"]) for panel in tables.panels("power-iteration")})
    }


def _equally_well(tables: Tables) -> list[Check]:
    checks = []
    for share, found in _across_splits(tables, TEMPORAL).items():
        if found:
            what = f"k/d={share:g}: late mse of {TEMPORAL}, non-iid over iid"
            checks += [of_factors(what, found, ">", EQUALLY_WELL[0]), of_factors(what, found, "<", EQUALLY_WELL[1])]
    return checks


def _affected(tables: Tables) -> list[Check]:
    return [
        of_factors(f"k/d={share:g}: late mse of {AVG}, non-iid over iid", found, ">", 1.0)
        for share, found in _across_splits(tables, AVG).items()
        if found
    ]


def _most_cases(tables: Tables) -> list[Check]:
    """The share of comparisons that Temporal wins, by the K-means objective."""
    checks = beaten(tables, "kmeans", [TEMPORAL], tables.panels("kmeans"), ["objective"])
    if not checks:
        return []
    won = sum(check.holds is True for check in checks) / len(checks)
    return [of_number(f"share of {len(checks)} comparisons with baselines that {TEMPORAL} wins", won, ">", 0.5)]


def _spatial_non_iid(tables: Tables) -> list[Check]:
    """Not worse than the baselines by more than a twentieth."""
    return beaten(tables, "kmeans", [AVG], tables.panels("kmeans", split="non-iid"), ["objective"], limit=1.05)


def _diverging(tables: Tables) -> list[Check]:
    checks = []
    for panel in tables.panels("kmeans", share=0.05):
        for scheme in BASELINES:
            what = f"kmeans {told(panel)}: late objective of {scheme} over its own best"
            columns = (("objective", late), ("objective", min))
            checks += against_itself(tables, what, "kmeans", *columns, ">", 1.05, {**panel, "scheme": scheme})
    return checks


def _accuracy(tables: Tables) -> list[Check]:
    """Late test accuracy of Temporal less that of the best baseline."""
    checks = []
    for panel in tables.panels("logistic"):
        own = tables.per_seed("logistic", "test_accuracy", late, scheme=TEMPORAL, **panel)
        others = [tables.per_seed("logistic", "test_accuracy", late, scheme=name, **panel) for name in BASELINES]
        lead = [own[seed] - max(other[seed] for other in others) for seed in own if all(seed in o for o in others)]
        if lead:
            what = f"logistic {told(panel)}: test accuracy of {TEMPORAL} less that of the best baseline"
            checks.append(of_values(what, lead, ">", 0.02))
    return checks


def _robust(tables: Tables) -> list[Check]:
    exact = tables.per_seed("logistic", "test_accuracy", late, scheme="exact")
    found = factors(tables.per_seed("logistic", "test_accuracy", late, scheme="rand-k", share=0.02), exact)
    what = "logistic k/d=0.02: test accuracy of rand-k over that with exact means"
    return [of_factors(what, found, ">", 0.8)] if found else []


CLAIMS = (
    Claim(
        "power-iteration-all",
        "Appendix C, power iteration",
        "Spatial(Avg) and Temporal outperform the baselines in all settings: k = 0.05d, 0.1d, 0.2d, IID and non-IID.",
        lambda tables: beaten(tables, "power-iteration", (AVG, TEMPORAL), tables.panels("power-iteration")),
    ),
    Claim(
        "temporal-splits",
        "Appendix C, power iteration",
        "Rand-k-Temporal performs equally well with IID and non-IID data (here: errors within a factor 2).",
        _equally_well,
    ),
    Claim(
        "spatial-splits",
        "Appendix C, power iteration",
        "Rand-k-Spatial(Avg) is affected by the split, and performs best with IID data.",
        _affected,
    ),
    Claim(
        "kmeans-temporal",
        "Appendix C, K-means",
        "Rand-k-Temporal outperforms the baselines in most cases.",
        _most_cases,
    ),
    Claim(
        "kmeans-spatial",
        "Appendix C, K-means",
        "Rand-k-Spatial(Avg) outperforms the baselines with IID data.",
        lambda tables: beaten(tables, "kmeans", [AVG], tables.panels("kmeans", split="iid"), ["objective"]),
    ),
    Claim(
        "kmeans-spatial-non-iid",
        "Appendix C, K-means",
        "Rand-k-Spatial(Avg) performs as well as the baselines with non-IID data (here: at most 5 % worse).",
        _spatial_non_iid,
    ),
    Claim(
        "kmeans-diverge",
        "Appendix C, K-means",
        "The baselines start to diverge at k = 0.05d (here: end 5 % above their own best objective).",
        _diverging,
    ),
    Claim(
        "logistic-all",
        "Appendix C, logistic regression",
        "Rand-k-Temporal has lower training loss than the baselines at k = 0.005d, 0.01d and 0.02d.",
        lambda tables: beaten(tables, "logistic", [TEMPORAL], tables.panels("logistic"), ["objective"]),
    ),
    Claim(
        "logistic-accuracy",
        "Appendix C, logistic regression",
        "Rand-k-Temporal has 2-3 % higher test accuracy than the baselines in all cases (here: at least 2 %).",
        _accuracy,
    ),
    Claim(
        "logistic-robust",
        "Appendix C, logistic regression",
        "Gradients of the logistic regression are robust to compression (here: Rand-k at 0.02d keeps 80 % of the "
        "accuracy).",
        _robust,
    ),
)
