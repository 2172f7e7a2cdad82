"""What the columns of a table mean: coordinates, the node, the round, or nothing that counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.content import listed
from sparsemean.lab.datasets.reading import Reading

LABELS = ("round", "node")
"""Names of the columns that say whose vector a line is, unless the reading tells other ones."""

UNNAMED = ("", "unnamed: 0")
"""How pandas calls its index where that has no name, in a file and read back from one."""

TIMES = ("date", "datetime", "time", "timestamp")
"""Names of columns that hold dates or times, even if as numbers."""

QUOTE = "'"
"""What the name of a column begins with where people see it, but not its number."""

INDEX = (*UNNAMED, "index", "id", "#", "row")
"""Names of a first column that is left out if it counts the lines."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Places of the columns by what they mean.

    Parameters
    ----------
    node, round
        The columns that say whose vector a line is, and in which round.
    index
        A first column that is left out if it counts the rows; else it names the nodes, if no other column does.
    coordinates
        All that count.
    names
        What people call each column of the file.
    notes
        What was guessed, and what is left out.
    dates
        Columns of dates and times that are left out.
    may_count
        Whether the first column has a name, holds whole numbers and is a coordinate that nobody asked for.
    """

    node: int | None
    round: int | None
    index: int | None
    coordinates: Sequence[int]
    names: Sequence[str]
    notes: list[str] = field(default_factory=list)
    dates: Sequence[int] = ()
    may_count: bool = False

    def option(self, column: int) -> str:
        """How an option of the command line calls the column."""
        return self.names[column] if self.names[column].startswith(QUOTE) else str(column + 1)

    def origin(self, lines: str = "") -> str:
        """Which columns, of these lines, the numbers come from, and which the nodes and rounds."""
        chosen = [self.names[i] for i in self.coordinates]
        told = f"columns {listed(chosen)}" if len(chosen) > 1 else f"column {listed(chosen)}"
        told += f" of {lines}" if lines else ""
        for label, column in (("nodes", self.node), ("rounds", self.round)):
            told += "" if column is None else f"; {label} by column {self.names[column]}"
        return told


def without_index(columns: Columns, cells: Sequence[str], of_node: bool) -> tuple[Columns, Sequence[str] | None]:
    """What the first column is for: the columns, with a note of it; and the names of the nodes, if it has these."""
    if columns.index is None:
        return columns, None
    name = columns.names[columns.index]
    which = f"the first column, which {f'is named {name}' if name.startswith(QUOTE) else 'has no name'}"
    counts = any(_counts(cells, start) for start in (0, 1))
    if counts or columns.node is not None or of_node:
        by = " and counts lines" if counts else ""
        note = f"{which}{by}, was left out as an index (--columns names what is none)"
        return replace(columns, notes=[note, *columns.notes]), None
    note = f"{which}, was read as the names of the nodes"
    return replace(columns, node=columns.index, notes=[note, *columns.notes]), cells


def _counts(cells: Sequence[str], start: int) -> bool:
    return all(text == str(i) for i, text in enumerate(cells, start))


def columns_of(
    path: Path,
    names: Sequence[str],
    width: int,
    reading: Reading,
    of_node: bool,
    dated: Callable[[int], bool],
    whole: Callable[[int], bool],
) -> Columns:
    """The meaning of each column.

    Parameters
    ----------
    path
        The file, for messages.
    names
        Of the columns; empty where the file has none.
    width
        How many columns there are.
    reading
        What the user told.
    of_node
        Whether all rows are those of one node.
    dated, whole
        Whether a column holds dates, or whole numbers.
    """
    lowered = [name.lower() for name in names]

    def placed(label: str, wanted: str) -> int:
        if wanted.lower() in lowered:
            return lowered.index(wanted.lower())
        if wanted.isdecimal() and 1 <= int(wanted) <= width:
            return int(wanted) - 1
        known = f"its columns are {listed(names)}" if names else f"it has no names; say a number from 1 to {width}"
        raise InvalidInput(f"{path}: there is no column {wanted!r} for --{label} ({label}=); {known}")

    told = {label: getattr(reading, label) for label in LABELS}
    found = {
        label: placed(label, wanted) if wanted else lowered.index(label) if label in lowered else None
        for label, wanted in told.items()
    }
    node, round, index = found["node"], found["round"], None
    shown = [repr(name) if name else f"{i + 1} (without a name)" for i, name in enumerate(names)]
    shown = shown or [str(i + 1) for i in range(width)]
    chosen = [placed("columns", wanted) for wanted in reading.columns]
    free = [i for i in range(width) if i not in (node, round, *chosen)]
    dates = [i for i in free if dated(i) or (names and lowered[i] in TIMES)]
    if dates and (node is not None or of_node) and round is None:
        round = dates.pop(0)
    if not chosen:
        chosen = [i for i in free if i not in dates and i != round]
        if names and 0 in chosen and (lowered[0] in UNNAMED or (lowered[0] in INDEX and whole(0))):
            index = 0
            chosen.remove(0)
    if twice := {i for i in chosen if i in (node, round) or chosen.count(i) > 1}:
        raise InvalidInput(f"{path}: column {shown[min(twice)]} is named for two things; name each column once")
    may_count = bool(names) and not reading.columns and 0 in chosen and len(chosen) > 1 and whole(0)
    return Columns(node, round, index, chosen, shown, dates=dates, may_count=may_count)
