"""Output of the commands: tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def print_json(content: Any) -> None:
    """JSON on standard output; what is not finite becomes null, which JSON can say."""
    json.dump(_sayable(content), sys.stdout, indent=2)
    sys.stdout.write("\n")


def _sayable(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _sayable(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_sayable(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def plain(text: str) -> str:
    r"""The text with everything that a terminal would act on written out, such as escape codes and line breaks.

    Names of nodes and files come from outside: printed raw, they could move the cursor, hide text or forge a line.

    >>> print(plain("station\x1b[2J\n7 é"))
    station\x1b[2J\n7 é
    """
    harmless = [c.isprintable() or unicodedata.category(c) == "Zs" for c in text]  # Zs: spaces of any width
    return "".join(c if shown else c.encode("unicode_escape").decode() for c, shown in zip(text, harmless, strict=True))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], wrap: bool = False) -> None:
    """A table whose columns after the first are aligned right; it keeps its width where no terminal limits it.

    Cells are plain text: neither markup nor control characters in them have an effect. ``wrap`` breaks those of the
    first column, instead of cutting them, where the terminal is too narrow.
    """
    Console(width=table_width()).print(_table(columns, rows, wrap), "")


def table_fits(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
    """Whether the terminal is wide enough for all of it."""
    width = table_width()
    return Console(width=10 * width).measure(_table(columns, rows, wrap=False)).maximum <= width


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], wrap: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1, 0, 0))
    for i, column in enumerate(columns):
        kept, over = i > 0 or not wrap, "fold" if wrap and i == 0 else "ellipsis"
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=kept, overflow=over)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def table_width() -> int:
    """How wide a table may be: as the terminal; as it likes where there is none, as in a pipe."""
    console = Console()
    return console.width if console.is_terminal else 10_000


def yes(value: bool) -> str:
    """The word for a truth value."""
    return "yes" if value else "no"
