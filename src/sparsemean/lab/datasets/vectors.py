"""A user's own vectors, from ``.npy``, ``.npz``, ``.csv`` or ``.parquet``; the formats are told in ``docs/data.md``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import array_file, csv_rows, parquet_rows
from sparsemean.lab.datasets.find import Directory
from sparsemean.lab.datasets.rows import arranged
from sparsemean.lab.datasets.stream import Stream
from sparsemean.payload import Doubles

READERS: dict[str, Callable[[Path], tuple[Doubles, tuple[str, ...]]]] = {
    ".npy": array_file.read,
    ".npz": array_file.read,
    ".csv": lambda path: arranged(csv_rows.read(path)),
    ".parquet": lambda path: arranged(parquet_rows.read(path)),
}


def load(path: Directory) -> Stream:
    """The file's vectors as (rounds, nodes, coordinates) in float64, with the nodes' names."""
    vectors, nodes = read(Path(path))
    return Stream(Path(path).name, vectors, nodes)


def load_vectors(path: Directory) -> Doubles:
    """The file's vectors alone: (rounds, nodes, coordinates)."""
    return read(Path(path))[0]


def read(path: Path) -> tuple[Doubles, tuple[str, ...]]:
    """Vectors and node names, by the reader for the file's ending."""
    reader = READERS.get(path.suffix.lower())
    if not reader:
        raise InvalidInput(f"{path}: the ending {path.suffix!r} is unknown; known are {', '.join(READERS)}")
    if not path.is_file():
        raise InvalidInput(f"{path} is not there, or is no file")
    return reader(path)
