"""The measures of a setting, one a file: each takes a setting and returns rows."""

from __future__ import annotations

from collections.abc import Callable

from sparsemean.lab.experiments import theory_table
from sparsemean.lab.experiments.measures import correlated, dither, encode_cost, first_round, ratio_grid, rounds, within
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.tables import TableRow

MEASURES: dict[str, Callable[[Setting, str | None], list[TableRow]]] = {
    "alike": correlated.measure,
    "alike-means": correlated.averaged,
    "dither": dither.measure,
    "encode-cost": encode_cost.measure,
    "first-round": first_round.measure,
    "ratio-grid": ratio_grid.measure,
    "rounds": rounds.measure,
    "theory": theory_table.measure,
    "within": within.measure,
    "within-mean": within.averaged,
}
"""By the option ``measure`` of a setting; the default is ``rounds``. The names are part of settings on disk."""
