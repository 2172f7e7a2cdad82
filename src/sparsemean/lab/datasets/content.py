"""What a file holds, before missing numbers are dealt with and rounds are cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sparsemean._types import Doubles

AXES = ("round", "node", "coordinate")


@dataclass(frozen=True, eq=False)
class Content:
    """Vectors by round and node, with what is needed to speak of them.

    Parameters
    ----------
    path
        The file, for messages.
    vectors
        Shape (rounds, nodes, coordinates); NaN where a number is missing.
    nodes
        Names of the nodes; by default ``unnamed``.
    origin
        Where in the file the numbers stand, as in "columns x to z".
    place
        Where the number of a round, node and coordinate stands, for messages.
    columns
        Names of the coordinates, where the file has any.
    notes
        What was guessed about the file and could be meant otherwise, or was left out.
    hint
        What to say beside where numbers are missing.
    """

    path: Path
    vectors: Doubles
    nodes: tuple[str, ...] = ()
    origin: str = ""
    place: Callable[[int, int, int], str] = field(default=lambda *index: place(*index))
    columns: tuple[str, ...] = ()
    notes: Sequence[str] = ()
    hint: str = ""

    def __post_init__(self) -> None:
        if not self.nodes:
            object.__setattr__(self, "nodes", unnamed(self.vectors.shape[1]))


def unnamed(count: int) -> tuple[str, ...]:
    """Names for nodes that have none.

    >>> unnamed(2)
    ('node-0', 'node-1')
    """
    return tuple(f"node-{i}" for i in range(count))


def place(*index: int) -> str:
    """A number's place in an array, for people.

    >>> place(3, 0)
    'node 3, coordinate 0 (counted from 0)'
    """
    named = zip(AXES[-len(index) :], index, strict=True)
    return ", ".join(f"{axis} {i}" for axis, i in named) + " (counted from 0)"


def counted(number: int, thing: str) -> str:
    """A number of things.

    >>> counted(1, "round"), counted(12, "node")
    ('1 round', '12 nodes')
    """
    return f"{number} {thing}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """A few names, or the first and the last of many.

    >>> listed(["x", "y"]), listed([f"x{i}" for i in range(64)])
    ('x, y', 'x0 … x63')
    """
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} … {names[-1]}"
