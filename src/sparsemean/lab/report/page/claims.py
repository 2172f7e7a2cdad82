"""The paper's claims on the page: a fold for each group, and what came out of each claim."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from sparsemean.lab.report.claim_groups import CORRECTIONS, Group, group_of
from sparsemean.lab.report.page.elements import paragraphs
from sparsemean.lab.report.page.verdicts import badge

SLIP = '<span class="badge slip">✎ slip</span>'


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


def _claim(row: Mapping[str, str], places: Mapping[str, tuple[str, str]]) -> str:
    """What the paper says, what came out, what is right; the checks behind a fold."""
    address, called = places.get(row["where"], ("", row["where"]))
    see = f'<a href="{html.escape(address)}">{html.escape(called)}</a>' if address else html.escape(called)
    foot = " · ".join(part for part in (html.escape(row["place"]), see) if part)
    outcome, slip = row["outcome"] or row["finding"], group_of(row["verdict"], row["correction"]) == CORRECTIONS
    right = f'<p class="right"><b>Right:</b> {html.escape(row["correction"])}</p>' if row["correction"] else ""
    checks = (
        f"<details><summary>The checks</summary><p>{html.escape(row['finding'])}</p></details>"
        if row["outcome"] and row["finding"]
        else ""
    )
    said = f'<p class="said">{html.escape(row["claim"])}</p>{right}<p class="outcome">{html.escape(outcome)}</p>'
    mark = SLIP if slip else badge(row["verdict"])
    return f'<article class="claim">{mark}<div>{said}<p class="soft">{foot}</p>{checks}</div></article>'
