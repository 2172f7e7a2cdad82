"""The page of ``sparsemean frontier`` for a set of pictures: error against bytes and over rounds, by kind of node."""

from __future__ import annotations

import html
from dataclasses import replace
from os import PathLike
from pathlib import Path

from sparsemean._names import Knowledge
from sparsemean._version import __version__
from sparsemean.errors import InvalidInput
from sparsemean.lab.frontier.nodes import NODES, NodeFrontier, NodePoint
from sparsemean.lab.node_schemes import BY_KNOWLEDGE, EDEN, WORDS
from sparsemean.lab.numbers import ROUNDING, page_number
from sparsemean.lab.report.figure.catalogue import ERROR, spec_of
from sparsemean.lab.report.figure.compose import compose
from sparsemean.lab.report.figure.figure import AxisScale, Figure
from sparsemean.lab.report.figure.labels import setting_label
from sparsemean.lab.report.figure.notes import notes
from sparsemean.lab.report.figure.spec import Spec
from sparsemean.lab.report.figure.style import style_of, token
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.page.document import READING, document, run_again, save_page
from sparsemean.lab.report.page.elements import PageSection, grid, paragraphs
from sparsemean.lab.report.page.figure_section import figure_section
from sparsemean.lab.report.page.legend import swatch
from sparsemean.lab.report.page.reproduction import sources

AGAINST_BYTES = Spec(
    "Error against bytes",
    "The error of the last round that the table shows. Lower left is better. A panel for each kind of node; whole "
    "vectors with as many bits a value as fit stand in all three, to compare with. Bars are 95 % intervals over seeds.",
    (ERROR,),
    x="bytes",
    x_label="bytes per node and round, header included",
    kind="joined",
    x_log=True,
    tall=True,
    baseline="",
    short="figure",
)
TERMS = (
    "Power iteration looks for the principal direction of pictures that lie at the nodes: every node multiplies its "
    "own part of the matrix by the current direction, and sends the result scaled to length 1; the mean of these is "
    "the next direction. The error is ‖estimate − mean‖², of unit vectors. Nodes differ in what they know: some keep "
    "nothing and hear nothing; some hear the mean that comes out of each round; some keep a vector, in step with the "
    "server by its receipts. Those that know more can run what those with less can, too. ÷ says how many times an "
    "error is below that of whole vectors at the same bytes and in the same round; errors below 10⁻¹⁵ count as that, "
    "since they are rounding."
)
_KNOW: dict[Knowledge, str] = {
    "stateless": "hear nothing",
    "broadcast": "hear the broadcast",
    "stateful": "keep a vector",
}
ROOM = 3.0
"""By which factor the axis of errors extends beyond the largest and the smallest."""
NOTHING_FINISHED = "Nothing is finished yet."


def write_node_page(found: NodeFrontier, path: str | PathLike[str], command: str = "") -> Path:
    """Write one HTML file about a frontier by kinds of nodes, and return its path.

    Parameters
    ----------
    found
        At least one point.
    path
        The file to write.
    command
        Plain text: how to make the page again.
    """
    if not found.points:
        raise InvalidInput("a frontier without points makes no page: play at least one")
    figures = [figure for figure in (_against_bytes(found), _over_rounds(found)) if figure]
    facts = f"{setting_label('data', found.data)}, {NODES} nodes, IID, {found.rounds} rounds, {found.seeds} seeds."
    stopped = "" if found.complete else "The sweep was stopped before its end."
    words = paragraphs(facts, "caption") + paragraphs(stopped, "note")
    sections = [
        *(figure_section(figure) for figure in figures),
        PageSection("points", "points", "All points", words + _table(found)),
        PageSection("reading", "reading", "How to read this", paragraphs(f"{TERMS}\n\n{READING}")),
        run_again(command, [__version__], sources([found.data])),
    ]
    title = "sparsemean: which error for how many bytes, by what a node may know?"
    return save_page(document(title, "\n\n".join(gains(found)), (), sections, figures, ""), path)


def gains(found: NodeFrontier) -> list[str]:
    """For each budget a sentence: how far below whole vectors each kind of node comes at its best in the last round."""
    sentences, last = [], found.shown[-1]
    for budget in found.budgets:
        words = []
        for node in BY_KNOWLEDGE:
            own = [point for point in found.points if (point.node, point.budget) == (node, budget)]
            if own and any((point.scheme, point.budget) == (EDEN, budget) for point in found.points):
                best = max(own, key=lambda point: found.gain(point, last))
                words.append(f"that {_KNOW[node]} {times(found.gain(best, last))} times ({best.scheme})")
        if words:
            sentences.append(
                f"At {budget} bytes, below whole vectors in as many bits, in round {last}: nodes {', '.join(words)}."
            )
    return sentences


def times(factor: float) -> str:
    """A factor for people, with two digits.

    >>> times(0.513), times(2114.0), times(5.9e12)
    ('0.51', '2,100', '5.9·10¹²')
    """
    rounded = float(f"{factor:.2g}")
    return f"{rounded:,.0f}" if 10 <= rounded < 1e6 else page_number(rounded)


def _against_bytes(found: NodeFrontier) -> Figure | None:
    """A panel for each kind of node, with whole vectors in each."""
    rows = []
    for node, schemes in BY_KNOWLEDGE.items():
        for row in found.rows:
            if row["scheme"] in (EDEN, *schemes) and int(str(row["round"])) == found.shown[-1] - 1:
                rows.append({**row, "split": f"nodes {_KNOW[node]}"})
    figure = compose("frontier", AGAINST_BYTES, ResultTable.of(rows))
    return None if figure is None else _down_to_rounding(figure)


def _down_to_rounding(figure: Figure) -> Figure:
    """The same with one axis for all panels, on which every error has a place that is more than rounding."""
    panels = [panel for row in figure.rows for panel in row.panels]
    errors = [value for panel in panels for line in panel.lines for value in line.measured.finite_means.tolist()]
    scale = AxisScale(True, max(min(errors), ROUNDING) / ROOM, max(*errors, ROUNDING) * ROOM)
    rows = tuple(replace(row, panels=tuple(replace(panel, scale=scale) for panel in row.panels)) for row in figure.rows)
    changed = replace(figure, rows=rows)
    return replace(changed, notes=tuple(notes(changed)))


def _over_rounds(found: NodeFrontier) -> Figure | None:
    return compose("frontier-nodes", spec_of("frontier-nodes"), ResultTable.of(found.rows))


def _table(found: NodeFrontier) -> str:
    """The points as an HTML table."""
    heads = ["it sends", "a node keeps or hears", "bytes", *(f"round {round}" for round in found.shown), "front"]
    rows = []
    for point in found.points:
        cells = [WORDS[point.node], page_number(point.bytes_per_node), *(_error(found, point, r) for r in found.shown)]
        cells.append("yes" if point in found.fronts[point.node] else "–")
        first = f"{swatch(style_of(point.scheme), token(point.scheme))} {html.escape(style_of(point.scheme).label)}"
        rows.append(f"<td class=wide>{first}" + "".join(map(_cell, heads[1:], cells)))
    return grid(heads, rows, numbers=heads[2:-1])


def _cell(head: str, cell: str) -> str:
    kind = "number" if head.startswith(("bytes", "round")) else ""
    return f'<td class="{kind}" data-name="{html.escape(head)}">{html.escape(cell)}'


def _error(found: NodeFrontier, point: NodePoint, round: int) -> str:
    return f"{page_number(point.error(round))} (÷{times(found.gain(point, round))})"
