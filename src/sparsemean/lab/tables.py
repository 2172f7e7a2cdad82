"""Result tables as CSV files: the same rows give the same bytes, and a file is written whole or not at all."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from sparsemean.errors import InvalidInput

Cell: TypeAlias = int | float | str | None
TableRow: TypeAlias = dict[str, Cell]
"""Column name → cell; None is an unknown value."""

FIRST = (
    *("figure", "task", "data", "split", "nodes", "share", "scheme", "seed", "round"),
    *("objective", "mse", "nmse", "exact", "error", "error_se", "ratio", "bytes_per_node"),
)
"""The usual columns, which come first in every table."""
LAST = ("version",)


def columns_of(rows: Iterable[TableRow]) -> list[str]:
    """The usual columns, then the other columns of the rows in alphabetical order, then the version.

    >>> columns_of([{"version": "1", "k": 3, "bound": 2.0}])[-3:]
    ['bound', 'k', 'version']
    """
    named = {name for row in rows for name in row}
    return [*FIRST, *sorted(named - {*FIRST, *LAST}), *LAST]


def cell(value: Cell) -> str:
    """The text of a cell: numbers with all their digits, empty where the value is unknown.

    >>> cell(0.1), cell(None), cell(math.inf), cell(3)
    ('0.1', '', 'inf', '3')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def write_table(path: Path, rows: Sequence[TableRow], columns: Sequence[str] | None = None) -> None:
    """Write the rows below a line of column names; ``columns`` are those of ``columns_of`` by default."""
    names = columns_of(rows) if columns is None else columns
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([cell(row.get(name)) for name in names] for row in rows)
    write_whole(path, text.getvalue())


def read_table(path: str | os.PathLike[str]) -> list[dict[str, str]]:
    """The rows as text, by column name; blank lines are skipped, and spaces around cells removed.

    Raises ``InvalidInput`` for a line with more or fewer cells than the first.
    """
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        lines = [[text.strip() for text in line] for line in csv.reader(file)]
    names = lines[0] if lines else []
    for number, line in enumerate(lines, start=1):
        if line and len(line) != len(names):
            raise InvalidInput(
                f"{path}, line {number}: {len(line)} cells under {len(names)} names; a line with more or fewer cells "
                "than the first is damaged, make the table again"
            )
    return [dict(zip(names, line, strict=True)) for line in lines[1:] if line]


def write_whole(path: Path, text: str) -> None:
    """Write a file by replacing it: an interruption leaves the old content or the new, never a part of it."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
