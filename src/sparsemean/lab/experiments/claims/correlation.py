"""Claims of Figure 2b and of the second half of Appendix B: the correlation of nodes with real data."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.schemes import AVG, PLAIN
from sparsemean.lab.experiments.claims.check import Check, of_factors, of_values
from sparsemean.lab.experiments.claims.claim import COLOUR, IMAGES, Claim
from sparsemean.lab.experiments.claims.evidence import SPLITS, Summary, Tables, compared, early, factors, first, late


def _first_rounds(tables: Tables) -> list[Check]:
    checks = []
    for data, split in sorted({(row["data"], row["split"]) for row in tables.rows("ratio-first-round")}):
        found = tables.per_seed("ratio-first-round", "ratio", first, data=data, split=split)
        checks.append(
            of_values(f"{data}, {SPLITS.get(split, split)}: R2/R1 in the first round", list(found.values()), ">", 0.0)
        )
    return [check for check in checks if "weather" not in check.what]


def _ratios(tables: Tables, split: str, summary: Summary, limit_of_n: float, offset: float = 0.0) -> list[Check]:
    """R2/R1 over the rounds, above ``limit_of_n`` · n + offset."""
    checks = []
    data_and_nodes = {(row["data"], int(row["nodes"])) for row in tables.rows("ratio-rounds", split=split)}
    for data, nodes in sorted(data_and_nodes):
        found = tables.per_seed("ratio-rounds", "ratio", summary, data=data, split=split)
        limit = limit_of_n * nodes + offset
        checks.append(
            of_values(f"{data}, {SPLITS.get(split, split)}, n = {nodes}: R2/R1", list(found.values()), ">", limit)
        )
    return checks


def _drop(tables: Tables) -> list[Check]:
    checks = []
    for data in sorted({row["data"] for row in tables.rows("ratio-rounds", split="non-iid")}):
        iid = tables.per_seed("ratio-rounds", "ratio", late, data=data, split="iid")
        non_iid = tables.per_seed("ratio-rounds", "ratio", late, data=data, split="non-iid")
        begun = tables.per_seed("ratio-rounds", "ratio", first, data=data, split="non-iid")
        if found := factors(non_iid, iid):
            checks.append(of_factors(f"{data}: late R2/R1, non-IID over IID", found, "<", 1.0))
        if found := factors(non_iid, begun):
            checks.append(of_factors(f"{data}, non-IID: late R2/R1 over the first round's", found, "<", 1.0))
    return checks


CLAIMS = (
    Claim(
        "ratio-large",
        "Figure 2b",
        "In the first round of power iteration R2/R1 is significantly larger than 0, on both image sets and splits.",
        _first_rounds,
        needs=(IMAGES, COLOUR),
    ),
    Claim(
        "rand-k-not-best",
        "Figure 2b, caption",
        "So the MSE is not minimised by Rand-k: Rand-k-Spatial(Avg) has less in the first round of power iteration.",
        lambda tables: compared(
            tables, "power-iteration", "mse", [AVG], [PLAIN], tables.panels("power-iteration"), summary=first
        ),
        needs=(IMAGES,),
    ),
    Claim(
        "ratio-maximum",
        "Appendix B",
        "With IID data R2/R1 quickly reaches almost its maximum n − 1 (here: 90 % of it).",
        lambda tables: _ratios(tables, "iid", early, 0.9, -0.9),
        needs=(IMAGES, COLOUR),
    ),
    Claim(
        "ratio-half",
        "Appendix B",
        "With non-IID data R2/R1 stays above n/2 in every round.",
        lambda tables: _ratios(tables, "non-iid", min, 0.5),
        needs=(IMAGES, COLOUR),
    ),
    Claim(
        "ratio-half-avg",
        "Appendix B",
        "So Rand-k-Spatial(Avg) outperforms Rand-k in power iteration with non-IID data too.",
        lambda tables: [
            check
            for column in ("objective", "mse")
            for check in compared(
                *(tables, "power-iteration", column, [AVG], ["rand-k"]),
                tables.panels("power-iteration", split="non-iid"),
            )
        ],
        needs=(IMAGES,),
    ),
    Claim(
        "ratio-drop",
        "Appendix B",
        "With non-IID data R2/R1 is lower than with IID data, and drops over the rounds.",
        _drop,
        needs=(IMAGES, COLOUR),
    ),
)
