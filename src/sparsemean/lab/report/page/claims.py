"""The paper's claims in four groups: reproduced, slips with what is right, contradicted or partly, and still open."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sparsemean.lab.experiments.claims import beyond, draw_checks
from sparsemean.lab.experiments.claims.claim import OWN
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.page.elements import paragraphs
from sparsemean.lab.report.page.verdicts import badge, tone

SLIP = '<span class="badge slip">✎ slip</span>'
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
        "corrections",
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
    """The four groups of the paper's claims, in which tables of earlier versions have a place too."""
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
    return "corrections" if correction else "contradicted"


def tiles(groups: Sequence[Group]) -> list[str]:
    """One link for each group that has claims, with how many."""
    return [
        f'<a class="tile {group.kind}" href="#{group.name}"><b>{len(group.rows)}</b> {html.escape(group.title)}</a>'
        for group in groups
        if group.rows
    ]


def claims_html(groups: Sequence[Group], places: Mapping[str, tuple[str, str]]) -> str:
    """The groups, those with surprises unfolded; ``places``: table → address on the page, and what to call it."""
    return "".join(
        f'<details class="group" id="{group.name}"{" open" if group.unfolded else ""}>'
        f'<summary><span class="badge {group.kind}">{len(group.rows)}</span> {html.escape(group.title)}</summary>'
        f"{paragraphs(group.text, 'caption')}{''.join(_claim(row, places) for row in group.rows)}</details>"
        for group in groups
        if group.rows
    )


def own_claims(claims: ResultTable, places: Mapping[str, tuple[str, str]]) -> str:
    """Our own claims, folded by what they are about; empty where there are none."""
    rows = [row for row in _rows(claims) if row["source"] == OWN]
    subjects = list(dict.fromkeys(row["place"] for row in rows))
    groups = []
    for number, subject in enumerate(subjects):
        own = tuple(row for row in rows if row["place"] == subject)
        counted = Counter(row["verdict"] for row in own).most_common()
        words = f"{', '.join(f'{count} {verdict}' for verdict, count in counted)}."
        groups.append(Group(f"own-{number}", "other", subject, words, rows=own))
    return claims_html(groups, places)


OWN_PLACES = (beyond.PLACE, draw_checks.PLACE)
COLUMNS = ("claim", "place", "where", "verdict", "finding", "outcome", "correction", "source")


def _rows(claims: ResultTable) -> list[dict[str, str]]:
    """One mapping per claim; tables of earlier versions do not say whose a claim is, but where it is made."""
    columns = {name: claims.text(name).tolist() for name in COLUMNS}
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    return [row | {"source": OWN} if row["place"] in OWN_PLACES else row for row in rows]


def _claim(row: Mapping[str, str], places: Mapping[str, tuple[str, str]]) -> str:
    """What the paper says, what came out, what is right; the checks behind a fold."""
    address, called = places.get(row["where"], ("", row["where"]))
    see = f'<a href="{html.escape(address)}">{html.escape(called)}</a>' if address else html.escape(called)
    foot = " · ".join(part for part in (html.escape(row["place"]), see) if part)
    outcome, slip = row["outcome"] or row["finding"], group_of(row["verdict"], row["correction"]) == "corrections"
    right = f'<p class="right"><b>Right:</b> {html.escape(row["correction"])}</p>' if row["correction"] else ""
    checks = (
        f"<details><summary>The checks</summary><p>{html.escape(row['finding'])}</p></details>"
        if row["outcome"] and row["finding"]
        else ""
    )
    said = f'<p class="said">{html.escape(row["claim"])}</p>{right}<p class="outcome">{html.escape(outcome)}</p>'
    mark = SLIP if slip else badge(row["verdict"])
    return f'<article class="claim">{mark}<div>{said}<p class="soft">{foot}</p>{checks}</div></article>'
