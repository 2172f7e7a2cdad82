"""Rows from a CSV file: one line per node, or per round and node."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.rows import LABELS, Rows
from sparsemean.lab.numbers import parse_number

Line = tuple[int, list[str]]


def read(path: Path, header: bool | None = None) -> Rows:
    """The rows of a comma-separated UTF-8 file.

    ``header`` says whether the first line holds names. By default that is told by the line itself: names alone, or
    ``node`` or ``round`` among them, or pandas' column numbers 0, 1, 2, …, which the rows' ``note`` then mentions.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return parsed(cells(file), path, header)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidInput(f"{path} cannot be read as comma-separated UTF-8 text ({error})") from error


def cells(lines: Iterator[str]) -> Iterator[Line]:
    """Line number and stripped cells of every line that is not blank."""
    reader = csv.reader(lines, strict=True)
    for row in reader:
        stripped = [cell.strip() for cell in row]
        if stripped not in ([], [""]):
            yield reader.line_num, stripped


def parsed(lines: Iterator[Line], path: Path, header: bool | None = None) -> Rows:
    """The rows in lines of cells."""
    first, second = next(lines, None), next(lines, None)
    if first is None:
        raise InvalidInput(f"{path} holds no numbers: the file is empty")
    following = [] if second is None else [second]
    names = names_in(first, path, header, alone=second is None)
    data = chain([] if names else [first], following, lines)
    labels = {label: names.index(label) for label in LABELS if label in names}
    index = 0 if names and names[0] == "" else None
    coordinates = [i for i in range(len(first[1])) if i not in labels.values() and i != index]

    numbers: list[Doubles] = []
    places: list[int] = []
    nodes, rounds = [], []
    for line, row in data:
        if len(row) != len(first[1]):
            raise InvalidInput(f"{path}: line {line} has {len(row)} cells, the first line has {len(first[1])}")
        if index is not None and row[index] != str(len(places)):
            raise InvalidInput(
                f"{path}: line {line}: the first column has no name and does not count lines from 0, so it is no index "
                "that could be left out; name it (pandas: to_csv(index_label='node')), or write index=False"
            )
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
        note="" if header is not None else note(names, first[0]),
    )


def names_in(first: Line, path: Path, header: bool | None, alone: bool) -> Sequence[str]:
    """The names in the first line, in lower case; none if it is a line of numbers.

    The name of the first column is empty where pandas wrote its index there.
    """
    line, row = first
    names = [cell.lower() for cell in row]
    if header is False:
        return []
    if header is None and all(map(is_number, row)):
        return names if numbered(names) and not alone else []
    others = names[1:] if names[0] == "" else names
    told = header or numbered(others) or set(LABELS) & set(names)
    if any(map(is_number, others)) and not told:
        raise InvalidInput(
            f"{path}: line {line} mixes numbers and text ({', '.join(row[:4])}…); remove a column of text, or name it "
            f"node in a header (pandas: to_csv(index_label='node'), or index=False, header=False)"
        )
    if not others or "" in others or len(set(others)) != len(others):
        raise InvalidInput(f"{path}: line {line} is no header, since its names are not distinct, nor are they numbers")
    return names


def numbered(names: Sequence[str]) -> bool:
    """Whether these are pandas' names for columns that have none: 0, 1, 2, …"""
    return len(names) > 0 and list(names) == [str(i) for i in range(len(names))]


def note(names: Sequence[str], line: int) -> str:
    """What was read as pandas' own and not as data, for people; empty where nothing was."""
    if names and names[0] == "":
        return (
            "the first column, which has no name and counts 0, 1, 2, …, was read as pandas' index and not as a "
            "coordinate (give it a name if it is one)"
        )
    if numbered(names):
        return (
            f"line {line}, which counts 0, 1, 2, …, was read as pandas' column names and not as a node (--no-header, "
            "or header=False, reads it as a node)"
        )
    return ""


def is_number(cell: str) -> bool:
    """Whether the cell can be read as a number, NaN and infinity included."""
    return parse_number(cell) is not None


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
