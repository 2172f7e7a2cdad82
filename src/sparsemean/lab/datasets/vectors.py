"""A user's own vectors from .npy, .npz, .csv or .parquet files. ``docs/data.md`` describes the formats."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import array_file, csv_rows, parquet_rows
from sparsemean.lab.datasets.find import Directory
from sparsemean.lab.datasets.rows import Rows, arranged
from sparsemean.lab.datasets.stream import Stream

Read: TypeAlias = tuple[Doubles, tuple[str, ...], str]
"""Vectors, names of the nodes, and a note for people."""

READERS: dict[str, Callable[[Path], Read]] = {
    ".npy": lambda path: (*array_file.read(path), ""),
    ".npz": lambda path: (*array_file.read(path), ""),
    ".csv": lambda path: _table(csv_rows.read(path)),
    ".parquet": lambda path: _table(parquet_rows.read(path)),
}


def load(path: Directory, header: bool | None = None) -> Stream:
    """The file's vectors as (rounds, nodes, coordinates) in float64, with the nodes' names.

    ``header`` says whether the first line of a ``.csv`` file holds names; by default the line itself tells.
    """
    vectors, nodes, note = read(Path(path), header)
    return Stream(Path(path).name, vectors, nodes, note=note)


def read(path: Path, header: bool | None = None) -> Read:
    """Vectors, node names and a note, by the reader for the file's ending."""
    ending = path.suffix.lower()
    reader = READERS.get(ending)
    if not reader:
        raise InvalidInput(f"{path}: the ending {path.suffix!r} is unknown; known are {', '.join(READERS)}")
    if not path.is_file():
        raise InvalidInput(f"{path} is not there, or is no file")
    if header is None:
        return reader(path)
    if ending != ".csv":
        raise InvalidInput(f"{path}: only a .csv file may or may not have a header; leave header= out")
    return _table(csv_rows.read(path, header))


def _table(rows: Rows) -> Read:
    return (*arranged(rows), rows.note)
