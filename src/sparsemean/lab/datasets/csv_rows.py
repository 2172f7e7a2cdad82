"""Rows from a text file of cells: one line per node, or per round and node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path

import numpy as np

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets import cell
from sparsemean.lab.datasets.columns import LABELS, UNNAMED, Columns, columns_of, without_index
from sparsemean.lab.datasets.content import counted
from sparsemean.lab.datasets.labels import without_labels
from sparsemean.lab.datasets.reading import Reading
from sparsemean.lab.datasets.rows import Rows
from sparsemean.lab.datasets.text_lines import Line, lines_of


class DecimalComma(Exception):
    """A cell holds a number with a decimal comma, while points were expected."""


def rows(path: Path, reading: Reading, of_node: bool = False) -> Rows:
    """The rows of a text file whose cells commas, semicolons, tabs, bars or blanks separate.

    ``of_node`` says that the file is that of one node, so that dates are rounds.
    """
    return rows_in(lambda: lines_of(path), path, reading, of_node)


def rows_in(lines: Callable[[], Iterable[Line]], path: Path, reading: Reading, of_node: bool = False) -> Rows:
    """The rows in lines of cells, which are gone through once more where their decimal mark turns out to be a comma."""
    if reading.decimal is not None:
        return _parsed(iter(lines()), path, reading, of_node, reading.decimal)
    try:
        return _parsed(iter(lines()), path, reading, of_node, ".", guessed=True)
    except DecimalComma:
        pass
    with_commas = [text for _, line in lines() for text in line if cell.is_comma_number(text)]
    if all(map(cell.is_either, with_commas)):
        raise InvalidInput(
            f"{path}: the comma in {with_commas[0]!r} and all others may be a decimal mark or separate thousands; say "
            "--decimal , (in Python decimal=',') if it is a decimal mark, else export the numbers without it"
        )
    found = _parsed(iter(lines()), path, reading, of_node, ",")
    return replace(found, notes=[*found.notes, "commas within cells were read as decimal marks"])


def _parsed(
    lines: Iterator[Line], path: Path, reading: Reading, of_node: bool, decimal: str, guessed: bool = False
) -> Rows:
    """The rows in lines of cells; ``DecimalComma`` if a point was a wrong guess."""
    first, second = next(lines, None), next(lines, None)
    if first is None:
        raise InvalidInput(f"{path} holds no numbers: the file is empty")
    names = names_in(first, path, reading.header, alone=second is None)
    following = [] if second is None else [second]
    data = chain([] if names else [first], following, lines)
    width = len(first[1])
    sample = first[1] if not names else second[1] if second else []
    columns = columns_of(
        path,
        names,
        width,
        reading,
        of_node,
        dated=lambda i: i < len(sample) and cell.is_date(sample[i]),
        whole=lambda i: i < len(sample) and sample[i].isdecimal(),
    )
    numbers: list[Doubles] = []
    places: list[int] = []
    nodes: list[str] = []
    rounds: list[int | datetime] = []
    index: list[str] = []
    stamps: list[list[str]] = []
    for line, row in data:
        place = f"{path}: line {line}"
        if len(row) != width:
            raise InvalidInput(
                f"{place} has {counted(len(row), 'cell')}{'' if row[-1] else ', the last one empty'}, the first line "
                f"has {width}; every line needs the same number, and text with a separator in it needs quotes"
            )
        if columns.index is not None:
            index.append(row[columns.index])
        if columns.dates:
            stamps.append([row[i] for i in columns.dates])
        if names and not places:
            _check_second(row, columns, place)
        numbers.append(_vector(row, columns, place, decimal, guessed))
        places.append(line)
        if columns.node is not None:
            nodes.append(_node(row[columns.node], place))
        if columns.round is not None:
            rounds.append(_round(row[columns.round], place))
    table = np.array(numbers, dtype=np.float64).reshape(len(numbers), len(columns.coordinates))
    columns, table = _without_empty(columns, table, names)
    columns, table = without_labels(columns, table, stamps, reading, of_node)
    columns, named = without_index(columns, index, of_node)
    return Rows(
        path=path,
        numbers=table,
        nodes=named or nodes or None,
        rounds=rounds or None,
        place=lambda row: f"line {places[row]}",
        columns=[f"column {columns.names[i]}" for i in columns.coordinates],
        names=[names[i] for i in columns.coordinates] if names else (),
        origin=columns.origin(
            f"lines {places[0]} to {places[-1]}" if len(places) > 1 else f"line {places[0]}" if places else ""
        ),
        notes=[*([] if reading.header is not None else _header_note(names, first[0])), *columns.notes],
        stamps=stamps,
    )


def _without_empty(columns: Columns, table: Doubles, names: Sequence[str]) -> tuple[Columns, Doubles]:
    """Without columns that have neither a name nor any number, as where lines end in a separator."""
    filled = ~np.isnan(table)
    kept = [
        j for j, i in enumerate(columns.coordinates) if filled[:, j].any() or not len(table) or (names and names[i])
    ]
    if len(kept) == table.shape[1]:
        return columns, table
    note = f"{counted(table.shape[1] - len(kept), 'column')} without a name or any number left out"
    coordinates = [columns.coordinates[j] for j in kept]
    return replace(columns, coordinates=coordinates, notes=[*columns.notes, note]), table[:, kept]


def names_in(first: Line, path: Path, header: bool | None, alone: bool) -> Sequence[str]:
    """The names in the first line; none if it is a line of data.

    Some names are empty: of the first column where pandas wrote its index there, and where nothing but separators are.
    """
    line, row = first
    if header is False:
        return []
    others = row[1:] if row[0].lower() in UNNAMED else row
    by_pandas = numbered(others) or (numbered(row[1:]) and not _data(row[0]))
    told = header or by_pandas or set(LABELS) & {name.lower() for name in row}
    if header is None and all(map(_data, row)) and any(map(_numeric, row)) and not (by_pandas and not alone):
        if not row[0] and all(map(_numeric, others)):
            raise InvalidInput(
                f"{path}: line {line} begins with an empty cell; say --header if it holds names, --no-header if numbers"
            )
        return []
    if not told and any(map(_numeric, others)):
        raise InvalidInput(
            f"{path}: line {line} mixes numbers and text ({', '.join(row[:4])}…); if it holds names, say --header; if "
            "not, --no-header, and --node 1 where column 1 names the nodes"
        )
    named = [name.lower() for name in others if name]
    if not named or len(set(named)) != len(named):
        raise InvalidInput(
            f"{path}: line {line} is no header, since its names are not distinct, nor are they numbers; say "
            "--no-header if it holds data"
        )
    return row


def _data(text: str) -> bool:
    return cell.number(text) is not None or cell.is_comma_number(text) or cell.is_date(text)


def _numeric(text: str) -> bool:
    """Whether the cell is a number that is there."""
    return text.lower() not in cell.MISSING and (cell.number(text) is not None or cell.is_comma_number(text))


def numbered(names: Sequence[str]) -> bool:
    """Whether these are pandas' names for columns that have none: 0, 1, 2, …"""
    return len(names) > 0 and list(names) == [str(i) for i in range(len(names))]


