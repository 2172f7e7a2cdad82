"""The figures of ``sparsemean compare``: error against bytes at several budgets, and error round by round."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparsemean.lab.numbers import page_number, parse_number
from sparsemean.lab.report.figure.compose import compose
from sparsemean.lab.report.figure.curve import curve
from sparsemean.lab.report.figure.figure import Figure, Label, Line, Mark, Panel, PanelRow
from sparsemean.lab.report.figure.notes import above, below, notes
from sparsemean.lab.report.figure.scale import scale_of
from sparsemean.lab.report.figure.spec import Quantity, Spec
from sparsemean.lab.report.figure.style import rank
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.figure.takeaway import ORACLE
from sparsemean.lab.report.page.dot_plot import ROUNDING

Result = Mapping[str, Any]

ERROR = Quantity(("nmse",), "relative error, NMSE", log=True)
TOP = 5
"""So many of the best are shown round by round from the start; all others on demand."""

BYTES = Spec(
    "Error against bytes",
    "The best schemes, rand-k and auto at a half, once, twice and four times the bytes, and what whole vectors cost. "
    "Lower left is better. Bars are two standard errors.",
    (ERROR,),
    x="bytes_per_node",
    x_label="bytes per node and round",
    kind="joined",
    x_log=True,
    by_name=True,
    short="bytes",
)
ROUNDS = Spec(
    "Error round by round",
    "Means over seeds, each relative to its round's own vectors. A memory shows from the second round on, for better "
    f"or worse. Shown are the best {TOP} and those to compare with; a click shows others.",
    (ERROR,),
    by_name=True,
    short="rounds",
)


def number(value: object) -> float:
    """NaN where the value is unknown."""
    found = parse_number(str(value))
    return math.nan if found is None else found


def steady(result: Result, part: str = "") -> float:
    """The error by which schemes are ranked, or its standard error (``"_se"``); in older files that of all rounds."""
    kind = "steady" if result.get("steady") is not None else "nmse"
    return number(result.get(kind + part))


def against_bytes(sweep: Sequence[Result], results: Sequence[Result], zero: float) -> Figure | None:
    """A line per scheme of the sweep, a point for each kind of whole vectors; None without a sweep."""
    if not sweep:
        return None
    names = sorted({str(point["scheme"]) for point in sweep}, key=rank)
    dense = [result for result in results if str(result["scheme"]).partition(" ")[0] == "identity"]
    lines = [_line(name, [point for point in sweep if point["scheme"] == name]) for name in names]
    lines += [_line(str(result["scheme"]), [result]) for result in dense]
    seen = [replace(line, name="") for line in lines if line.measured.mean.max() > ROUNDING]  # also whole vectors
    scale = scale_of(ERROR, seen, ordered=True)
    marks = (Mark(zero, f"answering 0: {page_number(zero)}"),) if scale.low <= zero <= scale.high else ()
    labels = tuple(
        Label(float(line.measured.x[0]), float(line.measured.mean[0]), line.name)
        for line in lines[len(names) :]
        if scale.low <= line.measured.mean[0] <= scale.high
    )
    panel = Panel("", tuple(lines), scale, marks=marks, labels=labels)
    figure = Figure("bytes", BYTES, (PanelRow(ERROR, (panel,)),), 1, tuple(line.name for line in lines))
    return replace(figure, notes=(*above(figure), *below(figure)))


def _line(name: str, points: Sequence[Result]) -> Line:
    x = [number(point.get("bytes_per_node")) for point in points]
    return Line(name, curve(x, [steady(point) for point in points], [steady(point, "_se") for point in points]))


def by_round(results: Sequence[Result]) -> Figure | None:
    """Every scheme's errors; the best and the references from the start. None where there is but one round."""
    rows = [
        {"scheme": result["scheme"], "round": round, "nmse": error}
        for result in results
        for round, error in enumerate(result.get("nmse_by_round") or (), start=1)
    ]
    figure = compose("rounds", ROUNDS, ResultTable.of(rows)) if any(row["round"] > 1 for row in rows) else None
    if figure is None:
        return None
    ranked = [str(result["scheme"]) for result in results if not aside(result)]
    shown = {*ranked[:TOP], *(str(result["scheme"]) for result in results if _compared(result))}
    folded = tuple(name for name in figure.series if name not in shown) if len(figure.series) > TOP + 3 else ()
    (row,) = figure.rows
    (panel,) = row.panels
    scale = scale_of(ERROR, [line for line in panel.lines if line.name not in folded], ordered=True)
    rows_shown = (PanelRow(row.quantity, (replace(panel, scale=scale),)),)
    figure = replace(figure, rows=rows_shown, folded=folded, takeaway="")
    return replace(figure, notes=tuple(notes(figure)))


def aside(result: Result) -> bool:
    """Whether it is shown to compare with only: over the budget, diverging, or told what no server knows."""
    oracle = str(result["scheme"]).partition(" ")[0] == ORACLE
    return bool(oracle or result.get("over_budget") or result.get("diverges")) or not math.isfinite(steady(result))


def _compared(result: Result) -> bool:
    return str(result["scheme"]) in ("rand-k", "identity", "auto") or bool(result.get("reference"))
