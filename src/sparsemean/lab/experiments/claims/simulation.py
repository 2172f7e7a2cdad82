"""Claims of Section 3 (Simulations) and of the first half of Appendix B: error against R2/R1."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.schemes import AVG, MAX, OPT, PLAIN
from sparsemean.lab.experiments.claims.check import Check, of_factors
from sparsemean.lab.experiments.claims.claim import Claim
from sparsemean.lab.experiments.claims.evidence import Tables, factors, first

CLOSE = 1.25
"""An error this many times the optimum's still counts as close to it."""
ABOVE_LEAST = -0.999
"""At R2/R1 = −1 Opt's error is 0 and no factor to it exists: comparisons with Opt begin at the next point, −0.996."""
AT_LEAST = (
    "Judged from R2/R1 = −0.996 on: at −1 itself Opt answers 0, which is right, and no factor to its error exists."
)


def along(
    tables: Tables, over: str, under: str, share: float, low: float, high: float, relation: str, limit: float
) -> list[Check]:
    """Error of one scheme over another at every measured R2/R1 from low to high."""
    places = sorted({float(row["ratio"]) for row in tables.rows("mse-vs-ratio", share=share)})
    checks = []
    for ratio in (place for place in places if low - 1e-9 <= place <= high + 1e-9):
        pick = {"share": share, "ratio": ratio}
        own = tables.per_seed("mse-vs-ratio", "mse", first, scheme=over, **pick)
        found = factors(own, tables.per_seed("mse-vs-ratio", "mse", first, scheme=under, **pick))
        if found:
            what = f"k/d = {share:g}, R2/R1 = {round(ratio, 3) + 0.0:g}: error of {over} over {under}"
            checks.append(of_factors(what, found, relation, limit))
    return checks


def _on_average(tables: Tables) -> list[Check]:
    checks = []
    for share in (0.01, 0.1, 0.5):
        own = tables.per_seed("mse-vs-ratio", "mse", sum, scheme=AVG, share=share)
        for other in (PLAIN, MAX):
            found = factors(own, tables.per_seed("mse-vs-ratio", "mse", sum, scheme=other, share=share))
            if found:
                checks.append(of_factors(f"k/d = {share:g}: mean error of {AVG} over {other}", found, "<", 1.0))
    return checks


def _spread_grows(tables: Tables) -> list[Check]:
    """The most that Avg saves, at k/d = 0.1 against 0.01 and at 0.5 against 0.1."""
    saved = {
        share: factors(
            tables.per_seed("mse-vs-ratio", "mse", min, scheme=AVG, share=share),
            tables.per_seed("mse-vs-ratio", "mse", min, scheme=PLAIN, share=share),
        )
        for share in (0.01, 0.1, 0.5)
    }
    checks = []
    for less, more in ((0.01, 0.1), (0.1, 0.5)):
        found = [b / a for a, b in zip(saved[less], saved[more], strict=False)]
        if found:
            what = f"lowest error of {AVG} over {PLAIN}, at k/d = {more:g} relative to k/d = {less:g},"
            checks.append(of_factors(what, found, "<", 1.0))
    return checks


CLAIMS = (
    Claim(
        "avg-beats-extremes",
        "Figure 2a",
        "At k/d = 0.1, Rand-k-Spatial(Avg) outperforms Rand-k at high R2/R1 (≥ 6) and Max at low R2/R1 (≤ 3).",
        lambda tables: [
            *along(tables, AVG, PLAIN, 0.1, 6.0, 9.0, "<", 1.0),
            *along(tables, AVG, MAX, 0.1, -1.0, 3.0, "<", 1.0),
        ],
    ),
    Claim(
        "avg-on-average",
        "Section 3",
        "On average over the range of R2/R1, Rand-k-Spatial(Avg) does better than Rand-k and than Max.",
        _on_average,
    ),
    Claim(
        "avg-close-to-opt",
        "Figure 2a, Section 3",
        "Rand-k-Spatial(Avg) is close to Opt (here: within a factor 1.25) over the whole range of R2/R1, at k/d = 0.1.",
        lambda tables: along(tables, AVG, OPT, 0.1, ABOVE_LEAST, 9.0, "<", CLOSE),
        AT_LEAST,
    ),
    Claim(
        "extremes-only-special",
        "Section 3, Simulations",
        "Rand-k is not close to the optimum at high R2/R1 (≥ 7), nor Max at low (≤ 0), at k/d = 0.1.",
        lambda tables: [
            *along(tables, PLAIN, OPT, 0.1, 7.0, 9.0, ">", CLOSE),
            *along(tables, MAX, OPT, 0.1, ABOVE_LEAST, 0.0, ">", 1.1),
        ],
    ),
    Claim(
        "same-order",
        "Appendix B",
        "At k/d = 0.1 the MSEs of all estimators are of the same order (here: within a factor 10 of Rand-k).",
        lambda tables: [
            *along(tables, AVG, PLAIN, 0.1, -1.0, 9.0, ">", 0.1),
            *along(tables, MAX, PLAIN, 0.1, -1.0, 9.0, ">", 0.1),
        ],
        "The text speaks of k = 1 and 50, the captions of 0.1d and 0.5d; with d = 100, k = 1 is 0.01d. Here all three "
        "are run.",
    ),
    Claim(
        "order-of-magnitude",
        "Appendix B",
        "At k/d = 0.5, Max and Avg have an order of magnitude lower MSE than Rand-k for R2/R1 ≥ 8.",
        lambda tables: [
            *along(tables, MAX, PLAIN, 0.5, 8.0, 9.0, "<", 0.1),
            *along(tables, AVG, PLAIN, 0.5, 8.0, 9.0, "<", 0.1),
        ],
        "By Theorem 1: 0.15 (Max) and 0.17 (Avg) at 8, 0.01 and 0.05 at 9.",
    ),
    Claim(
        "difference-grows",
        "Appendix B",
        "As k/d increases, the relative difference between the estimators increases.",
        _spread_grows,
    ),
    Claim(
        "avg-matches-opt",
        "Appendix B, caption",
        "Rand-k-Spatial(Avg) closely matches Opt (here: within a factor 1.25) across the range at k/d = 0.5 too.",
        lambda tables: along(tables, AVG, OPT, 0.5, ABOVE_LEAST, 9.0, "<", CLOSE),
        f"{AT_LEAST} It does from about −0.5 to 8.2; by Theorem 1 it has 5 times Opt's error at 9.",
    ),
)
