"""Claims of Section 4: Rand-k-Temporal and its memory."""

from __future__ import annotations

from sparsemean.lab.experiments.catalogue.schemes import BIASED, SHARED, TEMPORAL
from sparsemean.lab.experiments.claims.check import Check
from sparsemean.lab.experiments.claims.claim import COLOUR, IMAGES, Claim
from sparsemean.lab.experiments.claims.evidence import Tables, compared, first, passed

SLIGHTLY = 2.0
"""An error up to this many times as large counts as slightly higher."""


def _slightly(tables: Tables) -> list[Check]:
    panels = [*tables.panels("shared-memory", data="weather"), *tables.panels("power-iteration", split="iid")]
    checks = []
    for panel in panels:
        figure = "shared-memory" if panel.get("data") == "weather" else "power-iteration"
        checks += compared(tables, figure, "mse", [SHARED], [TEMPORAL], [panel], limit=SLIGHTLY)
    return [
        *checks,
        *compared(tables, "logistic", "mse", [SHARED], [TEMPORAL], tables.panels("logistic"), limit=SLIGHTLY),
    ]


def _reduces(tables: Tables) -> list[Check]:
    panels = tables.panels("power-iteration")
    return compared(tables, "power-iteration", "mse", [TEMPORAL], ["rand-k"], panels, relation="=", summary=first)


CLAIMS = (
    Claim(
        "theorem-3",
        "Theorem 3",
        "The MSE of Rand-k-Temporal is (1/n²)(d/k − 1) Σ ‖x_i − b_i‖².",
        lambda tables: passed(tables, "theorem-3"),
    ),
    Claim(
        "temporal-unbiased",
        "Section 4",
        "Rand-k-Temporal is unbiased whatever the b_i.",
        lambda tables: passed(tables, "theorem-3-unbiased"),
    ),
    Claim(
        "predicted",
        "Section 4",
        "The estimator can also be used outside of iterations, where the server knows predicted values b_i: Theorem 3 "
        "gives its error (here: below Rand-k's, with the mean of other weather stations as prediction).",
        lambda tables: passed(tables, "theorem-3-predicted"),
    ),
    Claim(
        "reduces-to-rand-k",
        "Section 4",
        "With all b_i = 0, as in the first round, Rand-k-Temporal is Rand-k.",
        _reduces,
    ),
    Claim(
        "refinements",
        "Section 4",
        "A sliding window or a limit on staleness can refine the memory (lower the error of Rand-k-Temporal).",
        lambda tables: compared(
            *(tables, "variants", "mse", ["rand-k-temporal-window", "rand-k-temporal-stale"], [TEMPORAL]),
            tables.panels("variants"),
        ),
        "Power iteration settles, so there the latest value is the best memory; elsewhere it may be otherwise.",
        needs=(IMAGES,),
    ),
    Claim(
        "slightly-higher",
        "Section 4, storage",
        "b = the last estimate reduces the memory to O(d) at the expense of slightly higher MSE (here: at most twice).",
        _slightly,
        "Its error is fed back with a factor (d/k − 1)/n per round and diverges where that is 1 or more, as in the "
        "logistic regression with 10 nodes; see feedback in theory.csv.",
    ),
    Claim(
        "others-need-state",
        "Section 4, comparisons",
        "Error feedback, gradient difference and LAG need state at the nodes; Rand-k-Temporal does not.",
        lambda tables: passed(tables, "node-state-ours", "node-state-others"),
    ),
    Claim(
        "top-k-better",
        "Section 4, comparisons",
        "In practice, biased compressors such as Top-k perform better than unbiased ones (here: in training, a lower "
        "loss than Rand-k at the same k, with error feedback and without).",
        lambda tables: compared(
            *(tables, "logistic-variants", "objective", BIASED, ["rand-k"]),
            tables.panels("logistic-variants", split="non-iid"),
        ),
        "About training, where errors average out over rounds; the coordinates that Top-k sends cost bytes besides.",
        needs=(COLOUR,),
    ),
    Claim(
        "bias",
        "Section 4, comparisons",
        "The induced compressor is unbiased; Top-k and rTop-k are not.",
        lambda tables: passed(tables, "unbiased", "biased"),
    ),
)
