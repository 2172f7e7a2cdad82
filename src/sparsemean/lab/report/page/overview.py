"""What a reproduction was run on, and what that means for what it can say: the first words of its page."""

from __future__ import annotations

from collections.abc import Mapping

from sparsemean.lab.experiments.claims.claim import COLOUR, IMAGES
from sparsemean.lab.report.figure.labels import enumeration, setting_label
from sparsemean.lab.report.figure.table import ResultTable

PAPER = (
    "The experiments and claims of “Leveraging Spatial and Temporal Correlations in Sparsified Mean Estimation” "
    "(Jhunjhunwala, Mallick, Gadhikar, Kadhe and Joshi, NeurIPS 2021), run again with sparsemean, through the bytes "
    "that nodes would send."
)
TASKS = {"power-iteration": ("power iteration", IMAGES), "kmeans": ("K-means", IMAGES)}
TASKS |= {"logistic": ("logistic regression", COLOUR)}
"""Table → what it is called, and the paper's data set."""


def what_was_run(tables: Mapping[str, ResultTable]) -> str:
    """Two or three paragraphs: the paper, the data of this run beside the paper's, and what follows from that."""
    known = {name: tables[name] for name in TASKS if name in tables}
    if not known:
        return (
            f"{PAPER}\n\nThis run has none of the learning tasks, only what is shown below; all other claims are open."
        )
    said = enumeration([f"{TASKS[name][0]} on {_data(table)}" for name, table in known.items()])
    seeds = max(len(table.distinct("seed")) for table in known.values())
    repeated = f", each with {seeds} seeds" if seeds > 1 else ""
    small = [name for name, table in known.items() if table.distinct("data") != [TASKS[name][1]]]
    run = f"This run: {said}{repeated}."
    if not small:
        return f"{PAPER}\n\n{run} These are the data of the paper, so every claim about them can be judged."
    theirs = enumeration([f"{setting_label('data', IMAGES)} at 100 nodes", f"{setting_label('data', COLOUR)} at 10"])
    run = run.replace("This run:", "This is a run on small data:")
    means = (
        f"What that means: the paper used {theirs}. Formulas, simulations and the case study (Figures 2a, 4 and 6) are "
        "the paper's own here, and are judged. What it says of its image sets this run can support, but not "
        "contradict: where the small data disagree, the claim needs the full data."
    )
    return f"{PAPER}\n\n{run}\n\n{means}"


def _data(table: ResultTable) -> str:
    """Data sets and numbers of nodes.

    >>> _data(ResultTable.of([{"data": "digits", "nodes": 40}]))
    'Digits at 40 nodes'
    """
    names = enumeration([setting_label("data", name) for name in table.distinct("data")])
    nodes = enumeration([setting_label("nodes", count) for count in table.distinct("nodes")])
    return f"{names} at {nodes}" if nodes else names
