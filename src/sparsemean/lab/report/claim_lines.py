"""The claims as lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sparsemean.lab.report.claim_groups import CORRECTIONS, Group, counted, grouped, own_groups
from sparsemean.lab.report.figure.table import ResultTable


def claim_lines(claims: Sequence[Mapping[str, str]]) -> list[str]:
    """A line for each claim, in the groups that the page has, then the totals.

    Parameters
    ----------
    claims
        The rows of ``claims.csv``.
    """
    table = ResultTable.of(claims)
    paper = {f"{len(group.rows)} {group.title}": group for group in grouped(table) if group.rows}
    own = own_groups(table)
    lines = [line for total, group in paper.items() for line in _section(f"The paper's claims, {total}:", group)]
    lines += [line for group in own for line in _section(f"Our own claims, {group.title}: {group.text}", group)]
    totals = {
        "The paper's claims": "; ".join(paper),
        "Our own claims": counted(row for group in own for row in group.rows),
    }
    return lines + [f"{whose}: {total}." for whose, total in totals.items() if total]


def _section(title: str, group: Group) -> list[str]:
    lines = [title]
    for row in group.rows:
        slip = group.name == CORRECTIONS
        lines.append(f"{'correction' if slip else row['verdict']:>19}  {row['claim']}")
        lines += [f"{'':>19}  Right: {row['correction']}"] if slip else []
    return [*lines, ""]
