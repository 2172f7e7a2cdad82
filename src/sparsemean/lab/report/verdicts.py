"""Claims and checks as tables whose verdicts can be seen at a glance: colour, sign and word say the same."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable

from sparsemean.lab.report.tables import Table
from sparsemean.lab.report.words import number

SIGNS = {"good": "✓", "mixed": "≈", "bad": "✗", "other": "•"}

_BAD = ("not ", "no", "fail", "false", "refut", "contradict", "wrong", "reject", "diverge", "differ")
_MIXED = ("part", "mixed", "depend", "mostly", "inconclusive", "unclear", "weak", "limited", "almost", "sometimes")
_GOOD = ("confirm", "hold", "pass", "true", "yes", "reproduc", "agree", "supported", "ok")


def tone(verdict: str) -> str:
    """good, mixed, bad, or other.

    >>> [tone(word) for word in ("confirmed", "holds in part", "not reproduced", "True", "False", "see text")]
    ['good', 'mixed', 'bad', 'good', 'bad', 'other']
    """
    word = verdict.strip().lower()
    if any(part in word for part in _MIXED):
        return "mixed"
    if word.startswith(_BAD) or " not " in f" {word} ":
        return "bad"
    return "good" if word.startswith(_GOOD) else "other"


def badge(verdict: str, text: str | None = None) -> str:
    """The verdict as HTML."""
    kind = tone(verdict)
    return f'<span class="badge {kind}">{SIGNS[kind]} {html.escape(text or verdict)}</span>'


def counts(verdicts: Iterable[str]) -> list[str]:
    """One badge per verdict that occurs, with how often; best first."""
    times = Counter(verdict.strip() for verdict in verdicts if verdict.strip())
    ranked = sorted(times, key=lambda verdict: (list(SIGNS).index(tone(verdict)), verdict))
    return [badge(verdict, f"{times[verdict]} {verdict}") for verdict in ranked]


def claims_table(claims: Table, figures: Iterable[str]) -> str:
    """Claim, finding, verdict; a place that is a figure of this page is a link to it."""
    known = set(figures)
    rows = []
    for claim, where, finding, verdict in zip(
        *(claims.text(name).tolist() for name in ("claim", "where", "finding", "verdict")), strict=True
    ):
        place = html.escape(where)
        link = f'<a href="#figure-{place}">{place}</a>' if where in known else place
        cells = [f"<td>{badge(verdict)}", f"<td><strong>{html.escape(claim)}</strong>", f"<td>{html.escape(finding)}"]
        rows.append("".join([*cells, f'<td data-name="where">{link}' if where else "<td>"]))
    return grid(["verdict", "claim", "what we found", "where"], rows)


def theory_table(theory: Table) -> str:
    """Every formula beside what was measured, in standard errors of the difference."""
    rows = []
    for statement, setting, passed in zip(
        *(theory.text(name).tolist() for name in ("statement", "setting", "passed")), strict=True
    ):
        rows.append(f"<td>{badge(verdict_of(passed))}<td>{html.escape(statement)}<td>{html.escape(setting)}")
    for name in ("measured", "exact", "z"):
        cells = [numeric(text) for text in theory.text(name).tolist()]
        rows = [f'{row}<td class="number" data-name="{name}">{cell}' for row, cell in zip(rows, cells, strict=True)]
    return grid(["verdict", "statement", "setting", "measured", "exact", "z"], rows, numbers=("measured", "exact", "z"))


def verdict_of(passed: str) -> str:
    """The word for a cell that says whether a check passed.

    >>> verdict_of("True"), verdict_of("0")
    ('passed', 'failed')
    """
    return {"true": "passed", "1": "passed", "false": "failed", "0": "failed"}.get(passed.strip().lower(), passed)


def numeric(text: str) -> str:
    """A cell of a table as a number for people, or as it stands where it is none."""
    try:
        return number(float(text)) if text else "–"
    except ValueError:
        return html.escape(text)


def grid(heads: Iterable[str], rows: Iterable[str], numbers: Iterable[str] = (), cards: bool = True) -> str:
    """A table; on a narrow screen its rows become cards, or it scrolls."""
    right = set(numbers)
    head = "".join(f"<th{' class=number' if name in right else ''}>{html.escape(name)}" for name in heads)
    body = "".join(f"<tr>{row}" for row in rows)
    kind = ' class="cards"' if cards else ""
    return f'<div class="scroll" tabindex="0"><table{kind}><thead><tr>{head}<tbody>{body}</table></div>'
