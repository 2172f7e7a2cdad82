"""The measurements as an HTML page and as a figure, in the style of the other reports."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from sparsemean.errors import InvalidInput
from sparsemean.lab.bench.baselines import LIMIT, MEANING
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.goals import judged
from sparsemean.lab.bench.measurement import Measurement
from sparsemean.lab.bench.player import DECODE, ENCODE, TRIP, WHATS
from sparsemean.lab.bench.record import BenchRecord
from sparsemean.lab.bench.sets import MAIN
from sparsemean.lab.numbers import page_number
from sparsemean.lab.report.draw.static import draw
from sparsemean.lab.report.figure.compose import compose
from sparsemean.lab.report.figure.figure import AxisScale, Figure, Mark, Panel
from sparsemean.lab.report.figure.spec import Quantity, Spec
from sparsemean.lab.report.figure.style import style_of
from sparsemean.lab.report.figure.table import ResultTable
from sparsemean.lab.report.page.document import READING, document, run_again, save_page
from sparsemean.lab.report.page.elements import PageSection, grid, paragraphs
from sparsemean.lab.report.page.figure_section import figure_section
from sparsemean.lab.report.page.verdicts import badge

NO_PLOT = f"there is no plot without rounds of {MAIN} with float32 values; measure some, or leave --plot out"
AS_FAST = Mark(1.0, "as fast")
RATIO = Quantity(("ratio",), "times as fast as", log=True, bounded=True)
SHORT = {ENCODE: "encode", DECODE: "server", TRIP: "round trip"}
CAPTION = (
    "Above the dashed line we are faster. Bands are the quartiles of the repeats. All times are of one process and "
    "run; “limit” is a copy of as many bytes as have to be touched."
)


def write_page(record: BenchRecord, path: str | PathLike[str], command: str = "") -> Path:
    """One HTML file about a record; returns its path."""
    figures = [figure for what in WHATS if (figure := ratios(record.rows, what))]
    sections = [
        *([_goals(record)] if judged(record.rows) else []),
        *(figure_section(figure, SHORT[what]) for what, figure in zip(WHATS, figures, strict=False)),
        PageSection("rows", "rows", "Everything that was measured", _rows(record.rows)),
        PageSection("reading", "reading", "How to read this", _meaning() + paragraphs(READING)),
        run_again(command, [record.version], {}),
    ]
    return save_page(document("sparsemean: how fast is it here?", _machine(record), (), sections, figures, ""), path)


def write_plot(record: BenchRecord, path: str | PathLike[str]) -> Path:
    """The server's rounds as one image; the suffix says in which format."""
    figure = ratios(record.rows, DECODE)
    if figure is None:
        raise InvalidInput(NO_PLOT)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    draw(figure, target)
    return target


def plotted(case: Case) -> bool:
    """Whether figures show it."""
    return case.scheme == MAIN and case.values == "float32"


def ratios(rows: Sequence[Measurement], what: str) -> Figure | None:
    """How many times as fast as each baseline, against the length of the vectors; None where there is nothing."""
    table = [
        {
            "dim": row.case.dim,
            "share": row.case.share,
            "nodes": row.case.nodes,
            "baseline": name,
            "ratio": ratio.median,
            "ratio_se": (ratio.high - ratio.low) / 4,
        }
        for row in rows
        if row.what == what and row.case is not None and plotted(row.case)
        for name, ratio in row.ratios.items()
    ]
    title = f"{what[:1].upper()}{what[1:]}, {style_of(MAIN).label}: how many times as fast?"
    spec = Spec(title, CAPTION, (RATIO,), "dim", "length of the vectors, d", x_log=True, series="baseline")
    figure = compose(what.replace(" ", "-"), spec, ResultTable.of(table)) if table else None
    return figure and replace(
        figure,
        rows=tuple(replace(row, panels=tuple(map(_marked, row.panels))) for row in figure.rows),
        takeaway=_takeaway(rows, what),
    )


def _marked(panel: Panel) -> Panel:
    scale = AxisScale(True, min(panel.scale.low, 0.8), max(panel.scale.high, 1.6))
    return replace(panel, scale=scale, marks=(AS_FAST,))


def _takeaway(rows: Sequence[Measurement], what: str) -> str:
    own = [row.ratios[LIMIT].median for row in rows if row.what == what and row.case and LIMIT in row.ratios]
    least, most = page_number(1 / max(own)), page_number(1 / min(own))
    return f"Between {least} and {most} times the time that memory alone would need."


def _machine(record: BenchRecord) -> str:
    here = record.machine
    text = (
        f"{here['processor']}, {here['cores']} cores, {float(here['memory']) / 1e9:.0f} GB; Python {here['python']}, "
        f"NumPy {here['numpy']}, numba {here['numba']}."
    )
    if record.busy:
        text += f"\n\nOther processes ran during {len(record.busy)} of {len(record.rows)} rows: read those with care."
    if not record.complete:
        text += "\n\nThe measuring was stopped before its end."
    return text


def _goals(record: BenchRecord) -> PageSection:
    rows = []
    for goal, value in judged(record.rows):
        verdict = "holds" if goal.holds(value) else "not reached"
        rows.append(
            f"<td class=wide>{html.escape(goal.name)}<td>{html.escape(goal.wanted)}"
            f'<td class="number">{page_number(value)}<td>{badge(verdict)}'
        )
    return PageSection(
        "goals", "goals", "What we want of it", grid(["what", "wanted", "measured", ""], rows, ["measured"])
    )


def _rows(rows: Sequence[Measurement]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.baselines))
    heads = ["what", "ms", "quartiles", *names, "peak MB"]
    lines = []
    for row in rows:
        cells = [f"{1e3 * row.seconds.median:.4g}", f"{1e3 * row.seconds.low:.3g}–{1e3 * row.seconds.high:.3g}"]
        cells += [f"{row.ratios[name].median:.3g}" if name in row.ratios else "" for name in names]
        cells.append("" if row.peak_bytes is None else f"{row.peak_bytes / 1e6:.3g}")
        lines.append(f"<td>{html.escape(row.label)}" + "".join(f'<td class="number">{cell}' for cell in cells))
    return grid(heads, lines, heads[1:], cards=False)


def _meaning() -> str:
    items = "".join(f"<li><b>{html.escape(name)}</b>: {html.escape(text)}" for name, text in MEANING.items())
    return (
        paragraphs("Numbers under the name of a baseline say how many times as fast as it we are.")
        + f"<ul>{items}</ul>"
    )
