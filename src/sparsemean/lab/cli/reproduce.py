"""``sparsemean reproduce``: the paper's whole evaluation, its figures and its claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from sparsemean.lab.cli.output import print_json, print_table
from sparsemean.lab.cli.progress import progress_bar


def reproduce_command(
    out: Annotated[
        Path, typer.Option(help="Folder for tables, figures and the page; a second run resumes there.")
    ] = Path("reproduction"),
    quick: Annotated[bool, typer.Option("--quick", help="Small packaged data, a few minutes.")] = False,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of the data sets (else SPARSEMEAN_DATA).")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch data sets that are missing.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repetitions of each setting.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; all cores by default.")] = None,
    figures: Annotated[str | None, typer.Option(help="Only these figures, separated by commas.")] = None,
    format: Annotated[Literal["png", "svg", "pdf"] | None, typer.Option(help="Also write each figure so.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON.")] = False,
) -> None:
    """Redraw every figure of the paper and say claim by claim whether it holds.

    Stop it with Ctrl-C and run it again: what is finished is not done again.
    """
