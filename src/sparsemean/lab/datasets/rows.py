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
from sparsemean.lab.datasets.time_steps import NONE_MISSING, evened


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
    stamps
        What the columns of dates hold that are left out, row by row.
    hint
        What to say beside where numbers are missing.
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
    stamps: Sequence[Sequence[str]] = ()
    hint: str = ""


def arranged(rows: Rows, steps: int | None = None) -> Content:
    """The content by rounds, ascending, and nodes, as they first appear.

    Every round must have every node once; a row that is not there is one whose numbers are all missing. Where ``steps``
    numbers make a round of what several rows hold, rounds that are missing at equal steps are inserted.
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
        names = sorted(set(rounds))
    except TypeError:
        raise InvalidInput(f"{rows.path}: some rounds are whole numbers, others dates; write all in one way") from None
    notes, hint, present = list(rows.notes), rows.hint, len(names)
    if steps and rows.numbers.shape[1] % steps:
        names, told = evened(names)
        notes += [told] if told else []
        hint = NONE_MISSING if len(names) > present else hint
    if 2 * len(nodes) < present * len(set(nodes)):
        hint = (
            f"less than half of the {present} rounds have a row for every one of the {len(set(nodes))} nodes; if these "
            "tell slightly different times, round the times first, as to full hours"
        )
    which_round = {number: i for i, number in enumerate(names)}
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
        notes,
        hint,
    )
