"""The settings of every figure, of the paper and past it, at the paper's size or a quick one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sparsemean.errors import InvalidInput
from sparsemean.lab.experiments.catalogue import (
    beyond,
    correlation,
    designed,
    encoding,
    equal_bytes,
    frontier,
    learning,
    memory,
)
from sparsemean.lab.experiments.catalogue.size import FULL, QUICK, ExperimentSize
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.experiments.theory_table import STATEMENTS

__all__ = ["FIGURES", "FULL", "QUICK", "THEORY", "ExperimentSize", "catalogue"]

THEORY = "theory"


def _theory(size: ExperimentSize, seed: int) -> list[Setting]:
    """One setting per statement, whatever the seeds: its trials are its repetitions."""
    if seed:
        return []
    options = (("measure", "theory"), ("trials", size.theory_trials))
    return [
        Setting(THEORY, THEORY, "synthetic", "", None, seed, options=(*options, ("statement", name)))
        for name in STATEMENTS
    ]


FIGURES: dict[str, Callable[[ExperimentSize, int], list[Setting]]] = {
    THEORY: _theory,
    "mse-vs-ratio": correlation.mse_vs_ratio,
    "ratio-first-round": correlation.ratio_first_round,
    "ratio-rounds": correlation.ratio_rounds,
    "quadratic": learning.quadratic,
    "power-iteration": learning.power_iteration,
    "kmeans": learning.kmeans,
    "logistic": learning.logistic,
    "logistic-variants": learning.logistic_variants,
    "shared-memory": memory.shared_memory,
    "variants": memory.variants,
    "encode-cost": encoding.encode_cost,
    "power-iteration-bytes": equal_bytes.power_iteration_bytes,
    "kmeans-bytes": equal_bytes.kmeans_bytes,
    "beyond-power": beyond.beyond_power,
    "beyond-kmeans": beyond.beyond_kmeans,
    "beyond-logistic": beyond.beyond_logistic,
    "few-bits": beyond.few_bits,
    "few-bits-alike": beyond.few_bits_correlated,
    "thin-links": beyond.thin_links,
    "designed-correlation": designed.designed_correlation,
    "designed-equal": designed.designed_equal,
    "designed-weights": designed.designed_weights,
    "designed-power": designed.designed_power,
    "designed-kmeans": designed.designed_kmeans,
    "designed-weather": designed.designed_weather,
    "designed-logistic": designed.designed_logistic,
    "designed-batches": designed.designed_batches,
    "designed-change": designed.designed_change,
    "designed-dither": designed.designed_dither,
    "frontier-nodes": frontier.frontier_nodes,
    "frontier-gaussian": frontier.frontier_gaussian,
    "frontier-network": frontier.frontier_network,
}
"""Each takes a size and a seed."""


def catalogue(
    quick: bool = False, seeds: int | None = None, figures: Sequence[str] | None = None
) -> dict[str, list[Setting]]:
    """Figure → its settings; ``seeds`` is how many, instead of the size's own number.

    >>> len(catalogue(quick=True, seeds=2, figures=["quadratic"])["quadratic"])
    20
    """
    size = QUICK if quick else FULL
    wanted = list(FIGURES) if figures is None else list(dict.fromkeys(figures))
    if unknown := [name for name in wanted if name not in FIGURES]:
        raise InvalidInput(f"there is no figure {unknown[0]!r}; known are {', '.join(FIGURES)}")
    count = size.seeds if seeds is None else seeds
    if count < 1:
        raise InvalidInput(f"seeds is how many there are, at least 1; got {seeds!r}")
    return {name: [s for seed in range(count) for s in FIGURES[name](size, seed)] for name in wanted}