def _header_note(names: Sequence[str], line: int) -> list[str]:
    if not numbered(names):
        return []
    return [
        f"line {line}, which counts 0, 1, 2, …, was read as pandas' column names and not as a node (--no-header, or "
        "header=False, reads it as a node)"
    ]


def _vector(row: Sequence[str], columns: Columns, place: str, decimal: str, guessed: bool) -> Doubles:
    """The row's numbers, NaN where one is missing."""
    coordinates = columns.coordinates
    if decimal == ".":
        try:
            return np.array([float(row[i]) for i in coordinates])
        except ValueError:
            pass
    found = [cell.number(row[i], decimal) for i in coordinates]
    if None in found:
        i = coordinates[found.index(None)]
        if guessed and cell.is_comma_number(row[i]):
            raise DecimalComma
        raise InvalidInput(f"{place}, column {columns.names[i]}: {cell.why_no_number(row[i], decimal)}")
    return np.array(found, np.float64)


def _check_second(row: Sequence[str], columns: Columns, place: str) -> None:
    """Raise ``InvalidInput`` where the line below the names goes on with them, as with units."""
    cells = [row[i] for i in columns.coordinates]
    strange = [text for text in cells if not _data(text)]
    if strange and not any(map(_numeric, cells)):
        raise InvalidInput(
            f"{place}, the first below the names, holds no numbers but {strange[0][:40]!r}; if it holds units or a "
            "rule, delete it from the file; if the column names the nodes, say so with --node and its name or number"
        )


def _round(text: str, place: str) -> int | datetime:
    try:
        return int(text)
    except ValueError:
        pass
    told = cell.moment(text)
    if told is None:
        raise InvalidInput(
            f"{place}: the round must be a whole number or a date such as 2024-01-31T06:00, got {text[:40]!r}"
        )
    return told


def _node(text: str, place: str) -> str:
    if not text:
        raise InvalidInput(f"{place}: the node has no name; fill it in, or leave the line out")
    return text
