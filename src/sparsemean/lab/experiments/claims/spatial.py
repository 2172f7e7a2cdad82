"""Claims of Section 3: the Rand-k-Spatial family and its best member."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemean.lab.experiments.catalogue.schemes import AVG, MAX, OPT, PLAIN
from sparsemean.lab.experiments.claims.check import Check, of_factors, of_number, of_values
from sparsemean.lab.experiments.claims.claim import Claim
from sparsemean.lab.experiments.claims.evidence import SPLITS, Line, Tables, factors, first, passed, stated
from sparsemean.lab.experiments.claims.simulation import along
from sparsemean.theory import constants


def _theorem_1(tables: Tables) -> list[Check]:
    curves = [
        of_number(
            f"{scheme}, k/d = {share:g}: largest distance from the formula in standard errors, at any R2/R1,",
            max(found),
            "<",
            4.0,
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


def _condition(tables: Tables) -> list[Check]:
    """Where c1 R1 < c2 R2: error over Rand-k's, the largest of the exact ones, and measured over all these places."""
    checks = []
    for share in (0.01, 0.1, 0.5):
        for scheme, T in ((MAX, "max"), (AVG, "avg")):
            rows = tables.rows("mse-vs-ratio", share=share, scheme=scheme)
            if not rows:
                continue
            c1, c2 = constants(T, int(rows[0]["nodes"]), share)
            own, plain = (
                [row for row in tables.rows("mse-vs-ratio", share=share, scheme=name) if c1 < c2 * float(row["ratio"])]
                for name in (scheme, PLAIN)
            )
            exact = {row["ratio"]: float(row["exact"]) for row in plain}
            parts = [float(row["exact"]) / exact[row["ratio"]] for row in own if row["ratio"] in exact]
            if not parts:
                continue
            what = f"k/d = {share:g}, where R2/R1 > c1/c2 = {c1 / c2:.2f}: %s error of {scheme} over rand-k"
            checks.append(of_number(what % "largest exact", max(parts), "<", 1.0))
            checks.append(of_factors(what % "measured", factors(_sums(own), _sums(plain)), "<", 1.0))
    return checks


def _sums(rows: Sequence[Line]) -> dict[str, float]:
    """Seed → sum of the errors."""
    sums: dict[str, float] = {}
    for row in rows:
        sums[row["seed"]] = sums.get(row["seed"], 0.0) + float(row["mse"])
    return sums


def _unknowable(tables: Tables) -> list[Check]:
    """How far off the server's own estimate is."""
    checks = []
    for data, split in sorted({(row["data"], row["split"]) for row in tables.rows("ratio-first-round")}):
        pick = {"data": data, "split": split}
        true = tables.per_seed("ratio-first-round", "ratio", first, **pick)
        estimated = tables.per_seed("ratio-first-round", "ratio_estimated", first, **pick)
        off = [abs(estimated[seed] / true[seed] - 1) for seed in true if seed in estimated]
        if off:
            place = f"{data}, {SPLITS.get(split, split)}"
            what = f"{place}: relative error of the server's R2/R1 from a tenth of the coordinates"
            checks.append(of_values(what, off, ">", 0.25))
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
        "The sum in the appendix is right, and is what the library uses.",
        "β̄ = ((k/d) Σ_m C(n − 1, m − 1) p^(m−1) (1 − p)^(n−m) / T(m))⁻¹: M is 1 plus a binomial of the other n − 1 "
        "nodes, given that this node sent, not a binomial of all n without its zero.",
    ),
    Claim(
        "theorem-1",
        "Theorem 1",
        "The MSE of any member of the Rand-k-Spatial family is (1/n²)(d/k − 1) R1 + (1/n²)(c1 R1 − c2 R2).",
        _theorem_1,
    ),
    Claim(
        "theorem-1-proof",
        "Appendix A, proof of Theorem 1",
        "The cross terms of the squared estimate are Σ_i Σ_{l>i} ⟨x_i, x_l⟩, each pair once.",
        lambda tables: stated(tables, "theorem-1-once", "=", 1.0, "measured error over the one with each pair once"),
        "A slip of the proof alone: the theorem, with R2 = 2 Σ Σ, is what is measured.",
        "2 Σ_i Σ_{l>i} ⟨x_i, x_l⟩ = R2: each pair occurs twice.",
    ),
    Claim(
        "condition",
        "Section 3, after Theorem 1",
        "Where c1 R1 < c2 R2 the error is lower than Rand-k's.",
        _condition,
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
        lambda tables: [*passed(tables, "theorem-2-rand-k"), *along(tables, PLAIN, OPT, 0.1, 2.0, 9.0, ">", 1.0)],
    ),
    Claim(
        "best-max",
        "Section 3, special cases",
        "Rand-k-Spatial(Max) is the best of the family when R2/R1 = n − 1.",
        lambda tables: [*passed(tables, "theorem-2-max"), *along(tables, MAX, OPT, 0.1, 9.0, 9.0, "=", 1.0)],
    ),
    Claim(
        "whole-vectors",
        "Appendix A, Theorem 2, case 1",
        "With p = k/d = 1 the MSE does not depend on T.",
        lambda tables: passed(tables, "theorem-2-whole"),
        "All is sent, and the estimate is the mean itself.",
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
        correction="The mid-point of [−1, n − 1] is n/2 − 1: 4 for n = 10.",
    ),
    Claim(
        "best-on-average",
        "Section 3",
        "Rand-k-Spatial(Avg), with ratio n/2, minimises the expected MSE if R2/R1 is uniform over its range.",
        lambda tables: stated(tables, "average-best", "=", 5.0),
        "For n = 10 and k = 0.1d, n/2 costs 0.3 % more.",
        "T(m) = 1 + (n/2 − 1)(m − 1)/(n − 1): the MSE is linear in R2, so the best ratio on average is the mean one.",
    ),
    Claim(
        "unknowable",
        "Section 3",
        "It does not seem possible for the server to know R2/R1 without communicating entire vectors (here: it is off "
        "by more than a quarter).",
        _unknowable,
        "R1 and R2 can be estimated without bias from what arrives; see also server-r1 and server-r2 in theory.csv.",
    ),
)
