"""Rows from a CSV file: one line per node, or per round and node."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.rows import Rows
from sparsemean.payload import Doubles

LABELS = ("round", "node")

Line = tuple[int, list[str]]


def read(path: Path) -> Rows:
    """The rows of a comma-separated UTF-8 file; a first line of names alone, or with ``node`` in it, is a header."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return parsed(cells(file), path)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read as comma-separated UTF-8 text ({error})") from error


def cells(lines: Iterator[str]) -> Iterator[Line]:
    """Line number and stripped cells of every line that is not blank."""
    reader = csv.reader(lines, strict=True)
    for row in reader:
        stripped = [cell.strip() for cell in row]
        if stripped not in ([], [""]):
            yield reader.line_num, stripped


def parsed(lines: Iterator[Line], path: Path) -> Rows:
    """The rows in lines of cells."""
    first = next(lines, None)
    if first is None:
        raise InvalidInput(f"{path} holds no numbers: the file is empty")
    names = header(first, path)
    labels = {label: names.index(label) for label in LABELS if label in names}
    coordinates = [i for i in range(len(first[1])) if i not in labels.values()]
    data = [first] if not names else []

    numbers, places, nodes, rounds = [], [], [], []
    for line, row in [*data, *lines]:
        if len(row) != len(first[1]):
            raise InvalidInput(f"{path}: line {line} has {len(row)} cells, the first line has {len(first[1])}")
        numbers.append(vector(row, coordinates, f"{path}: line {line}"))
        places.append(line)
        if "node" in labels:
            nodes.append(node(row[labels["node"]], f"{path}: line {line}"))
        if "round" in labels:
            rounds.append(whole(row[labels["round"]], f"{path}: line {line}"))
    return Rows(
        path=path,
        numbers=np.array(numbers, dtype=np.float64).reshape(len(numbers), len(coordinates)),
        nodes=nodes if "node" in labels else None,
        rounds=rounds if "round" in labels else None,
        place=lambda row: f"line {places[row]}",
        columns=[f"column {i + 1}" for i in coordinates],
    )


def header(first: Line, path: Path) -> Sequence[str]:
    """The names in the first line, in lower case; none if it is a line of numbers."""
    line, row = first
    names = [cell.lower() for cell in row]
    numeric = [is_number(cell) for cell in row]
    if all(numeric):
        return []
    if any(numeric) and not set(LABELS) & set(names):
        raise InvalidInput(
            f"{path}: line {line} mixes numbers and text ({', '.join(row[:4])}…); remove a column of text, or name it "
            f"node in a header (pandas: to_csv(index_label='node'), or index=False, header=False)"
        )
    if "" in names or len(set(names)) != len(names):
        raise InvalidInput(f"{path}: line {line} is no header, since its names are not distinct, nor are they numbers")
    return names


def is_number(cell: str) -> bool:
    """Whether the cell can be read as a number, NaN and infinity included."""
    try:
        float(cell)
    except ValueError:
        return False
    return True


def vector(row: Sequence[str], coordinates: Sequence[int], place: str) -> Doubles:
    """The row's numbers."""
    try:
        return np.array([float(row[i]) for i in coordinates])
    except ValueError:
        column = next(i for i in coordinates if not is_number(row[i]))
        what = f"{row[column][:40]!r} is not a number" if row[column] else "the cell is empty"
        raise InvalidInput(
            f"{place}, column {column + 1}: {what}; numbers look like -1.5e3, columns are separated by commas"
        ) from None


def whole(cell: str, place: str) -> int:
    """The cell's round."""
    try:
        return int(cell)
    except ValueError:
        raise InvalidInput(f"{place}: the round must be a whole number, got {cell[:40]!r}") from None


def node(cell: str, place: str) -> str:
    """The cell's name."""
    if not cell:
        raise InvalidInput(f"{place}: the node has no name")
    return cell
