"""Tidy CSV tables, and the mean and standard error over seeds of what they hold."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Ints
from sparsemean.errors import InvalidInput

Texts = npt.NDArray[np.str_]

MEASURED = ("objective", "mse", "nmse")
"""Here NaN means that the run left all bounds; elsewhere it means that the number is not known."""


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of text; an empty cell is a value that is not known."""

    columns: Mapping[str, Texts]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def text(self, name: str) -> Texts:
        """The column as it stands; empty where the table has none of that name."""
        return self.columns.get(name, np.full(len(self), ""))

    def number(self, name: str) -> Doubles:
        """The column as numbers: NaN where not known, infinite where a run left all bounds.

        >>> Table.of([{"mse": 1}, {"mse": None}, {"mse": math.nan}]).number("mse").tolist()
        [1.0, nan, inf]
        """
        lost = math.inf if name in MEASURED else math.nan
        values = [_number(cell, name) for cell in self.text(name).tolist()]
        return np.array([lost if value is not None and math.isnan(value) else value for value in values], np.float64)

    def distinct(self, name: str) -> list[str]:
        """The values of a column but for empty ones, smallest number first, then in the alphabet."""
        return sorted({cell for cell in self.text(name).tolist() if cell}, key=_rank)

    def where(self, kept: npt.NDArray[np.bool_]) -> Table:
        """The rows for which it is true."""
        return Table({name: column[kept] for name, column in self.columns.items()})

    def having(self, **added: npt.ArrayLike) -> Table:
        """The same rows with other columns besides."""
        return Table({**self.columns, **{name: np.asarray(column, np.str_) for name, column in added.items()}})

    @staticmethod
    def of(rows: Sequence[Mapping[str, object]]) -> Table:
        """One row per mapping; None, like a key that is missing, is a value that is not known."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        cells = {name: ["" if row.get(name) is None else str(row[name]) for row in rows] for name in names}
        return Table({name: np.array(column, np.str_) for name, column in cells.items()})


def read_table(path: str | PathLike[str]) -> Table:
    """The table in a CSV file with a line of names."""
    with Path(path).open(newline="", encoding="utf-8-sig") as file:
        lines = list(csv.reader(file))
    if not lines:
        return Table({})
    for number, line in enumerate(lines, start=1):
        if line and len(line) != len(lines[0]):
            raise InvalidInput(f"{path}, line {number}: {len(line)} cells under {len(lines[0])} names")
    cells = np.array([[cell.strip() for cell in line] for line in lines[1:] if line], np.str_)
    cells = cells.reshape(-1, len(lines[0]))
    return Table({name.strip(): cells[:, i] for i, name in enumerate(lines[0])})


def _number(cell: str, name: str) -> float | None:
    try:
        return float(cell) if cell else None
    except ValueError:
        raise InvalidInput(f"the column {name} holds {cell!r} where a number is wanted") from None


def _rank(cell: str) -> tuple[float, str]:
    try:
        return float(cell), cell
    except ValueError:
        return math.inf, cell


@dataclass(frozen=True, eq=False)
class Curve:
    """Over the seeds of one x: mean, standard error, how many there were and how many of them left all bounds."""

    x: Doubles
    mean: Doubles
    """Infinite where at least one seed left all bounds."""
    error: Doubles
    """NaN where there is but one seed."""
    seeds: Ints
    lost: Ints


def curve(x: npt.ArrayLike, y: npt.ArrayLike, own_error: npt.ArrayLike | None = None) -> Curve:
    """The rows of one line, pooled where their x agree to nine digits; rows without y are left out.

    ``own_error`` is each row's own standard error, where a row is itself a mean of many trials: it says more than
    the scatter of a few rows.

    >>> line = curve([0, 1, 0, 1], [1.0, 5.0, 3.0, 5.0])
    >>> line.x.tolist(), line.mean.tolist(), line.error.tolist()
    ([0.0, 1.0], [2.0, 5.0], [1.0, 0.0])
    """
    places, values = np.asarray(x, np.float64), np.asarray(y, np.float64)
    known = np.isfinite(places) & ~np.isnan(values)
    places, values = np.array([float(f"{place:.9g}") for place in places[known]]), values[known]
    own = None if own_error is None else np.asarray(own_error, np.float64)[known]
    points, group = np.unique(places, return_inverse=True)
    finite = np.isfinite(values)
    held = np.where(finite, values, 0.0)
    seeds = np.bincount(group, minlength=len(points))
    lost = np.bincount(group, ~finite, len(points)).astype(np.int64)
    with np.errstate(over="ignore", invalid="ignore"):  # finite, yet near the largest number there is
        mean = np.bincount(group, held, len(points)) / np.maximum(seeds, 1)
        squares = np.bincount(group, (held - mean[group]) ** 2, len(points))
        spread = np.sqrt(squares / np.maximum(seeds - 1, 1) / np.maximum(seeds, 1))
    spread[seeds < 2] = math.nan
    if own is not None and np.all(np.isfinite(own)):
        spread = np.sqrt(np.bincount(group, own**2, len(points))) / np.maximum(seeds, 1)
    mean[lost > 0] = math.inf
    spread[lost > 0] = math.nan
    return Curve(points, mean, spread, seeds.astype(np.int64), lost)
