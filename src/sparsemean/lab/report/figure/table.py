"""Result tables as columns of text, read from the CSV files of a reproduction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.errors import InvalidInput
from sparsemean.lab.numbers import parse_number
from sparsemean.lab.tables import read_table

Texts = npt.NDArray[np.str_]

MEASURED = ("objective", "mse", "nmse")
"""Columns in which NaN means that the run diverged; in all others it means that the number is unknown."""


@dataclass(frozen=True, eq=False)
class ResultTable:
    """Columns of text by name; an empty cell is an unknown value."""

    columns: Mapping[str, Texts]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def text(self, name: str) -> Texts:
        """The column as it stands; all cells empty where the table has no such column."""
        return self.columns.get(name, np.full(len(self), ""))

    def number(self, name: str) -> Doubles:
        """The column as numbers: NaN where unknown, infinite where a run diverged.

        >>> ResultTable.of([{"mse": 1}, {"mse": None}, {"mse": math.nan}]).number("mse").tolist()
        [1.0, nan, inf]
        """
        lost = math.inf if name in MEASURED else math.nan
        values = [_number(cell, name) for cell in self.text(name).tolist()]
        return np.array([lost if value is not None and math.isnan(value) else value for value in values], np.float64)

    def distinct(self, name: str) -> list[str]:
        """The distinct values of a column without empty ones: numbers ascending, then words in alphabetical order."""
        return sorted({cell for cell in self.text(name).tolist() if cell}, key=_rank)

    def where(self, kept: npt.NDArray[np.bool_]) -> ResultTable:
        """The rows for which it is true."""
        return ResultTable({name: column[kept] for name, column in self.columns.items()})

    def having(self, **added: npt.ArrayLike) -> ResultTable:
        """The same rows with these columns added or replaced."""
        return ResultTable({**self.columns, **{name: np.asarray(column, np.str_) for name, column in added.items()}})

    @staticmethod
    def of(rows: Sequence[Mapping[str, object]]) -> ResultTable:
        """One row per mapping; None, or a missing key, is an unknown value."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        cells = {name: ["" if row.get(name) is None else str(row[name]) for row in rows] for name in names}
        return ResultTable({name: np.array(column, np.str_) for name, column in cells.items()})


def read_tables(out_dir: str | PathLike[str]) -> dict[str, ResultTable]:
    """Name → table, of every CSV file in ``out_dir/tables`` that has rows."""
    folder = Path(out_dir) / "tables"
    if not folder.is_dir():
        raise InvalidInput(f"there is no folder {folder}; run 'sparsemean reproduce' first, it writes the tables there")
    tables = {file.stem: ResultTable.of(read_table(file)) for file in sorted(folder.glob("*.csv"))}
    return {name: table for name, table in tables.items() if len(table)}


def _number(cell: str, name: str) -> float | None:
    value = parse_number(cell)
    if cell and value is None:
        raise InvalidInput(f"the column {name} holds {cell!r} where a number is wanted")
    return value


def _rank(cell: str) -> tuple[float, str]:
    value = parse_number(cell)
    return (math.inf if value is None else value), cell
