"""The page of ``sparsemean frontier``: one figure of error against bytes, the fronts, and a table of all points."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from sparsemean._version import __version__
from sparsemean.errors import InvalidInput
from sparsemean.lab.frontier.frontier import Frontier, Point
from sparsemean.lab.frontier.sweep import DENSE
from sparsemean.lab.frontier.trade import trade
from sparsemean.lab.numbers import page_number, size_of, with_margin
from sparsemean.lab.report.figure.curve import curve
from sparsemean.lab.report.figure.figure import AxisScale, Figure, Label, Line, Mark, Panel, PanelRow
from sparsemean.lab.report.figure.labels import enumeration
from sparsemean.lab.report.figure.scale import span
from sparsemean.lab.report.figure.spec import Quantity, Spec
from sparsemean.lab.report.figure.style import rank, style_of, token
from sparsemean.lab.report.page.document import READING, document, run_again, save_page
from sparsemean.lab.report.page.elements import PageSection, grid, paragraphs
from sparsemean.lab.report.page.figure_section import figure_section
from sparsemean.lab.report.page.legend import swatch

MAIN, ALL, OTHERS = "front of unbiased schemes", "front of all schemes", "other schemes"
ROUNDING = 1e-12
"""Relative errors below it are those of float32 itself; no axis is stretched for them."""
SHOWN = 3  # names that a note spells out
ROOM = 10.0
"""By which factor the axis extends above the error of answering 0."""

NMSE = Quantity(("nmse",), "relative error, NMSE", log=True)
SPEC = Spec(
    "Error against bytes",
    "Lower left is better. The thick stairs are the front of unbiased schemes: no other unbiased scheme has both fewer "
    "bytes and a smaller error. The thin dashed stairs are the front of all schemes, on which biased ones stand too. "
    "Schemes on a front and the dense means have a line of their own: colour and mark tell the scheme, dashes the kind "
    "of values. All others are faint points; point at one to read its name. Bars are two standard errors.",
    (NMSE,),
    x="bytes_per_node",
    x_label="bytes per node and round",
    kind="joined",
    x_log=True,
    tall=True,
    by_name=True,
)
TERMS = (
    "NMSE is the squared distance between estimate and true mean, divided by the mean squared length of the vectors, "
    "over all rounds, those in which memories fill included. Bytes are those of a payload as it was sent, header "
    "included. An unbiased scheme is right on average, so its errors cancel over rounds. A scheme that diverges, or "
    "that is told the true correlation (rand-k-spatial-opt), is shown but on no front; so is rand-proj-spatial-avg, "
    "an estimator of another paper that is there to compare with. "
    "“identity” is the dense mean: every node sends its whole vector, also in eden-b with as many bits a value as a "
    "budget allows. ± is two standard errors."
)


def write_page(
    frontier: Frontier, path: str | PathLike[str], source: str = "", note: str = "", command: str = ""
) -> Path:
    """Write one HTML file about a frontier, and return its path.

    Parameters
    ----------
    frontier
        At least one point.
    path
        The file to write.
    source, note, command
        Plain text: whose data it is, what was guessed about the file, and how to make the page again.
    """
    if not frontier.points:
        raise InvalidInput("a frontier without points makes no page: play at least one")
    figure = against_bytes(frontier)
    on_fronts = [point for tied in frontier.marked for point in tied]
    facts = (
        f"{frontier.nodes} nodes, {frontier.dim} coordinates, {frontier.rounds} rounds, {frontier.seeds} seeds; "
        f"{len(frontier.points)} points."
    )
    notes = [
        "" if frontier.complete else "The sweep was stopped before its end.",
        f"Too large for every budget: {', '.join(frontier.left_out)}." if frontier.left_out else "",
        f"{frontier.not_played}." if frontier.not_played else "",
        f"About the file: {note}." if note else "",
    ]
    words = paragraphs(facts, "caption") + "".join(paragraphs(text, "note") for text in notes)
    sections = [
        figure_section(figure, "figure", points_table(sorted(frontier.points, key=_by_bytes), frontier)),
        PageSection("fronts", "fronts", "The points on the fronts", words + points_table(on_fronts, frontier)),
        PageSection("reading", "reading", "How to read this", paragraphs(f"{TERMS}\n\n{READING}")),
        run_again(command, [__version__], {"Data": source} if source else {}),
    ]
    page = document("sparsemean: which error for how many bytes?", trade(frontier), (), sections, [figure], "")
    return save_page(page, path)


def against_bytes(frontier: Frontier) -> Figure:
    """The figure: fronts as stairs, the schemes on them as lines, all others as faint points."""
    scale = _scale(frontier)
    stairs = {MAIN: frontier.unbiased_front, ALL: frontier.front}
    chosen = _own_lines(frontier)
    schemes = sorted({point.scheme for point in frontier.points}, key=rank)
    others = [_line(name, frontier.points, OTHERS) for name in schemes if name not in chosen]
    own = [_line(name, frontier.points) for name in schemes if name in chosen]
    fronts = [replace(_stairs(name, front, scale), stairs=True) for name, front in stairs.items() if front]
    zero = Mark(frontier.zero_error, f"answering 0: {page_number(frontier.zero_error)}")
    marks = (zero,) if scale.low <= frontier.zero_error <= scale.high else ()
    panel = Panel("", (*others, *fronts, *own), scale, marks=marks, labels=_labels(frontier, scale))
    series = (*(line.name for line in fronts), *(line.name for line in own), *([OTHERS] if others else []))
    return Figure("frontier", SPEC, (PanelRow(NMSE, (panel,)),), 1, series, notes=_notes(frontier, scale))


def points_table(points: Iterable[Point], frontier: Frontier) -> str:
    """The points as an HTML table."""
    main, of_all = set(frontier.unbiased_front), set(frontier.front)
    heads = ["scheme and values", "bytes", "k", "NMSE", "exact", "unbiased", "front"]
    rows = []
    for point in points:
        exact = "–" if point.exact is None else page_number(point.exact)
        state = " diverges" if point.diverges else " useless" if point.nmse >= frontier.zero_error else ""
        size = size_of(point.k, frontier.dim)
        numbers = [page_number(point.bytes_per_node), size, with_margin(point.nmse, 2 * point.nmse_se) + state, exact]
        where = [word for word, front in (("unbiased", main), ("all", of_all)) if point in front]
        words = ["yes" if point.unbiased else "no", " and ".join(where) or "–"]
        row = f"<td class=wide>{swatch(style_of(point.scheme), _colour(point, frontier))} {html.escape(point.scheme)}"
        row += "".join(_cell(head, cell, "number") for head, cell in zip(heads[1:], numbers, strict=False))
        rows.append(row + "".join(_cell(head, cell, "") for head, cell in zip(heads[5:], words, strict=True)))
    return grid(heads, rows, numbers=heads[1:5])


def _cell(head: str, cell: str, kind: str) -> str:
    """One cell; on a narrow screen those not known are left out."""
    kinds = f"{kind} unknown".strip() if cell == "–" else kind
    return f'<td class="{kinds}" data-name="{html.escape(head)}">{cell}'


def _colour(point: Point, frontier: Frontier) -> str:
    """The CSS variable of its colour, that of all others where the figure gives it no line of its own."""
    return token(point.scheme if point.scheme in _own_lines(frontier) else OTHERS)


def _own_lines(frontier: Frontier) -> set[str]:
    """The schemes that have a line of their own: of equal points on a front the first; dense means, and peers."""
    references = {point.scheme for point in frontier.points if point.scheme in DENSE or point.peer}
    return references | {tied[0].scheme for tied in frontier.marked}


def _notes(frontier: Frontier, scale: AxisScale) -> tuple[str, ...]:
    """Name what the axis does not show."""
    beyond = {
        "above": [point.scheme for point in frontier.points if not point.nmse <= scale.high],
        "below": [point.scheme for point in frontier.points if point.nmse < scale.low],
    }
    notes = []
    for side, schemes in beyond.items():
        names = list(dict.fromkeys(schemes))
        more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
        if names:
            notes.append(f"Not drawn, since their errors are {side} the axis: {enumeration([*names[:SHOWN], *more])}.")
    return tuple(notes)


def _by_bytes(point: Point) -> tuple[float, float, str]:
    return point.bytes_per_node, point.nmse, point.scheme


def _line(name: str, points: Sequence[Point], group: str = "") -> Line:
    own = [point for point in points if point.scheme == name]
    x, y, error = ([getattr(point, key) for point in own] for key in ("bytes_per_node", "nmse", "nmse_se"))
    return Line(name, curve(x, y, error), group=group)


def _stairs(name: str, front: Sequence[Point], scale: AxisScale) -> Line:
    """The front, down to the lower edge of the axis where it leaves it."""
    x, y = [point.bytes_per_node for point in front], [max(point.nmse, scale.low) for point in front]
    return Line(name, curve(x, y))


def _scale(frontier: Frontier) -> AxisScale:
    """From the smallest error that is more than rounding to somewhat above that of answering 0."""
    errors = [point.nmse for point in frontier.points if math.isfinite(point.nmse) and not point.diverges]
    shown = [error for error in (*errors, frontier.zero_error) if error > ROUNDING]
    if not shown:
        return AxisScale(True, ROUNDING, 1.0)
    high = min(max(shown), ROOM * frontier.zero_error) if frontier.zero_error > ROUNDING else max(shown)
    low = min(min(shown), high)
    pad = 10 ** max(0.07 * math.log10(high / low), 0.05)
    return AxisScale(True, low / pad, high * pad)


def _labels(frontier: Frontier, scale: AxisScale) -> tuple[Label, ...]:
    """The schemes of the main front, each named once, but where names would overlap."""
    front = [point for point in frontier.unbiased_front if scale.low <= point.nmse <= scale.high]
    labels: list[Label] = []
    for point in front:
        named = any(label.text == point.scheme for label in labels)
        near = labels and abs(math.log10(labels[-1].y / point.nmse)) < 0.05 * span(scale)
        if not named and not near:
            labels.append(Label(point.bytes_per_node, point.nmse, point.scheme))
    return tuple(labels)
