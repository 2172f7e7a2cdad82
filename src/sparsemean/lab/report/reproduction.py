"""The report of ``sparsemean reproduce``: every table of a directory, as figures and verdicts."""

from __future__ import annotations

import html
from os import PathLike
from pathlib import Path

from sparsemean._version import __version__
from sparsemean.errors import InvalidInput
from sparsemean.lab.report.catalogue import in_order, spec_of
from sparsemean.lab.report.compose import compose
from sparsemean.lab.report.figure import Figure
from sparsemean.lab.report.page import READING, Section, document, figure_section, paragraphs, run_again
from sparsemean.lab.report.sources import sources
from sparsemean.lab.report.tables import Table, read_table
from sparsemean.lab.report.verdicts import badge, claims_table, counts, theory_table, verdict_of

VERDICTS = ("claims", "theory")
"""Tables that are not figures."""

TERMS = (
    "Each of n nodes holds a vector of d numbers and sends k of them; the server estimates the mean of the vectors. "
    "The error of the mean is the squared distance to the true one, smaller is better. R2/R1 tells how alike the "
    "vectors are: 0 if they are orthogonal, n − 1 if all are the same. IID nodes hold data drawn at random, non-IID "
    "nodes hold only a few classes each. On a logarithmic axis a band reaches as far below its line as above it."
)


def write_report(
    out_dir: str | PathLike[str],
    path: str | PathLike[str],
    title: str = "sparsemean: the paper's figures, measured",
    intro: str = "",
    command: str = "",
) -> Path:
    """Write one HTML file that shows what lies in ``out_dir/tables``, and return its path.

    Figures and verdicts for which there is no table are left out. Title, intro and command are plain text.
    """
    tables = read_tables(out_dir)
    shown = [figure for name in figure_names(tables) if (figure := compose(name, spec_of(name), tables[name]))]
    claims, theory = tables.get("claims", Table({})), tables.get("theory", Table({}))
    sections = []
    if len(claims):
        body = paragraphs("What was claimed, and what came out.", "caption")
        places = {figure.name: f"#figure-{figure.name}" for figure in shown} | (
            {"theory": "#theory"} if len(theory) else {}
        )
        found = claims_table(claims, places)
        sections.append(Section("findings", "findings", "Main findings", body + found))
    elif shown:
        sections.append(Section("findings", "findings", "Main findings", _takeaways(shown)))
    if shown:
        sections.append(Section("reading", "reading", "How to read the figures", paragraphs(f"{TERMS}\n\n{READING}")))
    sections += [figure_section(figure) for figure in shown]
    if len(theory):
        text = "z is the distance between measured and exact in standard errors; chance alone rarely exceeds 4."
        sections.append(
            Section("theory", "theory", "Formulas against measurement", paragraphs(text) + theory_table(theory))
        )
    versions = sorted({value for table in tables.values() for value in table.distinct("version")}) or [__version__]
    data = [name for table in tables.values() for name in table.distinct("data")]
    sections.append(run_again(command, versions, sources(data)))
    badges = counts(claims.text("verdict").tolist()) + _theory_badges(theory)
    footer = paragraphs("Every number behind the figures is in the CSV files of the folder “tables”, one per figure.")
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(document(title, intro, badges, sections, shown, footer), encoding="utf-8")
    return target


def read_tables(out_dir: str | PathLike[str]) -> dict[str, Table]:
    """Name → table, of every CSV file in ``out_dir/tables`` that has rows."""
    folder = Path(out_dir) / "tables"
    if not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}; run 'sparsemean reproduce' first, it writes the tables there")
    tables = {file.stem: read_table(file) for file in sorted(folder.glob("*.csv"))}
    return {name: table for name, table in tables.items() if len(table)}


def figure_names(tables: dict[str, Table]) -> list[str]:
    """The figures among the tables, in the order of the paper."""
    return in_order([name for name in tables if name not in VERDICTS])


def _takeaways(figures: list[Figure]) -> str:
    lines = [
        f'<li><a href="#figure-{html.escape(figure.name)}">{html.escape(figure.spec.title)}</a>: '
        f"{html.escape(figure.takeaway)}"
        for figure in figures
        if figure.takeaway
    ]
    return f"<ul>{''.join(lines)}</ul>"


def _theory_badges(theory: Table) -> list[str]:
    passed = [verdict_of(word) == "passed" for word in theory.text("passed").tolist()]
    if not passed:
        return []
    return [badge("passed" if all(passed) else "failed", f"{sum(passed)} of {len(passed)} formulas hold")]
