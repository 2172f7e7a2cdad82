"""A progress bar on standard error, so that what is printed can be piped."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

STOPPED = 130  # what a shell says of a program that was stopped by Ctrl-C


def progress_bar() -> Progress:
    """Description, bar, how many of how many, time gone and time left; gone once the work is."""
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
