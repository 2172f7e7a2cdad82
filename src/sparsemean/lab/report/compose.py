"""Spec and table → figure: which rows make a line, which lines a panel."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsemean.lab.report.figure import Figure, Line, Mark, Panel, Row
from sparsemean.lab.report.notes import notes
from sparsemean.lab.report.scale import scale_of
from sparsemean.lab.report.spec import KEYS, Quantity, Spec
from sparsemean.lab.report.style import REFERENCES, rank
from sparsemean.lab.report.tables import Curve, Table, curve
from sparsemean.lab.report.takeaway import takeaway
from sparsemean.lab.report.words import number, setting

POINTS = 150
"""A line has at most this many points: more cannot be seen, and would make the page heavy."""
EQUAL_BYTES = 1.25
"""Payloads that differ by less than this factor count as the same budget."""


def compose(name: str, spec: Spec, table: Table) -> Figure | None:
    """The figure; None where the table holds nothing that it shows."""
    table = _prepared(spec, table)
    keys = [key for key in KEYS if key not in (*spec.no_panels, spec.series, spec.x) and len(table.distinct(key)) > 1]
    if spec.kind == "bars":
        keys = []
    settings = _settings(table, keys)
    rows = [row for quantity in spec.quantities if (row := _row(spec, quantity, table, keys, settings))]
    if not rows:
        return None
    drawn = {line.name for row in rows for panel in row.panels for line in panel.lines}
    last = len(table.distinct(keys[-1])) if keys else 1
    columns = last if len(settings) % last == 0 and last <= 4 else min(3, len(settings))
    if columns == 1 and len(settings) > 1:
        columns = min(3, len(settings))
    figure = Figure(name, spec, tuple(rows), columns, tuple(sorted(drawn, key=rank)))
    words = {"takeaway": takeaway(figure), "notes": tuple(notes(figure))}
    return replace(figure, rows=tuple(_thinned(row) for row in rows), **words)


def _prepared(spec: Spec, table: Table) -> Table:
    """One column says whose line a row is, and settings that do not apply to a row are empty."""
    if spec.series == "scheme" and len(table.distinct("values")) > 1:
        pairs = zip(table.text("scheme").tolist(), table.text("values").tolist(), strict=True)
        table = table.having(
            scheme=[f"{scheme} {values}" if values and scheme not in REFERENCES else scheme for scheme, values in pairs]
        )
    if "budget" not in spec.no_panels and not table.distinct("budget"):
        table = table.having(budget=_budgets(table))
    reference = np.isin(table.text("scheme"), REFERENCES)
    if not reference.all():
        table = table.having(
            **{key: np.where(reference, "", table.text(key)) for key in ("share", "budget") if key in table.columns}
        )
    return table


def _budgets(table: Table) -> list[str]:
    """The bytes per node and round, as one number for all schemes that send about as many."""
    names = list(zip(*(table.text(key).tolist() for key in ("scheme", "share", "split", "data")), strict=True))
    sent = table.number("bytes_per_node")
    typical = {
        name: float(np.median(own))
        for name in set(names)
        if len(own := sent[[other == name for other in names] & np.isfinite(sent)])
    }
    budget: dict[float, float] = {}
    lowest = 0.0
    for size in sorted(set(typical.values())):
        lowest = lowest if lowest and size <= EQUAL_BYTES * lowest else size
        budget[size] = lowest
    largest = {low: max(size for size, own in budget.items() if own == low) for low in set(budget.values())}
    return [f"{largest[budget[typical[name]]]:.0f}" if name in typical else "" for name in names]


def _settings(table: Table, keys: Sequence[str]) -> list[tuple[str, ...]]:
    """The combinations of key values that occur, in order."""
    seen = set(zip(*(table.text(key).tolist() for key in keys), strict=True)) if keys else {()}
    ranks = [{value: i for i, value in enumerate(table.distinct(key))} for key in keys]
    whole = [combination for combination in seen if all(combination)]
    return sorted(whole, key=lambda values: [rank[value] for rank, value in zip(ranks, values, strict=True)])


def _row(
    spec: Spec, quantity: Quantity, table: Table, keys: Sequence[str], settings: Sequence[tuple[str, ...]]
) -> Row | None:
    column = next((name for name in quantity.columns if table.distinct(name)), None)
    if column is None:
        return None
    panels = []
    for values in settings:
        own = table
        for key, value in zip(keys, values, strict=True):
            own = own.where(np.isin(own.text(key), (value, "")))
        title = ", ".join(setting(key, value) for key, value in zip(keys, values, strict=True))
        panels.append(_panel(spec, quantity, column, own, title))
    lines = list(itertools.chain.from_iterable(panel.lines for panel in panels))
    marks = [mark for panel in panels for mark in panel.marks]
    ordered = spec.kind == "lines"
    return Row(quantity, scale_of(quantity, lines, ordered, marks), tuple(panels)) if lines else None


def _panel(spec: Spec, quantity: Quantity, column: str, table: Table, title: str) -> Panel:
    ticks: tuple[str, ...] = ()
    x = table.number(spec.x) if spec.kind != "bars" else None
    if x is None:
        keys = [key for key in ("task", "data", "nodes") if len(table.distinct(key)) > 1] or [spec.x]
        names = [
            ", ".join(setting(key, value) for key, value in zip(keys, values, strict=True))
            for values in zip(*(table.text(key).tolist() for key in keys), strict=True)
        ]
        ticks = tuple(dict.fromkeys(names))
        x = np.array([ticks.index(name) for name in names], np.float64)
    y, owner = table.number(column), table.text(spec.series)
    theory = table.number(quantity.theory) if quantity.theory in table.columns else None
    lines = []
    for name in sorted(set(owner.tolist()), key=rank):
        own = owner == name
        measured = curve(x[own], y[own])
        said = curve(x[own], theory[own]) if theory is not None else None
        if len(measured.x):
            lines.append(Line(name, measured, said if said is not None and len(said.x) else None))
    nodes = table.distinct("nodes")
    marks = _ceiling(float(nodes[0])) if spec.ceiling and len(nodes) == 1 else ()
    return Panel(title, tuple(lines), ticks, marks)


def _ceiling(nodes: float) -> tuple[Mark, ...]:
    return (
        Mark(nodes - 1, f"n − 1 = {number(nodes - 1)}: all the same"),
        Mark(nodes / 2, f"n/2 = {number(nodes / 2)}: Avg is best"),
    )


def _thinned(row: Row) -> Row:
    def thin(line: Line) -> Line:
        return replace(line, measured=_fewer(line.measured), theory=line.theory and _fewer(line.theory))

    return replace(row, panels=tuple(replace(panel, lines=tuple(map(thin, panel.lines))) for panel in row.panels))


def _fewer(whole: Curve) -> Curve:
    if len(whole.x) <= POINTS:
        return whole
    kept = np.unique(np.linspace(0, len(whole.x) - 1, POINTS).round().astype(np.int64))
    return Curve(whole.x[kept], whole.mean[kept], whole.error[kept], whole.seeds[kept], whole.lost[kept])
