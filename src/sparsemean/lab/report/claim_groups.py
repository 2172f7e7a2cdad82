"""Claims in groups by what came out; the page and the terminal show the same ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from sparsemean.lab.experiments.claims import beyond, draw_checks
from sparsemean.lab.experiments.claims.claim import OWN
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.page.verdicts import tone

CORRECTIONS = "corrections"
OPEN_WORDS = ("inconclusive", "unclear")


@dataclass(frozen=True)
class Group:
    """Claims that came out alike.

    Parameters
    ----------
    name
        Its address on the page.
    kind
        The tone of its colour.
    title, text
        What it is called, and what that means.
    unfolded
        Whether it is in sight from the start.
    rows
        The claims, as columns by name.
    """

    name: str
    kind: str
    title: str
    text: str
    unfolded: bool = False
    rows: tuple[Mapping[str, str], ...] = ()


GROUPS = (
    Group(
        "reproduced",
        "good",
        "reproduced",
        "Every check of these claims holds.",
    ),
    Group(
        CORRECTIONS,
        "slip",
        "corrections of the paper",
        "Slips in formulas and wording that leave the paper's results as they are, each with what is right instead.",
        True,
    ),
    Group(
        "contradicted",
        "bad",
        "contradicted or partly",
        "Measured, and not so, or not everywhere.",
        True,
    ),
    Group(
        "open",
        "other",
        "need the full data, or inconclusive",
        "This run cannot decide: the claim speaks of data that it did not have, noise hides the answer, or nothing "
        "measures it.",
    ),
)


def grouped(claims: ResultTable) -> tuple[Group, ...]:
    """The paper's claims in four groups, in which tables of earlier versions have a place too."""
    rows = [row for row in _rows(claims) if row["source"] != OWN]
    return tuple(
        replace(group, rows=tuple(row for row in rows if group_of(row["verdict"], row["correction"]) == group.name))
        for group in GROUPS
    )


def group_of(verdict: str, correction: str = "") -> str:
    """The name of the group that a verdict belongs to.

    >>> [group_of(word) for word in ("reproduced", "partly", "contradicted", "not run", "inconclusive")]
    ['reproduced', 'contradicted', 'contradicted', 'open', 'open']
    >>> group_of("contradicted", "what is right"), group_of("needs the full data")
    ('corrections', 'open')
    """
    kind = tone(verdict)
    if kind == "good":
        return "reproduced"
    if kind == "other" or any(word in verdict.lower() for word in OPEN_WORDS):
        return "open"
    return CORRECTIONS if correction else "contradicted"


def own_groups(claims: ResultTable) -> tuple[Group, ...]:
    """Our own claims in a group for each subject; empty where there are none."""
    rows = [row for row in _rows(claims) if row["source"] == OWN]
    subjects: dict[str, list[Mapping[str, str]]] = {}
    for row in rows:
        subjects.setdefault(row["place"], []).append(row)
    return tuple(
        Group(f"own-{number}", "other", subject, f"{counted(own)}.", rows=tuple(own))
        for number, (subject, own) in enumerate(subjects.items())
    )


def counted(rows: Iterable[Mapping[str, str]]) -> str:
    """How many claims have each verdict.

    >>> counted([{"verdict": "partly"}, {"verdict": "needs the full data"}, {"verdict": "needs the full data"}])
    '2 need the full data, 1 partly'
    """
    found = Counter(row["verdict"] for row in rows).most_common()
    return ", ".join(
        f"{count} {verdict.replace('needs', 'need') if count > 1 else verdict}" for verdict, count in found
    )


OWN_PLACES = (beyond.PLACE, draw_checks.PLACE)
COLUMNS = ("claim", "place", "where", "verdict", "finding", "outcome", "correction", "source")


def _rows(claims: ResultTable) -> list[dict[str, str]]:
    """One mapping per claim; tables of earlier versions do not say whose a claim is, but where it is made."""
    columns = {name: claims.text(name).tolist() for name in COLUMNS}
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return [row | {"source": OWN} if row["place"] in OWN_PLACES else row for row in rows]
