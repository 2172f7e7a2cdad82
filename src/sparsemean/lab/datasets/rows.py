"""Table rows, one vector of one node in one round each, and their arrangement as (rounds, nodes, coordinates)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import numpy as np

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.content import Content, counted


@dataclass(frozen=True, eq=False)
class Rows:
    """One vector per row, with its node and round where the file has these columns.

    Parameters
    ----------
    path
        The file, for messages.
    numbers
        Shape (rows, coordinates); NaN where a number is missing.
    nodes, rounds
        Those columns; None where the file has none.
    place
        The place of a row in the file, for messages.
    columns
        The places of the coordinates in the file, for messages.
    names
        Names of the coordinates, where the file has any.
    origin
        Where in the file the numbers stand.
    notes
        What was guessed about the file and could be meant otherwise, or was left out.
    """

    path: Path
    numbers: Doubles
    nodes: Sequence[str] | None
    rounds: Sequence[int | datetime] | None
    place: Callable[[int], str]
    columns: Sequence[str]
    names: Sequence[str] = ()
    origin: str = ""
    notes: list[str] = field(default_factory=list)


def arranged(rows: Rows) -> Content:
    """The content by rounds, ascending, and nodes, as they first appear.

    Every round must have every node once; a row that is not there is one whose numbers are all missing.
    """
    if not rows.numbers.size:
        raise InvalidInput(
            f"{rows.path} holds no numbers: {counted(len(rows.numbers), 'row')}, "
            f"{counted(len(rows.columns), 'coordinate')}"
        )
    if rows.nodes is None and rows.rounds is not None:
        raise InvalidInput(
            f"{rows.path} has a column of rounds but none of nodes; add one called node, or name it with --node"
        )
    nodes = rows.nodes if rows.nodes is not None else [str(row) for row in range(len(rows.numbers))]
    rounds = rows.rounds if rows.rounds is not None else [0] * len(nodes)
    try:
        which_round = {number: i for i, number in enumerate(sorted(set(rounds)))}
    except TypeError:
        raise InvalidInput(f"{rows.path}: some rounds are whole numbers, others dates; write all in one way") from None
    which_node = {name: i for i, name in enumerate(dict.fromkeys(nodes))}
    row_of = np.full((len(which_round), len(which_node)), -1)
    for row, (number, name) in enumerate(zip(rounds, nodes, strict=True)):
        cell = which_round[number], which_node[name]
        if row_of[cell] >= 0:
            raise InvalidInput(
                f"{rows.path}: round {number} has the node {name!r} twice, at {rows.place(int(row_of[cell]))} and "
                f"{rows.place(row)}; say with --round which column holds the rounds"
            )
        row_of[cell] = row
    absent = row_of < 0
    names = list(which_round)

    def place(t: int, i: int, j: int) -> str:
        if absent[t, i]:
            return f"round {names[t]}, which has no row for the node {list(which_node)[i]!r}"
        return f"{rows.place(int(row_of[t, i]))}, {rows.columns[j]}"

    return Content(
        rows.path,
        np.where(absent[..., None], np.nan, rows.numbers[row_of]),
        tuple(which_node) if rows.nodes is not None else (),
        rows.origin,
        place,
        tuple(rows.names),
        rows.notes,
    )
