"""Claims of the abstract, of Sections 1 and 2, and of the conclusion."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemean.lab.experiments.catalogue.schemes import AVG, TEMPORAL
from sparsemean.lab.experiments.claims.check import Check, of_factors, of_values
from sparsemean.lab.experiments.claims.claim import COLOUR, IMAGES, Claim
from sparsemean.lab.experiments.claims.evidence import Tables, Where, compared, first, passed, stated

OURS = (AVG, TEMPORAL)
SOPHISTICATED = ("wangni", "induced")
MAIN: dict[str, Where] = {
    "power-iteration": {"split": "iid", "share": 0.1},
    "kmeans": {"split": "iid", "share": 0.1},
    "logistic": {"split": "non-iid", "share": 0.01},
}
"""What Figure 5 shows."""
DEARER = 1.5
"""Encoding that takes this many times as long as Rand-k's counts as more expensive."""


def _consistently(tables: Tables) -> list[Check]:
    return [
        check
        for figure, panel in MAIN.items()
        for column in ("objective", "mse")
        for check in compared(tables, figure, column, OURS, SOPHISTICATED, [panel])
    ]


def _at_equal_bytes(tables: Tables) -> list[Check]:
    return [
        check
        for figure in ("power-iteration-bytes", "kmeans-bytes")
        for column in ("objective", "mse")
        for check in compared(tables, figure, column, OURS, SOPHISTICATED, [{"split": "iid"}])
    ]


def _sensors(tables: Tables) -> list[Check]:
    ratios = list(tables.per_seed("ratio-first-round", "ratio", first, data="weather").values())
    return [of_values("weather stations: R2/R1", ratios, ">", 0.0)] if ratios else []


def _updates(tables: Tables) -> list[Check]:
    panels = tables.panels("logistic")
    return compared(tables, "logistic", "mse", [TEMPORAL], ["rand-k"], panels)


def _drastically(tables: Tables) -> list[Check]:
    panel = MAIN["power-iteration"]
    return compared(tables, "power-iteration", "mse", OURS, ["rand-k"], [panel], limit=0.1)


def _nothing_more_at_nodes(tables: Tables) -> list[Check]:
    panels = tables.panels("power-iteration")
    sent = compared(tables, "power-iteration", "bytes_per_node", OURS, ["rand-k"], panels, relation="=")
    kept = stated(tables, "node-state-ours", "=", 0.0, "the number of our schemes that keep state at nodes")
    return [*kept, *_encoding(tables, OURS, "<"), *sent]


def _encoding(tables: Tables, schemes: Sequence[str], relation: str) -> list[Check]:
    """Processor time of encoding as a multiple of Rand-k's."""
    checks = []
    for dim in sorted({int(row["dim"]) for row in tables.rows("encode-cost")}):
        for scheme in schemes:
            found = tables.per_seed("encode-cost", "cost", first, scheme=scheme, dim=dim)
            what = f"d = {dim}: encoding time of {scheme} over rand-k's"
            checks += [of_factors(what, list(found.values()), relation, DEARER)] if found else []
    return checks


def _compatible(tables: Tables) -> list[Check]:
    panels = tables.panels("variants")
    better = compared(tables, "variants", "mse", ["top-k-spatial", "top-k-temporal"], ["top-k"], panels)
    accepted = stated(tables, "compatible-top-k", "=", 2.0, "of Spatial and PerNode, how many take Top-k's samples")
    refused = stated(
        tables, "compatible-wangni", "=", 2.0, "of Spatial and PerNode, how many can decode Wangni's values"
    )
    return [*accepted, *refused, *better]


CLAIMS = (
    Claim(
        "outperform",
        "Abstract",
        "In experiments for PCA, K-means and logistic regression the estimators consistently outperform more "
        "sophisticated and expensive sparsification methods.",
        _consistently,
        "At equal k, as in the paper: objective and error of the mean in the last quarter of the rounds.",
        needs=(IMAGES, COLOUR),
    ),
    Claim(
        "expensive",
        "Abstract",
        "The schemes they are compared with, Wangni's and the induced compressor, are more expensive (here: to encode, "
        "more than 1.5 times as long as Rand-k).",
        lambda tables: _encoding(tables, SOPHISTICATED, ">"),
        "In this library's implementations; processor time, which differs from machine to machine.",
    ),
    Claim(
        "outperform-bytes",
        "Abstract, at equal bytes",
        "The estimators also outperform them when every scheme may send as many bytes as Rand-k, instead of as many "
        "coordinates.",
        _at_equal_bytes,
        "The paper compares at equal k. Header included in all; seeded samples carry no coordinates.",
        needs=(IMAGES,),
    ),
    Claim(
        "drastically",
        "Section 1",
        "The error can be drastically reduced (here: tenfold against Rand-k) when there are spatial and temporal "
        "correlations.",
        _drastically,
        needs=(IMAGES,),
    ),
    Claim(
        "nothing-at-nodes",
        "Section 1",
        "The method needs no additional memory or computation at the nodes, nor more bytes (here: no state, at most "
        "1.5 times the encoding time of Rand-k, the same bytes).",
        _nothing_more_at_nodes,
        "Nodes run the very encoder of Rand-k; that times differ from it at all is noise.",
    ),
    Claim(
        "quantisation",
        "Section 1, related work",
        "Sparsification is orthogonal to quantisation, and the two can be combined (int8 values, more of them for the "
        "same bytes, lower the error).",
        lambda tables: compared(
            tables, "power-iteration-bytes", "mse", [f"{OURS[0]} int8"], [OURS[0]], [{"split": "iid"}]
        ),
        needs=(IMAGES,),
    ),
    Claim(
        "compatible",
        "Section 1",
        "The decoders are compatible with any sparsification at the nodes, including Top-k and Wangni's.",
        _compatible,
        why="The library refuses the two with Wangni's values, and this is a limit of the claim, not of the software: "
        "the probability that a node sends a coordinate depends on its vector, so that to reweight by how many nodes "
        "sent it would be biased; and values are divided by that probability before they are sent, so that no memory "
        "can be subtracted from them.",
    ),
    Claim(
        "sensors",
        "Section 1",
        "Sensor nodes in close proximity make similar measurements, so their vectors are correlated.",
        _sensors,
    ),
    Claim(
        "updates",
        "Section 1",
        "A node's model updates are similar across consecutive rounds, so its past helps to fill in what is missing.",
        _updates,
        needs=(COLOUR,),
    ),
    Claim(
        "lemma-1",
        "Lemma 1",
        "The MSE of Rand-k is (1/n²)(d/k − 1) R1.",
        lambda tables: passed(tables, "lemma-1"),
    ),
    Claim(
        "conclusion",
        "Section 6",
        "Rand-k-Spatial and Rand-k-Temporal keep the estimate unbiased.",
        lambda tables: [*passed(tables, "lemma-2", "theorem-3-unbiased", "unbiased")],
    ),
)
