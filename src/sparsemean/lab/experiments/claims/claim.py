"""A claim: a sentence of the paper, and the checks by which tables judge it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparsemean._version import __version__
from sparsemean.lab.experiments.claims.check import Check
from sparsemean.lab.experiments.claims.evidence import Tables
from sparsemean.lab.tables import TableRow

REPRODUCED, PARTLY, CONTRADICTED, INCONCLUSIVE = "reproduced", "partly", "contradicted", "inconclusive"
FULL_DATA, NOT_RUN = "needs the full data", "not run"
COLUMNS = (
    *("name", "place", "source", "claim", "verdict", "outcome", "correction", "finding", "where", "holds", "checks"),
    *("weakest", "value", "low", "high", "relation", "limit", "evidence", "version"),
)
PAPER, OWN = "paper", "own"
IMAGES, COLOUR = "fashion-mnist", "cifar-10"  # the data sets of the paper
TITLES = {IMAGES: "Fashion-MNIST", COLOUR: "CIFAR-10"}
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
    correction
        What is right instead, where the sentence is a slip of the paper.
    why
        Why it came out so, where not all checks hold.
    needs
        The data sets that the sentence speaks of. Without them a run cannot contradict it: its verdict is then that it
        needs the full data. Empty where any data can.
    full_size
        Whether only a full run has the sizes that the sentence speaks of.
    seeds
        The fewest seeds that it is judged by; a run of fewer is inconclusive.
    source
        Whether the claim is the paper's or our own.
    """

    name: str
    place: str
    sentence: str
    judge: Callable[[Tables], list[Check]]
    remark: str = ""
    correction: str = ""
    why: str = ""
    needs: tuple[str, ...] = ()
    full_size: bool = False
    seeds: int = 0
    source: str = PAPER

    def row(self, tables: Tables) -> TableRow:
        """The claim, the verdict and the numbers behind it.

        ``outcome`` is what came out as a sentence, ``weakest`` the check that speaks most against the claim, ``where``
        the table it rests on. A claim of which a table is missing is not run, whatever the others say.
        """
        tables.asked.clear()
        checks = sorted(self.judge(tables), key=_support)
        missing = [figure for figure in tables.asked if not tables.has(figure)]
        judged, told = self._judged(checks, missing, tables)
        row: TableRow = {"name": self.name, "place": self.place, "source": self.source, "claim": self.sentence}
        row |= {"verdict": judged, "outcome": told, "correction": self.correction}
        row |= {"finding": self._finding(checks, missing), "where": min(tables.asked, key=_rank, default="")}
        row |= {"holds": sum(check.holds is True for check in checks), "checks": len(checks)}
        if checks:
            weakest = checks[0]
            row |= {"weakest": weakest.what, "value": weakest.value, "low": weakest.low, "high": weakest.high}
            row |= {"relation": weakest.relation, "limit": weakest.limit}
        return {**row, "evidence": "; ".join(map(str, checks[:LISTED])), "version": __version__}

    def _judged(self, checks: Sequence[Check], missing: Sequence[str], tables: Tables) -> tuple[str, str]:
        """The verdict, and what came out as a sentence."""
        absent = [name for name in self.needs if name not in tables.distinct("data", tables.asked)]
        seeds, judged = len(tables.distinct("seed", tables.asked)), verdict(checks)
        if missing:
            return NOT_RUN, f"Not measured here: this run did not make {', '.join(missing)}."
        if seeds < self.seeds:
            return INCONCLUSIVE, f"This run has {seeds} seeds, and this is judged from {self.seeds} on."
        if not checks and absent:
            return (
                FULL_DATA,
                f"This is about {' and '.join(TITLES[name] for name in absent)}, which this run did not use.",
            )
        if not checks and self.full_size:
            return FULL_DATA, "This run is smaller than what this is about."
        if absent and judged in (PARTLY, CONTRADICTED, INCONCLUSIVE):
            judged = FULL_DATA
        why = f" {self.why}" if self.why and judged in (PARTLY, CONTRADICTED) else ""
        return judged, outcome(judged, checks) + why

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
    """Reproduced where every check holds; partly or contradicted where one fails; inconclusive where noise hides it.

    >>> verdict([])
    'not run'
    """
    answers = [check.holds for check in checks]
    if False in answers:
        return PARTLY if True in answers else CONTRADICTED
    if None in answers:
        return INCONCLUSIVE
    return REPRODUCED if answers else NOT_RUN


def outcome(judged: str, checks: Sequence[Check]) -> str:
    """What came out, as a sentence; the check that speaks most against the claim comes first among ``checks``."""
    if not checks:
        return "Nothing here measures it."
    answers = [check.holds for check in checks]
    counted = f"{answers.count(True)} of {len(checks)} checks hold{'s' if answers.count(True) == 1 else ''}"
    told = checks[0].sentence
    if judged == REPRODUCED:
        return f"All {len(checks)} checks hold. The closest call: {told}." if len(checks) > 1 else f"{_begun(told)}."
    small = "On the small data of this run, which the paper does not speak of: " if judged == FULL_DATA else ""
    if False not in answers:
        count = f"{counted}, the others are within the noise of so few seeds" if True in answers else "Within the noise"
        return f"{small}{count if not small else count[:1].lower() + count[1:]}: {told}."
    if len(checks) == 1:
        return f"{small}{told if small else _begun(told)}."
    count = (
        counted
        if True in answers
        else f"none of {len(checks)} checks holds"
        if small
        else (f"None of {len(checks)} checks holds")
    )
    return f"{small}{count}. What speaks most against it: {told}."


def _begun(text: str) -> str:
    """With a capital letter."""
    return text[:1].upper() + text[1:]
