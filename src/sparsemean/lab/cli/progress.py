"""A progress bar on standard error, so that what is printed can be piped."""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

STOPPED = 130  # what a shell says of a program that was stopped by Ctrl-C


class _Bar(Progress):
    """A bar that is not deaf to Ctrl-C.

    Python drops what is raised in a destructor, or in a callback from C, and a ``KeyboardInterrupt`` may be just there.
    The next ``update`` raises it again.
    """

    _pressed = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self._interrupt)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)
        super().__exit__(kind, error, trace)

    def update(self, *task: Any, **told: Any) -> None:
        if self._pressed:
            self._pressed = False
            raise KeyboardInterrupt
        super().update(*task, **told)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._pressed = True
        raise KeyboardInterrupt


def progress_bar() -> Progress:
    """Description, bar, how many of how many, time gone and time left; gone once the work is."""
    console = Console(stderr=True)
    return _Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
