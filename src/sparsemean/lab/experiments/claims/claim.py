"""A sentence of the paper, and how our tables judge it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparsemean._version import __version__
from sparsemean.lab.experiments.claims.check import Check
from sparsemean.lab.experiments.claims.evidence import Tables
from sparsemean.lab.experiments.setting import Row

REPRODUCED, PARTLY, NOT, NOT_RUN = "reproduced", "partly", "not reproduced", "not run"
COLUMNS = (
    *("claim", "place", "statement", "verdict", "holds", "checks"),
    *("weakest", "value", "low", "high", "relation", "limit", "evidence", "remark", "version"),
)
SHOWN = 8  # checks that the evidence spells out


@dataclass(frozen=True)
class Claim:
    """``remark`` is what a reader of the verdict should know besides."""

    name: str
    place: str
    statement: str
    judge: Callable[[Tables], list[Check]]
    remark: str = ""

    def row(self, tables: Tables) -> Row:
        """The claim, the verdict and the numbers behind it; ``weakest`` is the check that speaks most against it.

        A claim of which a table is missing is not run, whatever the others say.
        """
        tables.missing.clear()
        checks = self.judge(tables)
        missing = sorted(tables.missing)
        judged = NOT_RUN if missing else verdict(checks)
        told: Row = {"claim": self.name, "place": self.place, "statement": self.statement, "verdict": judged}
        counts: Row = {"holds": sum(check.holds is True for check in checks), "checks": len(checks)}
        numbers: Row = {}
        if checks:
            weakest = min(checks, key=lambda check: check.margin)
            numbers = {"weakest": weakest.what, "value": weakest.value, "low": weakest.low, "high": weakest.high}
            numbers |= {"relation": weakest.relation, "limit": weakest.limit}
        words: Row = {"evidence": evidence(checks, missing), "remark": self.remark, "version": __version__}
        return {**told, **counts, **numbers, **words}


def verdict(checks: Sequence[Check]) -> str:
    """Reproduced where every check holds, not where none does, partly in between; not run without any.

    >>> verdict([])
    'not run'
    """
    if not checks:
        return NOT_RUN
    holding = sum(check.holds is True for check in checks)
    return REPRODUCED if holding == len(checks) else PARTLY if holding else NOT


def evidence(checks: Sequence[Check], missing: Sequence[str] = ()) -> str:
    """The checks in words, those that speak most against the claim first; before them the tables still to be made."""
    wanted = [f"not yet run: {', '.join(missing)}"] if missing else []
    ordered = sorted(checks, key=lambda check: check.margin)
    more = [f"and {len(ordered) - SHOWN} more that hold better"] if len(ordered) > SHOWN else []
    return "; ".join([*wanted, *(str(check) for check in ordered[:SHOWN]), *more])
