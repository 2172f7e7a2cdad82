"""How a user's own file is to be read, where the file itself does not say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

from sparsemean.errors import InvalidInput

Missing: TypeAlias = Literal["refuse", "drop-rounds", "drop-nodes", "mean", "last"]
Decimal: TypeAlias = Literal[".", ","]


@dataclass(frozen=True)
class Reading:
    """What ``load`` is told about a file; the command line has an option of the same name for each.

    Parameters
    ----------
    header : bool, optional
        Whether the first line of a text file holds names; by default the line itself tells.
    node, round : str, optional
        The column that names the nodes, and the one that says in which round, by name or by number from 1 on; by
        default those called ``node`` and ``round``.
    columns : sequence of str
        The columns of coordinates, by name or number; by default all others that hold numbers.
    array : str, optional
        Which of several arrays or parts of a file.
    decimal : {".", ","}, optional
        The decimal mark of a text file; by default the file itself tells.
    missing : {"refuse", "drop-rounds", "drop-nodes", "mean", "last"}, default "refuse"
        What to do where a number is missing: leave out every round or every node that misses any; or fill in the mean
        of the coordinate over all rounds and nodes, or what the node had there in the round before.
    transpose : bool, default False
        Whether lines are coordinates, or times, and columns are nodes.
    steps : int, optional
        Cut each node's numbers, in order, into rounds of so many.
    """

    header: bool | None = None
    node: str | None = None
    round: str | None = None
    columns: Sequence[str] = ()
    array: str | None = None
    decimal: Decimal | None = None
    missing: Missing = "refuse"
    transpose: bool = False
    steps: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.columns, str):
            raise InvalidInput(f"columns is a list of names, such as [{self.columns!r}], not {self.columns!r}")
        object.__setattr__(self, "columns", tuple(self.columns))
        for name, kinds in (("missing", get_args(Missing)), ("decimal", (None, *get_args(Decimal)))):
            if getattr(self, name) not in kinds:
                known = ", ".join(repr(kind) for kind in kinds if kind)
                raise InvalidInput(f"{name} is one of {known}, got {getattr(self, name)!r}")
        if self.steps is not None and (
            isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1
        ):
            raise InvalidInput(f"steps is a number of values in a round, at least 1; got {self.steps!r}")

    @property
    def given(self) -> tuple[str, ...]:
        """The names of what is not left to its default."""
        return tuple(field.name for field in fields(self) if getattr(self, field.name) != field.default)


ANY_FILE = ("missing", "transpose", "steps")
"""What makes sense for every kind of file."""
