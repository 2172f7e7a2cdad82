"""``sparsemean reproduce``: the paper's whole evaluation, its figures and its claims."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from sparsemean.lab import datasets
from sparsemean.lab.cli.output import plain, print_json
from sparsemean.lab.cli.progress import progress_bar
from sparsemean.lab.optional_modules import require
from sparsemean.lab.tables import read_table

LARGE_SETS = ("fashion-mnist", "cifar-10")


def reproduce_command(
    out: Annotated[Path, typer.Option(help="Folder for tables, figures and page; run again to resume there.")] = Path(
        "reproduction"
    ),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small packaged data, about four minutes; needs sparsemean[lab,report].")
    ] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the data sets (else SPARSEMEAN_DATA).")] = None,
    download: Annotated[bool, typer.Option("--download", help="First fetch the data sets into --data-dir.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repetitions of each setting.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    figures: Annotated[str | None, typer.Option(help="Only these figures, separated by commas.")] = None,
    format: Annotated[
        Literal["png", "svg", "pdf"] | None, typer.Option(help="Also write each figure as a file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON.")] = False,
) -> None:
    """Redraw every figure of the paper that this follows, and say claim by claim whether it holds.

    Stop it with Ctrl-C and run it again: what is finished is not done again.
    """
    from sparsemean.lab.experiments import reproduce
    from sparsemean.lab.report import write_figures, write_report
    from sparsemean.lab.report.claim_lines import claim_lines

    if format is not None:
        require("matplotlib", "a figure as a file", "report")
    if download:
        for name in LARGE_SETS:
            datasets.fetch(name, data_dir)
    wanted = [name.strip() for name in figures.split(",")] if figures else None
    with progress_bar() as bar:
        running = bar.add_task("reproducing", total=None)
        tables = reproduce(
            out,
            quick,
            data_dir,
            seeds,
            jobs,
            wanted,
            lambda done, total, label, _: bar.update(running, completed=done, total=total, description=label),
        )
    page = write_report(out, out / "report.html", command=shlex.join(["sparsemean", *sys.argv[1:]]))
    if format is not None:
        write_figures(out, out / "figures", format)
    claims = read_table(tables["claims"])
    if as_json:
        print_json(claims)
        return
    console = Console()
    for line in claim_lines(claims):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    for name, path in (("Report", page), ("Tables", out / "tables")):
        console.print(f"{name}: {plain(str(path.resolve()))}", soft_wrap=True, highlight=False, markup=False)
