"""Rows from a Parquet file: one row per node, or per round and node; needs pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.rows import LABELS, Rows
from sparsemean.lab.optional_modules import optional


def read(path: Path) -> Rows:
    """The rows of a table whose columns are numbers, besides ``round`` and ``node``."""
    parquet = optional("pyarrow.parquet", "reading .parquet files", "lab")
    try:
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except (OSError, optional("pyarrow", "reading .parquet files", "lab").ArrowException) as error:
        raise InvalidInput(f"{path} cannot be read as Parquet ({error})") from error
    names = [str(name) for name in table.column_names]
    lowered = [name.lower() for name in names]
    if len(set(lowered)) != len(lowered):
        raise InvalidInput(f"{path}: column names are not distinct: {', '.join(names)}")
    coordinates = [i for i, name in enumerate(lowered) if name not in LABELS]
    columns = [numbers(table.column(i), names[i], path) for i in coordinates]
    return Rows(
        path=path,
        numbers=np.stack(columns, axis=1) if columns else np.empty((table.num_rows, 0)),
        nodes=nodes(table.column(lowered.index("node")), path) if "node" in lowered else None,
        rounds=rounds(table.column(lowered.index("round")), path) if "round" in lowered else None,
        place=lambda row: f"row {row} (counted from 0)",
        columns=[f"column {names[i]!r}" for i in coordinates],
    )


def numbers(column: Any, name: str, path: Path) -> Doubles:
    """A numeric column, NaN where nothing is."""
    if name.startswith("__index_level_"):
        raise InvalidInput(f"{path}: column {name!r} is an unnamed pandas index; call it 'node', or write index=False")
    values = np.asarray(column.to_numpy())
    if values.dtype.kind not in "iuf":
        raise InvalidInput(f"{path}: column {name!r} holds {column.type}, not numbers; remove it, or call it 'node'")
    return values.astype(np.float64)


def nodes(column: Any, path: Path) -> list[str]:
    """The node names."""
    values = column.to_pylist()
    for row, value in enumerate(values):
        if value is None or value == "":
            raise InvalidInput(f"{path}: row {row} (counted from 0): the node has no name")
    return [str(value) for value in values]


def rounds(column: Any, path: Path) -> list[int]:
    """The round numbers."""
    values: list[int] = column.to_pylist()
    for row, value in enumerate(values):
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidInput(f"{path}: row {row} (counted from 0): the round must be a whole number, got {value!r}")
    return values
