"""The report of ``sparsemean compare``: which scheme for these vectors, and how much it costs."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from sparsemean._version import __version__
from sparsemean.errors import InvalidInput
from sparsemean.lab.numbers import page_number, parse_number
from sparsemean.lab.report.figure.compose import compose
from sparsemean.lab.report.figure.curve import Curve
from sparsemean.lab.report.figure.figure import AxisScale, Figure, Label, Line, Panel, PanelRow
from sparsemean.lab.report.figure.notes import above, below
from sparsemean.lab.report.figure.scale import scale_of
from sparsemean.lab.report.figure.spec import Quantity, Spec
from sparsemean.lab.report.figure.style import rank, style_of, token
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.figure.takeaway import ORACLE
from sparsemean.lab.report.page.document import READING, document, run_again, save_page
from sparsemean.lab.report.page.elements import PageSection, grid, paragraphs
from sparsemean.lab.report.page.figure_section import figure_section
from sparsemean.lab.report.page.legend import swatch

RELATIVE = Quantity(("nmse",), "relative error, NMSE", log=True, theory="exact", theory_label="exact formula")

BYTES = Spec(
    "Error against bytes",
    "Lower left is better: a smaller error from fewer bytes. Vertical bars are two standard errors, dashes the exact "
    "formula where there is one. Named are the schemes that no other beats in both.",
    (RELATIVE,),
    x="bytes_per_node",
    x_label="bytes per node and round",
    kind="points",
    x_log=True,
)

ROUNDS = Spec(
    "Error round by round",
    "Means over seeds. A memory shows from the second round on, for better or worse.",
    (Quantity(("nmse",), RELATIVE.label, log=True),),
)

Result = Mapping[str, Any]


def write_compare_report(comparison: Mapping[str, Any], path: str | PathLike[str]) -> Path:
    """Write one HTML file about a comparison, and return its path.

    Parameters
    ----------
    comparison
        As ``Comparison.to_json`` returns it. ``results`` holds one mapping per scheme: scheme, bytes_per_node, nmse,
        nmse_se, exact, server_estimate, unbiased, node_state and, where known, over_budget, server_bound and
        nmse_by_round. Optional: nodes, dim, rounds, seeds, likeness (nodes, ratio, change), left_out, and as plain text
        title, advice, source, note and command.
    path
        The file to write.
    """
    results: Sequence[Result] = comparison.get("results") or comparison.get("rows") or ()
    if not results:
        raise InvalidInput("a comparison without results makes no report: give at least one scheme")
    seeds = int(comparison.get("seeds") or 1)
    figures = [against_bytes(results, seeds)]
    if by_round := _by_round(results):
        figures.append(by_round)
    sections = [
        PageSection("schemes", "schemes", "All schemes, best first", _facts(comparison) + _table(results)),
        *(figure_section(figure, short) for figure, short in zip(figures, ("bytes", "rounds"), strict=False)),
        PageSection("reading", "reading", "How to read this", paragraphs(f"{_TERMS}\n\n{READING}")),
        run_again(str(comparison.get("command") or ""), [__version__], _source(comparison)),
    ]
    title = str(comparison.get("title") or "sparsemean: which scheme for these vectors?")
    page = document(title, str(comparison.get("advice") or ""), (), sections, figures, "")
    return save_page(page, path)


_TERMS = (
    "NMSE is the squared distance between estimate and true mean, divided by the mean squared length of the vectors; "
    "an estimate of zero has at most 1. “Exact” is what the formulas predict, “server's own” what the server said of "
    "its error without knowing the truth. An unbiased scheme is right on average, so its errors cancel over rounds. "
    "Node state means that a node has to remember something between rounds. “Over” marks more bytes than the budget."
)


def against_bytes(results: Sequence[Result], seeds: int) -> Figure:
    """One point per scheme, those named that no other beats in both."""
    lines = []
    for result in sorted(results, key=lambda result: rank(str(result["scheme"]))):
        x = np.array([_number(result.get("bytes_per_node"))])
        error, exact = _number(result.get("nmse")), _number(result.get("exact"))
        gone = np.array([0 if math.isfinite(error) else seeds])
        measured = Curve(x, np.array([error]), np.array([_number(result.get("nmse_se"))]), np.array([seeds]), gone)
        nothing = np.array([math.nan])
        said = Curve(x, np.array([exact]), nothing, np.array([seeds]), np.array([0])) if exact > 0 else None
        lines.append(Line(str(result["scheme"]), measured, said))
    scale = scale_of(RELATIVE, lines, ordered=False)
    panel = Panel("", tuple(lines), scale, labels=_front(lines, scale))
    names = tuple(line.name for line in lines)
    lost_names = [style_of(line.name).label for line in lines if line.measured.lost.any()]
    lost = [f"Diverged, and therefore not drawn: {', '.join(lost_names)}."] if lost_names else []
    figure = Figure("bytes", BYTES, (PanelRow(RELATIVE, (panel,)),), 1, names)
    return replace(figure, notes=(*lost, *above(figure), *below(figure)))


def _front(lines: Sequence[Line], scale: AxisScale) -> tuple[Label, ...]:
    points = sorted(
        (float(line.measured.x[0]), float(line.measured.mean[0]), style_of(line.name).label)
        for line in lines
        if line.name != ORACLE and np.isfinite(line.measured.x[0])
        if scale.low <= line.measured.mean[0] <= scale.high
    )
    labels: list[Label] = []
    for x, y, text in points:
        if not labels or y < labels[-1].y:
            labels.append(Label(x, y, text))
    return tuple(labels)


def _by_round(results: Sequence[Result]) -> Figure | None:
    rows = [
        {"scheme": result["scheme"], "round": round, "nmse": error}
        for result in results
        for round, error in enumerate(result.get("nmse_by_round") or ())
    ]
    several = any(row["round"] for row in rows)
    return compose("rounds", ROUNDS, ResultTable.of(rows)) if several else None


def _facts(comparison: Mapping[str, Any]) -> str:
    names = {"nodes": "nodes", "dim": "coordinates", "rounds": "rounds", "seeds": "seeds"}
    words = [f"{comparison[key]} {name}" for key, name in names.items() if comparison.get(key)]
    correlation = comparison.get("likeness") or {}
    if correlation.get("ratio") is not None:
        most = f" of at most {correlation['nodes'] - 1}" if correlation.get("nodes") else ""
        words.append(f"R2/R1 = {page_number(_number(correlation['ratio']))}{most}")
    if correlation.get("change") is not None:
        words.append(f"change from round to round {100 * _number(correlation['change']):.3g} %")
    left_out = ", ".join(str(name) for name in comparison.get("left_out") or ())
    text = (", ".join(words) + ".") if words else ""
    note = str(comparison.get("note") or "")
    notes = [f"Too large for the budget: {left_out}." if left_out else "", f"About the file: {note}." if note else ""]
    return paragraphs(text, "caption") + "".join(paragraphs(each, "note") for each in notes)


def _table(results: Sequence[Result]) -> str:
    heads = ["scheme", "bytes per node", "NMSE", "exact", "server's own", "unbiased", "node state"]
    rows = []
    for result in results:
        name = str(result["scheme"])
        spread = _number(result.get("nmse_se"))
        error = page_number(_number(result.get("nmse"))) + (
            f" ± {page_number(2 * spread)}" if math.isfinite(spread) else ""
        )
        over = " over" if result.get("over_budget") else ""
        numbers = [page_number(_number(result.get("bytes_per_node"))) + over, error]
        bound = "≤ " if result.get("server_bound") else ""
        own = page_number(_number(result.get("server_estimate")))
        numbers += [page_number(_number(result.get("exact"))), bound + own]
        row = f"<td class=wide>{swatch(style_of(name), token(name))} {html.escape(name)}"
        row += "".join(_cell(head, cell) for head, cell in zip(heads[1:], numbers, strict=False))
        row += f'<td data-name="unbiased">{"yes" if result.get("unbiased") else "no"}'
        rows.append(f'{row}<td data-name="node state">{"yes" if result.get("node_state") else "no"}')
    return grid(heads, rows, numbers=heads[1:5])


def _cell(head: str, cell: str) -> str:
    """One number; on a narrow screen those not known are left out."""
    kind = "number unknown" if cell == "–" else "number"
    return f'<td class="{kind}" data-name="{html.escape(head)}">{cell}'


def _source(comparison: Mapping[str, Any]) -> dict[str, str]:
    source = str(comparison.get("source") or "")
    return {"Data": source} if source else {}


def _number(value: object) -> float:
    """NaN where the value is unknown."""
    number = parse_number(str(value))
    return math.nan if number is None else number
