"""Claims of Section 5: power iteration, K-means and logistic regression."""

from __future__ import annotations

from collections.abc import Sequence

from sparsemean.lab.experiments.catalogue.schemes import AVG, BASELINES, TEMPORAL
from sparsemean.lab.experiments.claims.check import Check
from sparsemean.lab.experiments.claims.claim import Claim
from sparsemean.lab.experiments.claims.evidence import Tables, Where, compared
from sparsemean.lab.experiments.claims.introduction import MAIN


def beaten(
    tables: Tables,
    figure: str,
    ours: Sequence[str],
    panels: Sequence[Where],
    columns: Sequence[str] = ("objective", "mse"),
    limit: float = 1.0,
) -> list[Check]:
    """Ours against all baselines, in every column."""
    return [check for column in columns for check in compared(tables, figure, column, ours, BASELINES, panels, limit)]


def _main(tables: Tables, scheme: str) -> list[Check]:
    return [check for figure, panel in MAIN.items() for check in beaten(tables, figure, [scheme], [panel])]


def _not_beaten(tables: Tables) -> list[Check]:
    """Spatial's loss is not clearly below Wangni's, the best baseline, in logistic regression."""
    return compared(tables, "logistic", "objective", [AVG], ["wangni"], [MAIN["logistic"]], relation="not <")


CLAIMS = (
    Claim(
        "power-iteration",
        "Section 5, power iteration",
        "With 10× compression and IID data, Spatial(Avg) and Temporal outperform all baselines in the distance to the "
        "eigenvector and in the error of the mean.",
        lambda tables: beaten(tables, "power-iteration", (AVG, TEMPORAL), [MAIN["power-iteration"]]),
    ),
    Claim(
        "kmeans",
        "Section 5, K-means",
        "With 10× compression and IID data, Spatial(Avg) and Temporal outperform all baselines in the K-means "
        "objective and in the error of the centres.",
        lambda tables: beaten(tables, "kmeans", (AVG, TEMPORAL), [MAIN["kmeans"]]),
        "A cluster that a bad estimate left without rows has no error any more, so read the objective first.",
    ),
    Claim(
        "logistic-loss",
        "Section 5, logistic regression",
        "With 100× compression, Rand-k-Temporal has the lowest training loss of all sparsification schemes.",
        lambda tables: compared(*(tables, "logistic", "objective", [TEMPORAL], (*BASELINES, AVG), [MAIN["logistic"]])),
    ),
    Claim(
        "logistic-error",
        "Section 5, logistic regression",
        "With 100× compression, Rand-k-Temporal has an order-wise lower error of the mean (here: a tenth) than all "
        "other schemes as training progresses.",
        lambda tables: compared(
            *(tables, "logistic", "mse", [TEMPORAL], (*BASELINES, AVG), [MAIN["logistic"]]), limit=0.1
        ),
    ),
    Claim(
        "logistic-spatial",
        "Section 5, logistic regression",
        "Rand-k-Spatial does not beat the baselines in logistic regression.",
        _not_beaten,
    ),
    Claim(
        "temporal-all",
        "Figure 5, caption",
        "Rand-k-Temporal outperforms the baselines in all three tasks.",
        lambda tables: _main(tables, TEMPORAL),
    ),
    Claim(
        "spatial-two-thirds",
        "Figure 5, caption",
        "Rand-k-Spatial outperforms the baselines in two of the three tasks.",
        lambda tables: [
            *beaten(tables, "power-iteration", [AVG], [MAIN["power-iteration"]]),
            *beaten(tables, "kmeans", [AVG], [MAIN["kmeans"]]),
            *_not_beaten(tables),
        ],
    ),
)
