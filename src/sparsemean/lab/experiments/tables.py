"""Tables as CSV files: the same rows give the same bytes."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from sparsemean.errors import InvalidInput
from sparsemean.lab.experiments.setting import Cell, Row

FIRST = (
    *("figure", "task", "data", "split", "nodes", "share", "scheme", "seed", "round"),
    *("objective", "mse", "nmse", "exact", "error", "error_se", "ratio", "bytes_per_node"),
)
LAST = ("version",)


def columns_of(rows: Iterable[Row]) -> list[str]:
    """The usual columns, then whatever else the rows have in the alphabet, then the version.

    >>> columns_of([{"version": "1", "k": 3, "bound": 2.0}])[-3:]
    ['bound', 'k', 'version']
    """
    named = {name for row in rows for name in row}
    return [*FIRST, *sorted(named - {*FIRST, *LAST}), *LAST]


def cell(value: Cell) -> str:
    """Numbers with all their digits; nothing for what is not known.

    >>> cell(0.1), cell(None), cell(math.inf), cell(3)
    ('0.1', '', 'inf', '3')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(float(value)) if isinstance(value, float) else str(value)


def write_table(path: Path, rows: Sequence[Row], columns: Sequence[str] | None = None) -> None:
    """Write all of it or nothing."""
    names = columns_of(rows) if columns is None else columns
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([cell(row.get(name)) for name in names] for row in rows)
    write_whole(path, text.getvalue())


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows as text."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if any(None in row or None in row.values() for row in rows):
        raise InvalidInput(f"{path} has lines with more or fewer cells than its first; make the table again")
    return rows


def write_whole(path: Path, text: str) -> None:
    """Beside the file first, then in its place: an interruption leaves the old one or the new one, never a half."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
