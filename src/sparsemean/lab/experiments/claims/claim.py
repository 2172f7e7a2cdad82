"""A claim: a sentence of the paper, and the checks by which tables judge it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparsemean._version import __version__
from sparsemean.lab.experiments.claims.check import Check
from sparsemean.lab.experiments.claims.evidence import Tables
from sparsemean.lab.tables import TableRow

REPRODUCED, PARTLY, NOT, NOT_RUN = "reproduced", "partly", "not reproduced", "not run"
COLUMNS = (
    *("name", "place", "claim", "verdict", "finding", "where", "holds", "checks"),
    *("weakest", "value", "low", "high", "relation", "limit", "evidence", "version"),
)
SHOWN, LISTED = 3, 12  # checks that the finding and the evidence spell out


@dataclass(frozen=True)
class Claim:
    """A claim and its judge.

    Parameters
    ----------
    name
        Its name in ``claims.csv``.
    place
        Where the paper makes it.
    sentence
        The claim in one sentence.
    judge
        Makes the checks from the tables of a reproduction.
    remark
        What a reader of the verdict should know besides.
    """

    name: str
    place: str
    sentence: str
    judge: Callable[[Tables], list[Check]]
    remark: str = ""

    def row(self, tables: Tables) -> TableRow:
        """The claim, the verdict and the numbers behind it.

        ``weakest`` is the check that speaks most against the claim, ``where`` the table it rests on. A claim of which
        a table is missing is not run, whatever the others say.
        """
        tables.asked.clear()
        checks = sorted(self.judge(tables), key=_support)
        missing = [figure for figure in tables.asked if not tables.has(figure)]
        judged = NOT_RUN if missing else verdict(checks)
        row: TableRow = {"name": self.name, "place": self.place, "claim": self.sentence, "verdict": judged}
        row |= {"finding": self._finding(checks, missing), "where": min(tables.asked, key=_rank, default="")}
        row |= {"holds": sum(check.holds is True for check in checks), "checks": len(checks)}
        if checks:
            weakest = checks[0]
            row |= {"weakest": weakest.what, "value": weakest.value, "low": weakest.low, "high": weakest.high}
            row |= {"relation": weakest.relation, "limit": weakest.limit}
        return {**row, "evidence": "; ".join(map(str, checks[:LISTED])), "version": __version__}

    def _finding(self, checks: Sequence[Check], missing: Sequence[str]) -> str:
        """In a few words, those that speak against it first."""
        if missing:
            return f"Tables still to be made: {', '.join(missing)}."
        holding = sum(check.holds is True for check in checks)
        counted = f"{holding} of {len(checks)} checks hold. Weakest: " if len(checks) > SHOWN else ""
        numbers = counted + "; ".join(map(str, checks[:SHOWN])) + "." if checks else ""
        return f"{numbers} {self.remark}".strip()


def _support(check: Check) -> tuple[int, float]:
    """Least for what speaks most against the claim."""
    return ((False, None, True).index(check.holds), check.margin)


def _rank(figure: str) -> bool:
    """Figures before the table of theory."""
    return figure == "theory"


def verdict(checks: Sequence[Check]) -> str:
    """Reproduced where every check holds, not where none does, partly in between; not run without any.

    >>> verdict([])
    'not run'
    """
    if not checks:
        return NOT_RUN
    holding = sum(check.holds is True for check in checks)
    return REPRODUCED if holding == len(checks) else PARTLY if holding else NOT
