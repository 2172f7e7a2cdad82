"""The command line: one command from each file beside this one."""

from __future__ import annotations

import sys
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperGroup

from sparsemean import __version__
from sparsemean.errors import SparseMeanError
from sparsemean.lab.cli.bench import bench_command
from sparsemean.lab.cli.compare import compare_command
from sparsemean.lab.cli.frontier import frontier_command
from sparsemean.lab.cli.journal import inspect_command, verify_command
from sparsemean.lab.cli.node import admin_command, node_command
from sparsemean.lab.cli.output import plain
from sparsemean.lab.cli.progress import STOPPED
from sparsemean.lab.cli.reproduce import reproduce_command
from sparsemean.lab.cli.run import run_app
from sparsemean.lab.cli.schemes import schemes_command
from sparsemean.lab.cli.serve import serve_command
from sparsemean.lab.cli.theory import theory_command
from sparsemean.lab.cli.tokens import token_app


class Commands(TyperGroup):
    """Commands that say so when Ctrl-C stopped them; those that keep what is done say that themselves."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            Console(stderr=True).print("stopped")
            raise typer.Exit(STOPPED) from None


app = typer.Typer(
    name="sparsemean",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # which joins the lines of a paragraph, however wide the terminal is
    help="The mean of vectors on many nodes, from a few of their coordinates.\n\nBegin with `sparsemean compare FILE`, "
    "which says which scheme to use for vectors of yours, or `sparsemean compare` alone, on a month of weather.",
)
app.command("compare")(compare_command)
app.command("frontier")(frontier_command)
app.command("reproduce")(reproduce_command)
app.command("theory")(theory_command)
app.command("schemes")(schemes_command)
app.command("bench")(bench_command)
app.command("inspect")(inspect_command)
app.command("verify")(verify_command)
app.add_typer(run_app, name="run")
app.add_typer(token_app, name="token")
app.command("serve")(serve_command)
app.command("node")(node_command)
app.command("admin")(admin_command)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Options before the command."""


def run() -> None:
    """Run the command line: a mistake of the user's is one line and exit code 2, never a traceback."""
    try:
        app()
    except SparseMeanError as error:
        told = escape(plain(str(error)))
        Console(stderr=True).print(f"[bold red]sparsemean:[/] {told}", highlight=False, soft_wrap=True)
        sys.exit(2)
