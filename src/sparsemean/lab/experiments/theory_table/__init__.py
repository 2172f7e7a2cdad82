"""Every lemma and theorem of the paper, measured through the library and compared with the exact value or bound."""

from __future__ import annotations

from collections.abc import Callable

from sparsemean.errors import InvalidInput
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.experiments.theory_table import descent, facts, server, spatial, temporal
from sparsemean.lab.tables import TableRow

COLUMNS = ("statement", "setting", "measured", "se", "relation", "exact", "z", "passed", "seed", "trials", "version")

STATEMENTS: dict[str, Callable[[int, int], list[TableRow]]] = {
    "lemma-1": spatial.lemma_1,
    "lemma-2": spatial.lemma_2,
    "theorem-1": spatial.theorem_1,
    "theorem-1-proof": spatial.cross_terms,
    "theorem-2": spatial.theorem_2,
    "theorem-2-whole": spatial.whole_vectors,
    "average": spatial.average,
    "theorem-3": temporal.theorem_3,
    "theorem-3-predicted": temporal.predicted,
    "feedback": temporal.feedback,
    "theorem-4": descent.theorem_4,
    "optimum": descent.optimum,
    "server": server.own_estimates,
    "facts": facts.facts,
}
"""Each takes a number of trials and a seed."""


def measure(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """The rows of the setting's ``statement``."""
    name = str(setting.option("statement", ""))
    if name not in STATEMENTS:
        raise InvalidInput(f"no statement is named {name!r}; known are {', '.join(STATEMENTS)}")
    return STATEMENTS[name](int(setting.option("trials", 1000)), setting.seed)
