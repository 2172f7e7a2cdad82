"""The report of ``sparsemean reproduce``: every table of a folder, as figures and verdicts."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

from sparsemean._version import __version__
from sparsemean.lab.datasets import ENTRIES, digits
from sparsemean.lab.report.claim_groups import counted, grouped, own_groups
from sparsemean.lab.report.figure.catalogue import figure_names, spec_of
from sparsemean.lab.report.figure.compose import compose
from sparsemean.lab.report.figure.figure import Figure
from sparsemean.lab.report.figure.labels import setting_label
from sparsemean.lab.report.figure.table import ResultTable, read_tables
from sparsemean.lab.report.page.claims import claims_html, tiles
from sparsemean.lab.report.page.document import READING, document, run_again, save_page
from sparsemean.lab.report.page.elements import PageSection, paragraphs
from sparsemean.lab.report.page.figure_section import figure_section
from sparsemean.lab.report.page.overview import what_was_run
from sparsemean.lab.report.page.verdicts import theory_table, verdict_of
from sparsemean.lab.weather import load_weather

KINDS = ("Past the paper", "Designed draws", "Error against bytes")
"""How titles of figures begin that the paper does not have."""
TERMS = (
    "Each of n nodes holds a vector of d numbers and sends k of them; the server estimates the mean of the vectors. "
    "The error of the mean is the squared distance to the true one, smaller is better. R2/R1 tells how alike the "
    "vectors are: 0 if they are orthogonal, n − 1 if all are the same. IID nodes hold data drawn at random, non-IID "
    "nodes hold only a few classes each. On a logarithmic axis a band reaches as far below its line as above it."
)


def write_report(
    out_dir: str | PathLike[str],
    path: str | PathLike[str],
    title: str = "Sparsified mean estimation: the paper, measured again",
    intro: str = "",
    command: str = "",
) -> Path:
    """Write one HTML file that shows the tables of a reproduction, and return its path.

    Parameters
    ----------
    out_dir
        The folder of the reproduction. Figures and verdicts without a table in ``out_dir/tables`` are left out.
    path
        The file to write.
    title, intro, command
        Plain text: the heading, the paragraphs below it (else what was run, and what that means), and the command that
        makes the page again.
    """
    tables = read_tables(out_dir)
    shown = [figure for name in figure_names(tables) if (figure := compose(name, spec_of(name), tables[name]))]
    claims, theory = tables.get("claims", ResultTable({})), tables.get("theory", ResultTable({}))
    sections = []
    groups = grouped(claims)
    places = {figure.name: (f"#figure-{figure.name}", _called(figure)) for figure in shown}
    places |= {"theory": ("#theory", "formulas against measurement")} if len(theory) else {}
    if len(claims):
        body = paragraphs("What the paper claims, and what came out.", "caption") + claims_html(groups, places)
        sections.append(PageSection("findings", "claims", "Claim by claim", body))
    elif shown:
        sections.append(PageSection("findings", "findings", "Main findings", _takeaways(shown)))
    if shown:
        sections.append(
            PageSection("reading", "reading", "How to read the figures", paragraphs(f"{TERMS}\n\n{READING}"))
        )
    sections += _figures(shown)
    if len(theory):
        text = "z is the distance between measured and exact in standard errors; chance alone rarely exceeds 4."
        sections.append(
            PageSection("theory", "theory", "Formulas against measurement", paragraphs(text) + theory_table(theory))
        )
    if own := own_groups(claims):
        total = counted(row for group in own for row in group.rows)
        text = paragraphs(f"What sparsemean itself claims, past the paper, judged in the same way: {total}.")
        body = text + claims_html(own, places)
        sections.append(PageSection("own", "own claims", "Past the paper: our own claims", body))
    versions = sorted({value for table in tables.values() for value in table.distinct("version")}) or [__version__]
    data = [name for table in tables.values() for name in table.distinct("data")]
    sections.append(run_again(command, versions, sources(data)))
    badges = (tiles(groups) if len(claims) else []) + _theory_badges(theory)
    footer = paragraphs("Every number behind the figures is in the CSV files of the folder “tables”, one per figure.")
    return save_page(document(title, intro or what_was_run(tables), badges, sections, shown, footer), path)


def _figures(shown: Sequence[Figure]) -> list[PageSection]:
    """A section each; of figures past the paper only the first of a kind stands in the navigation."""
    sections, seen = [], set()
    for figure in shown:
        kind = next((name for name in KINDS if figure.spec.title.startswith(name)), "")
        sections.append(figure_section(figure, ("" if kind in seen else kind.lower()) if kind else None))
        seen.add(kind)
    return sections


def _called(figure: Figure) -> str:
    return f"Figure {figure.spec.paper}" if figure.spec.paper else figure.spec.short or figure.name


def sources(names: Iterable[str]) -> dict[str, str]:
    """Name of the data set, as people write it → its attribution; unknown names are left out.

    >>> sources(["cifar-10", "simulated"])
    {'CIFAR-10': 'Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009 (CIFAR-10)'}
    """
    found = {name: text for name in dict.fromkeys(names) if (text := _attribution(name))}
    return {setting_label("data", name): text for name, text in found.items()}


def _attribution(name: str) -> str:
    if name in ENTRIES:
        return ENTRIES[name].attribution
    return {"digits": lambda: digits.ATTRIBUTION, "weather": lambda: load_weather().attribution}.get(name, str)()


def _takeaways(figures: list[Figure]) -> str:
    lines = [
        f'<li><a href="#figure-{html.escape(figure.name)}">{html.escape(figure.spec.title)}</a>: '
        f"{html.escape(figure.takeaway)}"
        for figure in figures
        if figure.takeaway
    ]
    return f"<ul>{''.join(lines)}</ul>"


def _theory_badges(theory: ResultTable) -> list[str]:
    passed = [verdict_of(word) == "passed" for word in theory.text("passed").tolist()]
    if not passed:
        return []
    kind = "good" if all(passed) else "bad"
    return [f'<a class="tile {kind}" href="#theory"><b>{sum(passed)}</b> of {len(passed)} formulas hold</a>']
