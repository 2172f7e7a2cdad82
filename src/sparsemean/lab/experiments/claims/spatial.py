"""Section 3 and the first half of Appendix B."""

from __future__ import annotations

from sparsemean.lab.experiments.claims.check import Check, of_factors, of_number, of_values
from sparsemean.lab.experiments.claims.claim import Claim
from sparsemean.lab.experiments.claims.evidence import Tables, compared, factors, first, passed, stated

AVG, MAX, OPT, PLAIN = "rand-k-spatial-avg", "rand-k-spatial-max", "rand-k-spatial-opt", "rand-k"
CLOSE = 1.25
"""An error this many times the optimum's still counts as close to it."""


def _along(
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
            what = f"k/d={share:g} R2/R1={round(ratio, 3) + 0.0:g}: mse of {over} over {under}"
            checks.append(of_factors(what, found, relation, limit))
    return checks


def _theorem_1(tables: Tables) -> list[Check]:
    curves = [
        of_number(
            f"{scheme} k/d={share:g}: largest |z| of measured against exact error, all R2/R1", max(found), "<", 4.0
        )
        for scheme in (PLAIN, MAX, AVG)
        for share in (0.01, 0.1, 0.5)
        if (found := _z_scores(tables, scheme, share))
    ]
    return [*passed(tables, "theorem-1"), *curves]


def _z_scores(tables: Tables, scheme: str, share: float) -> list[float]:
    """|z| of every point and seed of a curve; the last, where all draws may have the same error, has none."""
    rows = tables.rows("mse-vs-ratio", scheme=scheme, share=share)
    return [
        abs(float(row["mse"]) - float(row["exact"])) / float(row["mse_se"]) for row in rows if float(row["mse_se"]) > 0
    ]


def _on_average(tables: Tables) -> list[Check]:
    checks = []
    for share in (0.01, 0.1, 0.5):
        own = tables.per_seed("mse-vs-ratio", "mse", sum, scheme=AVG, share=share)
        for other in (PLAIN, MAX):
            found = factors(own, tables.per_seed("mse-vs-ratio", "mse", sum, scheme=other, share=share))
            if found:
                checks.append(of_factors(f"k/d={share:g}: mean mse of {AVG} over {other}", found, "<", 1.0))
    return checks


def _first_rounds(tables: Tables) -> list[Check]:
    checks = []
    for data, split in sorted({(row["data"], row["split"]) for row in tables.rows("ratio-first-round")}):
        found = tables.per_seed("ratio-first-round", "ratio", first, data=data, split=split)
        checks.append(of_values(f"{data} {split}: R2/R1 in the first round", list(found.values()), ">", 0.0))
    return [check for check in checks if "weather" not in check.what]


def _unknowable(tables: Tables) -> list[Check]:
    """How far off the server's own estimate is."""
    checks = []
    for data, split in sorted({(row["data"], row["split"]) for row in tables.rows("ratio-first-round")}):
        pick = {"data": data, "split": split}
        true = tables.per_seed("ratio-first-round", "ratio", first, **pick)
        estimated = tables.per_seed("ratio-first-round", "ratio_estimated", first, **pick)
        off = [abs(estimated[seed] / true[seed] - 1) for seed in true if seed in estimated]
        if off:
            what = f"{data} {split}: relative error of the server's R2/R1 from a tenth of the coordinates"
            checks.append(of_values(what, off, ">", 0.25))
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
            what = f"least mse of {AVG} over {PLAIN}: at k/d={more:g} relative to {less:g}"
            checks.append(of_factors(what, found, "<", 1.0))
    return checks


CLAIMS = (
    Claim(
        "lemma-2",
        "Lemma 2",
        "Rand-k-Spatial is unbiased, with β̄ as the appendix sums it (M given that a node sent).",
        lambda tables: passed(tables, "lemma-2"),
    ),
    Claim(
        "lemma-2-literal",
        "Section 3, before Lemma 2",
        "Rand-k-Spatial is unbiased with β̄ = ((k/d) E[1/T(M) | M ≥ 1])⁻¹ read as a zero-truncated binomial.",
        lambda tables: stated(tables, "lemma-2-literal", "=", 1.0, "estimate along the true mean"),
        "A slip of notation: the sum in the appendix is right, and is what the library uses.",
    ),
    Claim(
        "theorem-1",
        "Theorem 1",
        "The MSE of any member of the Rand-k-Spatial family is (1/n²)(d/k − 1) R1 + (1/n²)(c1 R1 − c2 R2).",
        _theorem_1,
    ),
    Claim(
        "ratio-range",
        "Theorem 2",
        "R2/R1 always lies in [−1, n − 1].",
        lambda tables: passed(tables, "theorem-2-range"),
    ),
    Claim(
        "theorem-2",
        "Theorem 2",
        "T*(m) = 1 + (R2/R1)(m − 1)/(n − 1) minimises the MSE within the family.",
        lambda tables: passed(tables, "theorem-2"),
    ),
    Claim(
        "best-rand-k",
        "Section 3, special cases",
        "Rand-k is the best of the family when R2/R1 = 0, and only then.",
        lambda tables: [*passed(tables, "theorem-2-rand-k"), *_along(tables, PLAIN, OPT, 0.1, 2.0, 9.0, ">", 1.0)],
    ),
    Claim(
        "best-max",
        "Section 3, special cases",
        "Rand-k-Spatial(Max) is the best of the family when R2/R1 = n − 1.",
        lambda tables: [*passed(tables, "theorem-2-max"), *_along(tables, MAX, OPT, 0.1, 9.0, 9.0, "=", 1.0)],
    ),
    Claim(
        "opposed",
        "Appendix A, Theorem 2, case 2",
        "When R2/R1 = −1 the optimal estimator recovers the mean with zero error.",
        lambda tables: passed(tables, "theorem-2-opposed"),
    ),
    Claim(
        "midpoint",
        "Section 3",
        "n/2 is the mid-point of the interval in which R2/R1 lies (n = 10: 5).",
        lambda tables: stated(tables, "average-midpoint", "=", 5.0),
        "It is n/2 − 1.",
    ),
    Claim(
        "best-on-average",
        "Section 3",
        "Rand-k-Spatial(Avg), with ratio n/2, minimises the expected MSE if R2/R1 is uniform over its range.",
        lambda tables: stated(tables, "average-best", "=", 5.0),
        "The MSE is linear in R2, so the mid-point n/2 − 1 does. For n = 10 and k = 0.1d, n/2 costs 0.3 % more.",
    ),
    Claim(
        "unknowable",
        "Section 3",
        "It does not seem possible for the server to know R2/R1 without communicating entire vectors (here: it is off "
        "by more than a quarter).",
        _unknowable,
        "R1 and R2 can be estimated without bias from what arrives; see also server-r1 and server-r2 in theory.csv.",
    ),
    Claim(
        "avg-beats-extremes",
        "Figure 2a",
        "At k/d = 0.1, Rand-k-Spatial(Avg) outperforms Rand-k at high R2/R1 (≥ 6) and Max at low R2/R1 (≤ 3).",
        lambda tables: [
            *_along(tables, AVG, PLAIN, 0.1, 6.0, 9.0, "<", 1.0),
            *_along(tables, AVG, MAX, 0.1, -1.0, 3.0, "<", 1.0),
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
        lambda tables: _along(tables, AVG, OPT, 0.1, -1.0, 9.0, "<", CLOSE),
        "Not at R2/R1 = −1, where Opt's error is 0.",
    ),
    Claim(
        "extremes-only-special",
        "Section 3, Simulations",
        "Rand-k is not close to the optimum at high R2/R1 (≥ 7), nor Max at low (≤ 0), at k/d = 0.1.",
        lambda tables: [
            *_along(tables, PLAIN, OPT, 0.1, 7.0, 9.0, ">", CLOSE),
            *_along(tables, MAX, OPT, 0.1, -1.0, 0.0, ">", 1.1),
        ],
    ),
    Claim(
        "ratio-large",
        "Figure 2b",
        "In the first round of power iteration R2/R1 is significantly larger than 0, on both image sets and splits.",
        _first_rounds,
    ),
    Claim(
        "rand-k-not-best",
        "Figure 2b, caption",
        "So the MSE is not minimised by Rand-k: Rand-k-Spatial(Avg) has less in the first round of power iteration.",
        lambda tables: compared(
            tables, "power-iteration", "mse", [AVG], [PLAIN], tables.panels("power-iteration"), summary=first
        ),
    ),
    Claim(
        "same-order",
        "Appendix B",
        "At k/d = 0.1 the MSEs of all estimators are of the same order (here: within a factor 10 of Rand-k).",
        lambda tables: [
            *_along(tables, AVG, PLAIN, 0.1, -1.0, 9.0, ">", 0.1),
            *_along(tables, MAX, PLAIN, 0.1, -1.0, 9.0, ">", 0.1),
        ],
    ),
    Claim(
        "order-of-magnitude",
        "Appendix B",
        "At k/d = 0.5, Max and Avg have an order of magnitude lower MSE than Rand-k for R2/R1 ≥ 8.",
        lambda tables: [
            *_along(tables, MAX, PLAIN, 0.5, 8.0, 9.0, "<", 0.1),
            *_along(tables, AVG, PLAIN, 0.5, 8.0, 9.0, "<", 0.1),
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
        lambda tables: _along(tables, AVG, OPT, 0.5, -1.0, 9.0, "<", CLOSE),
    ),
)
