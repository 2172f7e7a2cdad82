"""Table rows, one vector of one node in one round each, and their arrangement as (rounds, nodes, coordinates)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput

LABELS = ("round", "node")
"""Names of the columns that say whose vector a row is; all others are coordinates."""


@dataclass(frozen=True, eq=False)
class Rows:
    """One vector per row, with its node and round where the file has these columns.

    Parameters
    ----------
    path
        The file, for messages.
    numbers
        Shape (rows, coordinates).
    nodes, rounds
        The columns ``node`` and ``round``; None where the file has none.
    place
        The place of a row in the file, for messages.
    columns
        The places of the coordinates in the file, for messages.
    note
        What was guessed about the file and could be meant otherwise; empty where nothing was.
    """

    path: Path
    numbers: Doubles
    nodes: Sequence[str] | None
    rounds: Sequence[int] | None
    place: Callable[[int], str]
    columns: Sequence[str]
    note: str = ""


def unnamed(count: int) -> tuple[str, ...]:
    """Names for nodes that have none.

    >>> unnamed(2)
    ('node-0', 'node-1')
    """
    return tuple(f"node-{i}" for i in range(count))


def arranged(rows: Rows) -> tuple[Doubles, tuple[str, ...]]:
    """(rounds, nodes, coordinates), rounds ascending, nodes as they first appear; and the names of the nodes.

    Every round must have every node exactly once.
    """
    if not rows.numbers.size:
        raise InvalidInput(f"{rows.path} holds no numbers: {len(rows.numbers)} rows, {len(rows.columns)} coordinates")
    refuse_non_finite(rows.numbers, rows.path, lambda row, column: f"{rows.place(row)}, {rows.columns[column]}")
    if rows.nodes is None:
        if rows.rounds is not None:
            raise InvalidInput(f"{rows.path} has a column round but no column node; add one that names the nodes")
        return rows.numbers[np.newaxis], unnamed(len(rows.numbers))

    rounds = rows.rounds if rows.rounds is not None else [0] * len(rows.nodes)
    which_round = {number: i for i, number in enumerate(sorted(set(rounds)))}
    which_node = {name: i for i, name in enumerate(dict.fromkeys(rows.nodes))}
    row_of = np.full((len(which_round), len(which_node)), -1)
    for row, (number, name) in enumerate(zip(rounds, rows.nodes, strict=True)):
        cell = which_round[number], which_node[name]
        if row_of[cell] >= 0:
            raise InvalidInput(
                f"{rows.path}: round {number} has the node {name!r} twice, at {rows.place(int(row_of[cell]))} and "
                f"{rows.place(row)}"
            )
        row_of[cell] = row
    if (row_of < 0).any():
        i, j = (int(index) for index in np.argwhere(row_of < 0)[0])
        raise InvalidInput(
            f"{rows.path}: round {list(which_round)[i]} has no row for the node {list(which_node)[j]!r}; every round "
            f"must have every node, leave out incomplete rounds or nodes"
        )
    return rows.numbers[row_of], tuple(which_node)


def refuse_non_finite(numbers: Doubles, path: Path, place: Callable[..., str]) -> None:
    """Raise ``InvalidInput`` if a number is NaN or infinite; the message counts these and says where the first is."""
    wrong = ~np.isfinite(numbers)
    if count := np.count_nonzero(wrong):
        first = np.unravel_index(int(np.argmax(wrong)), numbers.shape)
        raise InvalidInput(
            f"{path}: {count} of {numbers.size} numbers are NaN or infinite, the first ({numbers[first]}) at "
            f"{place(*map(int, first))}; repair or leave them out first"
        )
