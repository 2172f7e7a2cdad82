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
    console = Console()
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right", no_wrap=i > 0 or not wrap)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    width = console.width if console.is_terminal else max(console.width, 160)
    Console(width=width).print(table)


def yes(value: bool) -> str:
    """The word for a truth value."""
    return "yes" if value else "no"
