"""The sentence above a figure, computed from its numbers and therefore true of them."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from sparsemean.lab.numbers import page_number
from sparsemean.lab.report.figure.figure import Figure, Line, PanelRow
from sparsemean.lab.report.figure.spec import Spec
from sparsemean.lab.report.figure.style import style_of

ORACLE = "rand-k-spatial-opt"
"""Its decoder is told the true R2/R1, which no server knows, so it is never named as the best."""


def takeaway(figure: Figure) -> str:
    """The sentence: the best scheme, the agreement with theory, or the range of R2/R1."""
    row = next((row for row in figure.rows if row.quantity.ranked), None)
    if figure.spec.ours and row:
        return _then_and_now(row, figure.spec)
    if figure.spec.ours or figure.spec.kind == "points":
        return f"{_gain(figure)} {_agreement(figure)}".strip()
    if figure.spec.series == "split":
        return _range(figure)
    return _winner(row, figure.spec) if row else ""


def _winner(row: PanelRow, spec: Spec) -> str:
    """Who has the lowest error at the end, in how many panels, and how far below the baseline."""
    wins: Counter[str] = Counter()
    gains: dict[str, list[float]] = {}
    for panel in row.panels:
        ends = {line.name: _end(line, spec) for line in panel.lines if not line.reference and line.name != ORACLE}
        ends = {name: end for name, end in ends.items() if math.isfinite(end)}
        if len(ends) < 2:
            continue
        best = min(ends, key=ends.__getitem__)
        wins[best] += 1
        if ends.get(spec.baseline, 0) > 0 and ends[best] > 0:
            gains.setdefault(best, []).append(ends[spec.baseline] / ends[best])
    if not wins:
        return ""
    sentences = []
    for place, (name, count) in enumerate(wins.most_common()):
        where = "" if len(row.panels) == 1 else f" in {count} of {len(row.panels)} panels"
        factors = gains.get(name, []) if name != spec.baseline else []
        than = f" ({_factor(factors)} {style_of(spec.baseline).label})" if factors else ""
        sentences.append(f"{style_of(name).label}{where}{than}")
        if place == 2:
            break
    when = "on average over the rounds" if spec.all_rounds else "at the end"
    return f"Lowest error {when}: {'; '.join(sentences)}."


def _end(line: Line, spec: Spec) -> float:
    """The mean over the last tenth of the line, so that one lucky round does not win; or over all of it."""
    tail = line.measured.mean[0 if spec.all_rounds else -max(1, len(line.measured.x) // 10) :]
    return float(tail.mean())


def _then_and_now(row: PanelRow, spec: Spec) -> str:
    """The error of one scheme as a part of the baseline's, in the first round and at the end, over all panels."""
    lines = [{line.name: line for line in panel.lines} for panel in row.panels]
    pairs = [(known[spec.ours], known[spec.baseline]) for known in lines if {spec.ours, spec.baseline} <= known.keys()]
    started = [float(own.measured.mean[0] / other.measured.mean[0]) for own, other in pairs]
    ended = [_end(own, spec) / _end(other, spec) for own, other in pairs]
    if not pairs or not all(map(math.isfinite, (*started, *ended))):
        return ""
    then, now = (_span(parts) for parts in (started, ended))
    who, whose = style_of(spec.ours).label, style_of(spec.baseline).label
    return f"{who}: {then} times the error of {whose} in the first round, {now} times at the end."


def _gain(figure: Figure) -> str:
    """By which factors one scheme is below the baseline, from the least to the largest of all points."""
    ours, baseline = figure.spec.ours, figure.spec.baseline
    factors = []
    for panel in (panel for row in figure.rows for panel in row.panels):
        means = {line.name: dict(zip(line.measured.x, line.measured.mean, strict=True)) for line in panel.lines}
        own, other = means.get(ours, {}), means.get(baseline, {})
        factors += [float(other[x] / own[x]) for x in own if x in other and 0 < own[x] < math.inf]
    return f"{style_of(ours).label}: {_factor(factors)} {style_of(baseline).label}." if factors else ""


def _factor(factors: list[float]) -> str:
    return f"{_span(factors)} times below"


def _span(factors: list[float]) -> str:
    low, high = page_number(float(f"{min(factors):.2g}")), page_number(float(f"{max(factors):.2g}"))
    return low if low == high else f"{low} to {high}"


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
        f"Of {distances.size} measured points, half lie within {100 * np.median(distances):.2g} % of the formula; "
        f"the farthest is {100 * distances.max():.2g} % off."
    )


def _range(figure: Figure) -> str:
    """How high R2/R1 gets, as a part of the n − 1 that it can reach."""
    parts: dict[str, list[float]] = {}
    for row in figure.rows:
        for panel in row.panels:
            for line in panel.lines:
                tops = [mark.y for mark in panel.marks for x in line.measured.x if mark.x in (None, x)]
                if len(tops) == len(line.measured.x):
                    parts.setdefault(line.name, []).extend((line.measured.mean / np.array(tops)).tolist())
    words = [f"{style_of(name).label} {_percents(own)}" for name, own in parts.items()]
    return f"R2/R1 as a part of the n − 1 that it can reach: {', '.join(words)}." if words else ""


def _percents(parts: list[float]) -> str:
    low, high = f"{100 * min(parts):.0f}", f"{100 * max(parts):.0f}"
    return f"{high} %" if low == high else f"{low} to {high} %"
