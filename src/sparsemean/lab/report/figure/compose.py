"""Compose a figure from its spec and its table: which rows make a line, which lines a panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsemean._types import Doubles
from sparsemean.lab.numbers import page_number, parse_number
from sparsemean.lab.report.figure.curve import curve
from sparsemean.lab.report.figure.figure import AxisScale, Figure, Line, Mark, Panel, PanelRow
from sparsemean.lab.report.figure.labels import setting_label
from sparsemean.lab.report.figure.notes import notes
from sparsemean.lab.report.figure.scale import scale_of, span
from sparsemean.lab.report.figure.spec import KEYS, Quantity, Spec
from sparsemean.lab.report.figure.style import REFERENCES, rank
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.figure.takeaway import takeaway

_DROPPED = ("task", "nodes", "split", "rate", "share", "bytes", "data")
"""In which order keys are dropped where one follows from another."""
FILLED = 0.4
"""Where the lines of a panel would fill less than this part of a shared axis, every panel gets its own."""
POINTS = 150
"""Most points of a line: more cannot be seen, and would make the page large."""


def compose(name: str, spec: Spec, table: ResultTable) -> Figure | None:
    """The figure with its takeaway and notes; None where the table holds nothing that it shows."""
    table = _prepared(spec, table)
    keys = telling(table, [key for key in KEYS if key not in (*spec.no_panels, spec.series, spec.x)])
    keys = [] if spec.kind == "bars" else keys
    settings = _settings(table, keys)
    rows = [row for quantity in spec.quantities if (row := _row(spec, quantity, table, keys, settings))]
    if not rows:
        return None
    drawn = {line.name for row in rows for panel in row.panels for line in panel.lines}
    figure = Figure(name, spec, tuple(rows), _columns(settings), tuple(sorted(drawn, key=rank)))
    whole = replace(figure, takeaway=takeaway(figure), notes=tuple(notes(figure)))
    return replace(whole, rows=tuple(_thinned(row) for row in rows))


def telling(table: ResultTable, keys: Sequence[str]) -> list[str]:
    """The keys that tell rows apart: with several values, none of which follows from the other keys.

    >>> rows = [{"task": "a", "data": "x", "share": 1}, {"task": "b", "data": "y", "share": 1}]
    >>> telling(ResultTable.of(rows), ["task", "data", "share"])
    ['data']
    """
    kept = [key for key in keys if len(table.distinct(key)) > 1]
    for key in sorted(kept, key=_DROPPED.index):
        rest = [other for other in kept if other != key]
        if rest and len(_combinations(table, rest)) == len(_combinations(table, kept)):
            kept = rest
    return kept


def _combinations(table: ResultTable, keys: Sequence[str]) -> set[tuple[str, ...]]:
    """The combinations of values that occur, without those that lack one."""
    seen = set(zip(*(table.text(key).tolist() for key in keys), strict=True)) if keys else {()}
    return {combination for combination in seen if all(combination)}


def _prepared(spec: Spec, table: ResultTable) -> ResultTable:
    """Name each row's line in the column scheme, and empty the share where it does not apply."""
    schemes = table.text("scheme").tolist()
    if spec.series == "scheme" and len(table.distinct("values")) > 1:
        kinds = table.text("values").tolist()
        schemes = [
            f"{scheme} {kind}" if kind and scheme not in REFERENCES else scheme
            for scheme, kind in zip(schemes, kinds, strict=True)
        ]
    reference = np.isin(table.text("scheme"), REFERENCES)
    share = table.text("share") if reference.all() else np.where(reference, "", table.text("share"))
    return table.having(scheme=schemes, share=share)


def _settings(table: ResultTable, keys: Sequence[str]) -> list[tuple[str, ...]]:
    order = [{value: place for place, value in enumerate(table.distinct(key))} for key in keys]
    return sorted(
        _combinations(table, keys),
        key=lambda values: [places[value] for places, value in zip(order, values, strict=True)],
    )


def _columns(settings: Sequence[tuple[str, ...]]) -> int:
    """Panels side by side: as many as the last key has values, where that makes full rows."""
    last = len({values[-1] for values in settings if values})
    return last if 1 < last <= 4 and len(settings) % last == 0 else min(3, len(settings))


