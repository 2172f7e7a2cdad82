"""Claims of Appendix C: the three tasks at all shares and splits."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.schemes import AVG, BASELINES, TEMPORAL
from sparsemean.lab.experiments.claims.check import Check, of_factors, of_number, of_values
from sparsemean.lab.experiments.claims.claim import COLOUR, IMAGES, Claim
from sparsemean.lab.experiments.claims.evaluation import beaten
from sparsemean.lab.experiments.claims.evidence import Tables, against_itself, factors, first, late, told

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
            what = f"power iteration, k/d = {share:g}: late error of {TEMPORAL}, non-IID over IID"
            checks += [of_factors(what, found, ">", EQUALLY_WELL[0]), of_factors(what, found, "<", EQUALLY_WELL[1])]
    return checks


def _affected(tables: Tables) -> list[Check]:
    return [
        of_factors(f"power iteration, k/d = {share:g}: late error of {AVG}, non-IID over IID", found, ">", 1.0)
        for share, found in _across_splits(tables, AVG).items()
        if found
    ]


def _most_cases(tables: Tables) -> list[Check]:
    """The share of comparisons that Temporal wins, by the K-means objective."""
    checks = beaten(tables, "kmeans", [TEMPORAL], tables.panels("kmeans"), ["objective"])
    if not checks:
        return []
    won = sum(check.holds is True for check in checks) / len(checks)
    return [of_number(f"the part of {len(checks)} comparisons with baselines that {TEMPORAL} wins", won, ">", 0.5)]


def _spatial_non_iid(tables: Tables) -> list[Check]:
    """Not worse than the baselines by more than a twentieth."""
    return beaten(tables, "kmeans", [AVG], tables.panels("kmeans", split="non-iid"), ["objective"], limit=1.05)


def _diverging(tables: Tables) -> list[Check]:
    checks = []
    for panel in tables.panels("kmeans", share=0.05):
        for scheme in BASELINES:
            what = f"K-means, {told(panel)}: late objective of {scheme} over its own best"
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
            what = f"logistic regression, {told(panel)}: test accuracy of {TEMPORAL} less that of the best baseline"
            checks.append(of_values(what, lead, ">", 0.02))
    return checks


def _progress(tables: Tables, figure: str, share: float) -> dict[str, float]:
    """Seed → how far rand-k brings the objective down, as a part of what exact means do; non-IID data."""
    start = tables.per_seed(figure, "start", first, scheme="exact", split="non-iid")
    exact = tables.per_seed(figure, "objective", late, scheme="exact", split="non-iid")
    own = tables.per_seed(figure, "objective", late, scheme="rand-k", split="non-iid", share=share)
    return {seed: (start[seed] - own[seed]) / (start[seed] - exact[seed]) for seed in own if seed in exact}


def _robust(tables: Tables) -> list[Check]:
    """Logistic regression keeps more of its progress than the others, though it sends a smaller part."""
    kept, checks = _progress(tables, "logistic", 0.02), []
    for figure, name in (("power-iteration", "power iteration"), ("kmeans", "K-means")):
        other = _progress(tables, figure, 0.05)
        more = [kept[seed] - other[seed] for seed in kept if seed in other]
        what = f"progress that rand-k keeps, of that with exact means: logistic at k/d = 0.02 less {name} at 0.05,"
        checks += [of_values(what, more, ">", 0.0)] if more else []
    return checks


CLAIMS = (
    Claim(
        "power-iteration-all",
        "Appendix C, power iteration",
        "Spatial(Avg) and Temporal outperform the baselines in all settings: k = 0.05d, 0.1d, 0.2d, IID and non-IID.",
        lambda tables: beaten(tables, "power-iteration", (AVG, TEMPORAL), tables.panels("power-iteration")),
        needs=(IMAGES,),
    ),
    Claim(
        "temporal-splits",
        "Appendix C, power iteration",
        "Rand-k-Temporal performs equally well with IID and non-IID data (here: errors within a factor 2).",
        _equally_well,
        needs=(IMAGES,),
    ),
    Claim(
        "spatial-splits",
        "Appendix C, power iteration",
        "Rand-k-Spatial(Avg) is affected by the split, and performs best with IID data.",
        _affected,
        needs=(IMAGES,),
    ),
    Claim(
        "kmeans-temporal",
        "Appendix C, K-means",
        "Rand-k-Temporal outperforms the baselines in most cases.",
        _most_cases,
        needs=(IMAGES,),
    ),
    Claim(
        "kmeans-spatial",
        "Appendix C, K-means",
        "Rand-k-Spatial(Avg) outperforms the baselines with IID data.",
        lambda tables: beaten(tables, "kmeans", [AVG], tables.panels("kmeans", split="iid"), ["objective"]),
        needs=(IMAGES,),
    ),
    Claim(
        "kmeans-spatial-non-iid",
        "Appendix C, K-means",
        "Rand-k-Spatial(Avg) performs as well as the baselines with non-IID data (here: at most 5 % worse).",
        _spatial_non_iid,
        needs=(IMAGES,),
    ),
    Claim(
        "kmeans-diverge",
        "Appendix C, K-means",
        "The baselines start to diverge at k = 0.05d (here: end 5 % above their own best objective).",
        _diverging,
        needs=(IMAGES,),
    ),
    Claim(
        "logistic-all",
        "Appendix C, logistic regression",
        "Rand-k-Temporal has lower training loss than the baselines at k = 0.005d, 0.01d and 0.02d.",
        lambda tables: beaten(tables, "logistic", [TEMPORAL], tables.panels("logistic"), ["objective"]),
        needs=(COLOUR,),
    ),
    Claim(
        "logistic-accuracy",
        "Appendix C, logistic regression",
        "Rand-k-Temporal has 2-3 % higher test accuracy than the baselines in all cases (here: at least 2 %).",
        _accuracy,
        needs=(COLOUR,),
    ),
    Claim(
        "logistic-robust",
        "Appendix C, logistic regression",
        "Vectors of the logistic regression are more robust to compression than those of power iteration and K-means "
        "(here: Rand-k at 0.02d keeps more of the progress than there at 0.05d).",
        _robust,
        "Progress: the fall of the objective since the start, relative to that with exact means; non-IID data.",
        needs=(IMAGES, COLOUR),
    ),
)
