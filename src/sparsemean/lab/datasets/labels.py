"""Columns of whole numbers that are no measurements: they count lines, or name nodes or times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparsemean._types import Doubles
from sparsemean.lab.datasets.columns import Columns
from sparsemean.lab.datasets.content import listed
from sparsemean.lab.datasets.reading import Reading

LINES = " (where lines are times and columns nodes, say --transpose, and --steps 24 for rounds of 24 lines)"

ENOUGH = 20
"""Lines from which on such a pattern is hardly chance."""


def without_labels(
    columns: Columns, table: Doubles, stamps: Sequence[Sequence[str]], reading: Reading, of_node: bool
) -> tuple[Columns, Doubles]:
    """Without a first column that counts lines; with a note of it, of dates left out, and of what may be a label.

    Parameters
    ----------
    columns
        What the columns of the table mean.
    table
        Shape (lines, coordinates).
    stamps
        What the columns of dates hold, line by line.
    reading
        What the user told; columns that the user named are measurements.
    of_node
        Whether all lines are those of one node.
    """
    if reading.columns or not table.size:
        return columns, table
    notes = list(columns.notes)
    coordinates = list(columns.coordinates)
    if columns.may_count and _counts(table[:, 0]):
        notes.append(f"column {columns.names[0]} counts lines, and was left out (--columns names what counts)")
        coordinates, table = coordinates[1:], table[:, 1:]
    found = [i for j, i in enumerate(coordinates) if _label(table[:, j], stamps)]
    one_node = columns.node is not None or of_node
    if columns.dates:
        hint = "" if one_node or reading.transpose or found else LINES
        dates = listed([columns.names[i] for i in columns.dates])
        notes.append(f"column {dates} holds dates or times, and was left out{hint}")
    if found:
        name = columns.option(found[0])
        nodes = "" if one_node else f"if it names the nodes, say --node {name}; "
        notes.append(
            f"column {listed([columns.names[i] for i in found])} looks like a label, not a measurement, and was taken "
            f"for numbers that count; {nodes}if it says the round, --round {name}; to leave it out, name the "
            "others with --columns"
        )
    return replace(columns, coordinates=coordinates, notes=notes), table


def _counts(values: Doubles) -> bool:
    """Whether these go up by one with every line, or did so before lines were taken out or mixed."""
    if not np.isfinite(values).all():
        return False
    return (len(values) > 2 and bool((np.diff(values) == 1).all())) or _numbered(np.unique(values), len(values))


def _label(values: Doubles, stamps: Sequence[Sequence[str]]) -> bool:
    if not (np.isfinite(values).all() and (values == np.floor(values)).all()):
        return False
    distinct, codes = np.unique(values, return_inverse=True)
    return _numbered(distinct, len(values)) or _cycles(codes) or _crossed(codes, stamps)


def _numbered(distinct: Doubles, lines: int) -> bool:
    """Whether the lines have distinct numbers, almost without gaps, in whatever order."""
    return lines == len(distinct) >= ENOUGH and float(distinct[-1] - distinct[0]) < lines / 0.9


def _cycles(codes: np.typing.NDArray[np.intp]) -> bool:
    """Whether nearly every number is followed by one and the same, as hours of days are; repetitions aside."""
    kept = codes[np.flatnonzero(np.diff(codes, prepend=-1))]
    size = int(codes.max()) + 1
    if size < 3 or len(kept) <= max(ENOUGH, 1.5 * size):
        return False
    pairs, counts = np.unique(kept[:-1] * size + kept[1:], return_counts=True)
    commonest = np.zeros(size, np.intp)
    np.maximum.at(commonest, pairs // size, counts)
    return bool(commonest.sum() >= 0.95 * (len(kept) - 1))


def _crossed(codes: np.typing.NDArray[np.intp], stamps: Sequence[Sequence[str]]) -> bool:
    """Whether the same numbers stand beside most dates, each once, as the numbers of stations do."""
    times, size, lines = {tuple(stamp) for stamp in stamps}, int(codes.max()) + 1, len(codes)
    if size < 2 or len(times) < 2 or max(size, len(times)) > lines / 2 or lines < size * len(times) / 2:
        return False
    return len({(code, *stamp) for code, stamp in zip(codes.tolist(), stamps, strict=True)}) == lines