def _row(
    spec: Spec, quantity: Quantity, table: ResultTable, keys: Sequence[str], settings: Sequence[tuple[str, ...]]
) -> PanelRow | None:
    column = next((name for name in quantity.columns if table.distinct(name)), None)
    if column is None:
        return None
    panels, groups = [], []
    for values in settings:
        own = table
        for key, value in zip(keys, values, strict=True):
            own = own.where(np.isin(own.text(key), (value, "")))
        title = ", ".join(setting_label(key, value) for key, value in zip(keys, values, strict=True))
        panels.append(_panel(spec, quantity, column, own, title))
        groups.append(values if spec.own_scales else (*own.distinct("task"), *own.distinct("data")))
    if not any(panel.lines for panel in panels):
        return None
    scaled: dict[int, Panel] = {}
    for group in set(groups):
        places = [place for place, other in enumerate(groups) if other == group]
        scaled |= dict(zip(places, _scaled(spec, quantity, [panels[place] for place in places]), strict=True))
    return PanelRow(quantity, tuple(scaled[place] for place in range(len(panels))))


def _scaled(spec: Spec, quantity: Quantity, panels: Sequence[Panel]) -> list[Panel]:
    """The panels with one axis for all, or each with its own where some panel would fill too little of it."""

    def scale(members: Sequence[Panel], wanted: Quantity) -> AxisScale:
        lines = [line for panel in members for line in panel.lines]
        return scale_of(wanted, lines, spec.kind == "lines", [mark for panel in members for mark in panel.marks])

    shared = scale(panels, quantity)
    own = [scale([panel], replace(quantity, log=shared.log)) for panel in panels]
    fits = all(span(other) >= FILLED * span(shared) for other in own if other.log == shared.log)
    return [replace(panel, scale=shared if fits else one) for panel, one in zip(panels, own, strict=True)]


def _panel(spec: Spec, quantity: Quantity, column: str, table: ResultTable, title: str) -> Panel:
    ticks, x = _named_places(spec, table) if spec.kind == "bars" else ((), table.number(spec.x))
    owner, y = table.text(spec.series), table.number(column)
    theory = table.number(quantity.theory) if table.distinct(quantity.theory) else None
    error = table.number(f"{column}_se") if table.distinct(f"{column}_se") else None
    lines = []
    for name in sorted(set(owner.tolist()), key=rank):
        own = owner == name
        measured = curve(x[own], y[own], error if error is None else error[own])
        said = curve(x[own], theory[own]) if theory is not None and quantity.theory_of in ("", name) else None
        if len(measured.x):
            lines.append(Line(name, measured, said if said is not None and len(said.x) else None))
    return Panel(title, tuple(lines), ticks=ticks, marks=_ceiling(table, x, bool(ticks)) if spec.ceiling else ())


def _named_places(spec: Spec, table: ResultTable) -> tuple[tuple[str, ...], Doubles]:
    """Names along the horizontal axis, and the place of each row on it."""
    keys = telling(table, ["task", "nodes", "data"]) or [spec.x]
    names = [
        ", ".join(setting_label(key, value) for key, value in zip(keys, values, strict=True))
        for values in zip(*(table.text(key).tolist() for key in keys), strict=True)
    ]
    ticks = tuple(dict.fromkeys(names))
    if keys == [spec.x]:
        values = [parse_number(cell) for cell in table.text(spec.x).tolist()]
        ticks = tuple(sorted(ticks, key=lambda tick: values[names.index(tick)] or 0.0))  # words stay as they come
    return ticks, np.array([ticks.index(name) for name in names], np.float64)


def _ceiling(table: ResultTable, x: Doubles, named: bool) -> tuple[Mark, ...]:
    """Marks at n − 1: at each named place; else one, where all rows have the same n."""
    nodes = table.number("nodes")
    known = np.isfinite(nodes)
    places = sorted({(float(place), float(n)) for place, n in zip(x[known], nodes[known], strict=True)})
    if named:
        return tuple(Mark(n - 1, f"n − 1 = {page_number(n - 1)}", place) for place, n in places)
    several = len({n for _, n in places}) != 1
    return () if several else (Mark(places[0][1] - 1, f"n − 1 = {page_number(places[0][1] - 1)}"),)


def _thinned(row: PanelRow) -> PanelRow:
    def thin(line: Line) -> Line:
        return replace(line, measured=line.measured.thinned(POINTS), theory=line.theory and line.theory.thinned(POINTS))

    return replace(row, panels=tuple(replace(panel, lines=tuple(map(thin, panel.lines))) for panel in row.panels))
