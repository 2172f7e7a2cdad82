"""What can be measured: each file takes a setting and returns rows."""

from __future__ import annotations

from collections.abc import Callable

from sparsemean.lab.experiments import theory_table
from sparsemean.lab.experiments.measures import alike, first_round, ratio_grid, rounds
from sparsemean.lab.experiments.setting import Row, Setting

MEASURES: dict[str, Callable[[Setting, str | None], list[Row]]] = {
    "alike": alike.measure,
    "first-round": first_round.measure,
    "ratio-grid": ratio_grid.measure,
    "rounds": rounds.measure,
    "theory": theory_table.measure,
}
"""By the option ``measure`` of a setting; without one its task is played round by round."""
