"""Verdicts, and the table of formulas; colour, sign and word show each verdict."""

from __future__ import annotations

import html

from sparsemean.lab.numbers import page_number, parse_number
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.page.elements import grid

FEW = 12
"""Up to so many rows are shown unfolded."""
SIGNS = {"good": "✓", "mixed": "≈", "bad": "✗", "other": "•"}

_OTHER = ("not run", "not judged", "not tested", "skipped", "unknown")
_BAD = ("not ", "no", "fail", "false", "refut", "contradict", "wrong", "reject", "diverge", "differ")
_MIXED = ("part", "mixed", "depend", "mostly", "inconclusive", "unclear", "weak", "limited", "almost", "sometimes")
_GOOD = ("confirm", "hold", "pass", "true", "yes", "reproduc", "agree", "supported", "ok")


def tone(verdict: str) -> str:
    """The tone of a verdict: good, mixed, bad, or other.

    >>> [tone(word) for word in ("confirmed", "holds in part", "not reproduced", "True", "False", "not run")]
    ['good', 'mixed', 'bad', 'good', 'bad', 'other']
    """
    word = verdict.strip().lower()
    if word.startswith(_OTHER):
        return "other"
    if any(part in word for part in _MIXED):
        return "mixed"
    if word.startswith(_BAD) or " not " in f" {word} ":
        return "bad"
    return "good" if word.startswith(_GOOD) else "other"


def badge(verdict: str, text: str | None = None) -> str:
    """The verdict as HTML."""
    kind = tone(verdict)
    return f'<span class="badge {kind}">{SIGNS[kind]} {html.escape(text or verdict)}</span>'


def theory_table(theory: ResultTable) -> str:
    """Every formula beside what was measured; where most passed, those that did not come first, the rest folded."""
    heads = ["verdict", "statement", "setting", "measured", "relation", "exact", "z"]
    columns = {name: theory.text(name).tolist() for name in (*heads[1:], "passed")}
    rows: dict[bool, list[str]] = {False: [], True: []}
    for i, passed in enumerate(columns["passed"]):
        verdict = verdict_of(passed)
        row = f'<td>{badge(verdict)}<td class="wide">{html.escape(columns["statement"][i])}'
        row += f'<td class="wide">{html.escape(columns["setting"][i])}'
        row += f'<td class="number" data-name="measured">{numeric(columns["measured"][i])}'
        row += f'<td data-name="exact">{html.escape(columns["relation"][i] or "=")} {numeric(columns["exact"][i])}'
        rows[verdict == "passed"].append(f'{row}<td class="number" data-name="z">{numeric(columns["z"][i])}')
    heads.remove("relation")
    right = ("measured", "z")
    if len(rows[True]) <= FEW:
        return grid(heads, rows[False] + rows[True], right)
    shown = grid(heads, rows[False], right) if rows[False] else ""
    folded = grid(heads, rows[True], right)
    return f"{shown}<details><summary>{len(rows[True])} that passed</summary>{folded}</details>"


def verdict_of(passed: str) -> str:
    """The word for a cell that says whether a check passed.

    >>> verdict_of("True"), verdict_of("0")
    ('passed', 'failed')
    """
    word = passed.strip().lower()
    if word in ("true", "yes", "1", "passed"):
        return "passed"
    return "failed" if word in ("false", "no", "0", "failed") else passed


def numeric(text: str) -> str:
    """A cell as a number for people, or as it stands where it holds none."""
    value = parse_number(text) if text else float("nan")
    return html.escape(text) if value is None else page_number(value)
