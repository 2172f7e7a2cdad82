"""Spec and table → figure: which rows make a line, which lines a panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsemean.lab.report.figure import Figure, Line, Mark, Panel, Row, Scale
from sparsemean.lab.report.notes import notes
from sparsemean.lab.report.scale import scale_of, span
from sparsemean.lab.report.spec import KEYS, Quantity, Spec
from sparsemean.lab.report.style import REFERENCES, rank
from sparsemean.lab.report.tables import Curve, Table, curve
from sparsemean.lab.report.takeaway import takeaway
from sparsemean.lab.report.words import number, setting

_DROPPED = ("task", "nodes", "split", "rate", "share", "data")
"""Which key goes first where one follows from another."""
FILLED = 0.4
"""A panel whose lines would fill less than this part of a shared axis gets its own."""
POINTS = 150
"""A line has at most this many points: more cannot be seen, and would make the page heavy."""


def compose(name: str, spec: Spec, table: Table) -> Figure | None:
    """The figure; None where the table holds nothing that it shows."""
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


def telling(table: Table, keys: Sequence[str]) -> list[str]:
    """The keys that tell rows apart: with several values, none of which follows from the other keys.

    >>> rows = [{"task": "a", "data": "x", "share": 1}, {"task": "b", "data": "y", "share": 1}]
    >>> telling(Table.of(rows), ["task", "data", "share"])
    ['data']
    """
    kept = [key for key in keys if len(table.distinct(key)) > 1]
    for key in sorted(kept, key=_DROPPED.index):
        rest = [other for other in kept if other != key]
        if rest and len(_combinations(table, rest)) == len(_combinations(table, kept)):
            kept = rest
    return kept


def _combinations(table: Table, keys: Sequence[str]) -> set[tuple[str, ...]]:
    """Those that occur, and are complete."""
    seen = set(zip(*(table.text(key).tolist() for key in keys), strict=True)) if keys else {()}
    return {combination for combination in seen if all(combination)}


def _prepared(spec: Spec, table: Table) -> Table:
    """One column says whose line a row is, and the share is empty where it does not apply."""
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


def _settings(table: Table, keys: Sequence[str]) -> list[tuple[str, ...]]:
    order = [{value: place for place, value in enumerate(table.distinct(key))} for key in keys]
    return sorted(
        _combinations(table, keys),
        key=lambda values: [places[value] for places, value in zip(order, values, strict=True)],
    )


def _columns(settings: Sequence[tuple[str, ...]]) -> int:
    """As many as the last key has values, where that makes full rows."""
    last = len({values[-1] for values in settings if values})
    return last if 1 < last <= 4 and len(settings) % last == 0 else min(3, len(settings))


def _row(
    spec: Spec, quantity: Quantity, table: Table, keys: Sequence[str], settings: Sequence[tuple[str, ...]]
) -> Row | None:
    column = next((name for name in quantity.columns if table.distinct(name)), None)
    if column is None:
        return None
    panels, groups = [], []
    for values in settings:
        own = table
        for key, value in zip(keys, values, strict=True):
            own = own.where(np.isin(own.text(key), (value, "")))
        title = ", ".join(setting(key, value) for key, value in zip(keys, values, strict=True))
        panels.append(_panel(spec, quantity, column, own, title))
        groups.append(values if spec.own_scales else (*own.distinct("task"), *own.distinct("data")))
    if not any(panel.lines for panel in panels):
        return None
    scaled: dict[int, Panel] = {}
    for group in set(groups):
        places = [place for place, other in enumerate(groups) if other == group]
        scaled |= dict(zip(places, _scaled(spec, quantity, [panels[place] for place in places]), strict=True))
    return Row(quantity, tuple(scaled[place] for place in range(len(panels))))


def _scaled(spec: Spec, quantity: Quantity, panels: Sequence[Panel]) -> list[Panel]:
    """The panels with one axis for all, or with one each where some panel would fill too little of it."""

    def scale(members: Sequence[Panel], wanted: Quantity) -> Scale:
        lines = [line for panel in members for line in panel.lines]
        return scale_of(wanted, lines, spec.kind == "lines", [mark for panel in members for mark in panel.marks])

    shared = scale(panels, quantity)
    own = [scale([panel], replace(quantity, log=shared.log)) for panel in panels]
    fits = all(span(other) >= FILLED * span(shared) for other in own if other.log == shared.log)
    return [replace(panel, scale=shared if fits else one) for panel, one in zip(panels, own, strict=True)]


def _panel(spec: Spec, quantity: Quantity, column: str, table: Table, title: str) -> Panel:
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


def _named_places(spec: Spec, table: Table) -> tuple[tuple[str, ...], np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Names along the axis, and where on it each row belongs."""
    keys = telling(table, ["task", "nodes", "data"]) or [spec.x]
    names = [
        ", ".join(setting(key, value) for key, value in zip(keys, values, strict=True))
        for values in zip(*(table.text(key).tolist() for key in keys), strict=True)
    ]
    ticks = tuple(dict.fromkeys(names))
    return ticks, np.array([ticks.index(name) for name in names], np.float64)


def _ceiling(table: Table, x: np.ndarray[tuple[int], np.dtype[np.float64]], named: bool) -> tuple[Mark, ...]:
    """n − 1, once where all rows have the same n, at each named place otherwise."""
    nodes = table.number("nodes")
    known = np.isfinite(nodes)
    places = sorted({(float(place), float(n)) for place, n in zip(x[known], nodes[known], strict=True)})
    if named:
        return tuple(Mark(n - 1, f"n − 1 = {number(n - 1)}", place) for place, n in places)
    several = len({n for _, n in places}) != 1
    return () if several else (Mark(places[0][1] - 1, f"n − 1 = {number(places[0][1] - 1)}"),)


def _thinned(row: Row) -> Row:
    def thin(line: Line) -> Line:
        return replace(line, measured=_fewer(line.measured), theory=line.theory and _fewer(line.theory))

    return replace(row, panels=tuple(replace(panel, lines=tuple(map(thin, panel.lines))) for panel in row.panels))


def _fewer(whole: Curve) -> Curve:
    if len(whole.x) <= POINTS:
        return whole
    kept = np.unique(np.linspace(0, len(whole.x) - 1, POINTS).round().astype(np.int64))
    return Curve(whole.x[kept], whole.mean[kept], whole.error[kept], whole.seeds[kept], whole.lost[kept])
