"""The one sentence above a figure, computed from its numbers and therefore true of them."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from sparsemean.lab.report.figure import Figure, Line, Panel, Row
from sparsemean.lab.report.style import style_of
from sparsemean.lab.report.words import number

BASELINE = "rand-k"
ORACLE = "rand-k-spatial-opt"
"""Is told what a server cannot know, so it is no winner."""


def takeaway(figure: Figure) -> str:
    """What to see."""
    if figure.spec.kind == "points":
        return _agreement(figure)
    if figure.spec.series == "split":
        return _range(figure)
    row = next((row for row in figure.rows if row.quantity.ranked), None)
    return _winner(row) if row else ""


def _winner(row: Row) -> str:
    """Who has the lowest error at the end, in how many panels, and how far below plain Rand-k."""
    wins: Counter[str] = Counter()
    gains: dict[str, list[float]] = {}
    for panel in row.panels:
        ends = {line.name: _end(line) for line in panel.lines if not line.reference and line.name != ORACLE}
        ends = {name: end for name, end in ends.items() if math.isfinite(end)}
        if len(ends) < 2:
            continue
        best = min(ends, key=ends.__getitem__)
        wins[best] += 1
        if ends.get(BASELINE, 0) > 0 and ends[best] > 0:
            gains.setdefault(best, []).append(ends[BASELINE] / ends[best])
    if not wins:
        return ""
    sentences = []
    for place, (name, count) in enumerate(wins.most_common()):
        where = "" if len(row.panels) == 1 else f" in {count} of {len(row.panels)} panels"
        factors = gains.get(name, []) if name != BASELINE else []
        sentences.append(f"{style_of(name).label}{where}" + (f" ({_factor(factors)} Rand-k)" if factors else ""))
        if place == 2:
            break
    return f"Lowest error at the end: {'; '.join(sentences)}."


def _end(line: Line) -> float:
    """The mean over the last tenth of the line, so that one lucky round does not win."""
    tail = line.measured.mean[-max(1, len(line.measured.x) // 10) :]
    return float(tail.mean())


def _factor(factors: list[float]) -> str:
    low, high = number(float(f"{min(factors):.2g}")), number(float(f"{max(factors):.2g}"))
    return f"{low} times below" if low == high else f"{low} to {high} times below"


def _agreement(figure: Figure) -> str:
    """How far measured points lie from the line of theory."""
    away = [
        np.abs(line.measured.mean[known] / exact[known] - 1)
        for row in figure.rows
        for panel in row.panels
        for line in panel.lines
        if line.theory is not None and len(line.theory.x) == len(line.measured.x)
        for exact in [line.theory.mean]
        for known in [(exact > 0) & np.isfinite(exact) & np.isfinite(line.measured.mean)]
    ]
    distances = np.concatenate(away) if away else np.zeros(0)
    if not distances.size:
        return ""
    return (
        f"Of {distances.size} measured points, half lie within {100 * np.median(distances):.2g} % of the exact formula; "
        f"the farthest is {100 * distances.max():.2g} % off."
    )


def _range(figure: Figure) -> str:
    panels: list[Panel] = [panel for row in figure.rows for panel in row.panels]
    values = {
        line.name: np.concatenate([other.measured.mean for p in panels for other in p.lines if other.name == line.name])
        for panel in panels
        for line in panel.lines
    }
    words = [
        f"{number(float(own.min()))} to {number(float(own.max()))} for {style_of(name).label}"
        if own.min() < own.max()
        else f"{number(float(own.max()))} for {style_of(name).label}"
        for name, own in values.items()
        if own.size
    ]
    return f"R2/R1 is {'; '.join(words)}." if words else ""
