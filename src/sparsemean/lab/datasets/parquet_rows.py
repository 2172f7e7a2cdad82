"""Rows from a Parquet file: one row per node, or per round and node; needs pyarrow."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import numpy as np

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.columns import columns_of, without_index
from sparsemean.lab.datasets.labels import without_labels
from sparsemean.lab.datasets.reading import Reading
from sparsemean.lab.datasets.rows import Rows
from sparsemean.lab.optional_modules import optional


def rows(path: Path, reading: Reading, of_node: bool = False) -> Rows:
    """The rows of a table; ``of_node`` says that the file is that of one node, so that dates are rounds."""
    parquet = optional("pyarrow.parquet", "reading .parquet files", "lab")
    types = optional("pyarrow.types", "reading .parquet files", "lab")
    try:
        with parquet.ParquetFile(path) as file:
            table = file.read()
    except (OSError, optional("pyarrow", "reading .parquet files", "lab").ArrowException) as error:
        raise InvalidInput(f"{path} cannot be read as Parquet ({error})") from error
    written = [str(name) for name in table.column_names]
    names = ["" if name.startswith("__index_level_") else name for name in written]
    if len({name.lower() for name in written}) != len(written):
        raise InvalidInput(f"{path}: column names are not distinct: {', '.join(written)}")
    order = sorted(range(len(names)), key=lambda i: names[i] != "")  # pandas puts its index last
    kinds = [table.column(i).type for i in order]
    columns = columns_of(
        path,
        [names[i] for i in order],
        len(names),
        reading,
        of_node,
        dated=lambda i: types.is_temporal(kinds[i]),
        whole=lambda i: types.is_integer(kinds[i]),
    )
    index = [] if columns.index is None else [str(value) for value in table.column(order[columns.index]).to_pylist()]
    columns, named = without_index(columns, index, of_node)
    if named is None and columns.node is not None:
        named = _nodes(table.column(order[columns.node]), path)
    found = [_numbers(table.column(order[i]), written[order[i]], path) for i in columns.coordinates]
    numbers = np.stack(found, axis=1) if found else np.empty((table.num_rows, 0))
    held = [table.column(order[i]).to_pylist() for i in columns.dates]
    stamps = [list(map(str, values)) for values in zip(*held, strict=True)]
    columns, numbers = without_labels(columns, numbers, stamps, reading, of_node)
    return Rows(
        path=path,
        numbers=numbers,
        nodes=named,
        rounds=None if columns.round is None else _rounds(table.column(order[columns.round]), path),
        place=lambda row: f"row {row} (counted from 0)",
        columns=[f"column {written[order[i]]!r}" for i in columns.coordinates],
        names=[names[order[i]] for i in columns.coordinates],
        origin=columns.origin(),
        notes=columns.notes,
        stamps=stamps,
    )


def _numbers(column: Any, name: str, path: Path) -> Doubles:
    """A numeric column, NaN where nothing is."""
    values = np.asarray(column.to_numpy())
    if values.dtype.kind not in "iuf":
        raise InvalidInput(
            f"{path}: column {name!r} holds {column.type}, not numbers; say --node {name} if it names the nodes, or "
            "name those that count with --columns"
        )
    return values.astype(np.float64)


def _nodes(column: Any, path: Path) -> list[str]:
    values = column.to_pylist()
    for row, value in enumerate(values):
        if value is None or value == "":
            raise InvalidInput(f"{path}: row {row} (counted from 0): the node has no name")
    return [str(value) for value in values]


def _rounds(column: Any, path: Path) -> list[int | datetime]:
    return [_round(value, f"{path}: row {row} (counted from 0)") for row, value in enumerate(column.to_pylist())]


def _round(value: Any, place: str) -> int | datetime:
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime.combine(value, time(), UTC)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(f"{place}: the round must be a whole number or a date, got {value!r}")
    return value
