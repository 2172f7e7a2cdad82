"""All claims of the paper, and our own past it, judged by the tables of a reproduction."""

from __future__ import annotations

from pathlib import Path

from sparsemean.lab.experiments.claims import (
    appendix_c,
    appendix_d,
    beyond,
    case_study,
    correlation,
    designed,
    epochs,
    evaluation,
    frontier,
    introduction,
    simulation,
    spatial,
    temporal,
)
from sparsemean.lab.experiments.claims.claim import COLUMNS, Claim
from sparsemean.lab.experiments.claims.evidence import Tables
from sparsemean.lab.tables import write_table

__all__ = ["CLAIMS", "Claim", "Tables", "judge_all"]

CLAIMS: tuple[Claim, ...] = (
    *introduction.CLAIMS,
    *spatial.CLAIMS,
    *simulation.CLAIMS,
    *correlation.CLAIMS,
    *temporal.CLAIMS,
    *case_study.CLAIMS,
    *evaluation.CLAIMS,
    *appendix_c.CLAIMS,
    *appendix_d.CLAIMS,
    *beyond.CLAIMS,
    *designed.CLAIMS,
    *epochs.CLAIMS,
    *frontier.CLAIMS,
)
"""About in the paper's order, then our own."""


def judge_all(tables: Path) -> Path:
    """Judge every claim by the tables in the folder, and write ``claims.csv`` beside them."""
    found = Tables(tables)
    path = tables / "claims.csv"
    write_table(path, [claim.row(found) for claim in CLAIMS], COLUMNS)
    return path
