"""Rows: what is known of one node, as arrays over the coordinates, and the shelf where they stand."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from sparsemean._types import Array, Floats, Ints
from sparsemean.kernels import Sample
from sparsemean.kernels.sample import drawn, drawn_near
from sparsemean.kernels.tiled import Tiled
from sparsemean.payload import Part
from sparsemean.state_tree import Tree, array_in, branch


class Row(ABC):
    """What is known of one node: ``arrays``, whose last axis is the coordinate; all 0 for a new one.

    ``shown`` names the array that is b_i: what this row adds to the mean of the memory.
    """

    shown: ClassVar[str]

    def __init__(self, **arrays: Array) -> None:
        self.arrays = arrays

    def values(self) -> Floats:
        """b_i."""
        return self.arrays[self.shown]

    @abstractmethod
    def expected(self, coordinates: Ints) -> Floats | float:
        """What is subtracted from values sent at these coordinates."""

    def replaced_by(self, part: Part) -> Array | None:
        """What the part puts into the one array in place of what was there; None where receiving is more than that."""
        return None

    @abstractmethod
    def receive(self, at: Ints | slice, part: Part) -> None:
        """Take in the values of one part, which stand at these entries of the arrays."""


def row_with(row: Row, arrays: Mapping[str, Array]) -> Row:
    """A row of the same kind, with these arrays."""
    other = object.__new__(type(row))  # copy.copy takes five times as long, a thousand times a round
    other.__dict__.update(row.__dict__, arrays=dict(arrays))
    return other


def replaced(row: Row, values: Array) -> Row:
    """A short row that holds nothing but these values."""
    return row_with(row, dict.fromkeys(row.arrays, values))


def picked(row: Row, at: Ints) -> Row:
    """A short row: the entries at these coordinates, copied."""
    return row_with(row, {name: array[..., at] for name, array in row.arrays.items()})


def put(row: Row, at: Ints | slice, entries: Row) -> None:
    """Write a short row to where its entries belong; doing it twice does no harm."""
    for name, array in row.arrays.items():
        array[..., at] = entries.arrays[name]


def clear(row: Row) -> None:
    """Set all entries to 0."""
    for array in row.arrays.values():
        array[...] = 0


@dataclass(frozen=True)
class RowChange:
    """What the row of a node will hold at these coordinates, once it is settled; samples and lists stay as short."""

    node: str
    where: Ints | Sample | Tiled
    entries: Row

    @cached_property
    def at(self) -> Ints:
        """The coordinates."""
        if isinstance(self.where, Tiled):
            return self.where.coordinates
        return drawn(self.where) if isinstance(self.where, Sample) else self.where

    def onto(self, at: Ints, entries: Row) -> None:
        """Bring entries at other coordinates up to date where the two meet."""
        if isinstance(self.where, Sample):
            mine_at, places = drawn_near(self.where, at)
        elif isinstance(self.where, Tiled):
            mine_at, places = self.where.near(at)
        else:
            mine_at, places = self.where, np.arange(self.where.size)
        _, theirs, mine = np.intersect1d(at, mine_at, assume_unique=True, return_indices=True)
        mine = places[mine]
        for name, array in entries.arrays.items():
            array[..., theirs] = self.entries.arrays[name][..., mine]


class Section(ABC):
    """A part of a shelf: places for rows of one kind, by number.

    ``checks`` has the checksum of the row at each place that is taken; None where rows do not outlive the process.
    """

    checks: dict[int, int] | None = None

    def add_check(self, place: int, added: int) -> None:
        """What is about to be written to this place adds so much to the checksum of its row, modulo 2⁶⁴."""
        if self.checks is not None:
            self.checks[place] = (self.checks.get(place, 0) + added) % (1 << 64)

    def described(self) -> Tree:
        """How rows stand in their file, for whoever wants to check them; None where there is none."""
        return None

    @abstractmethod
    def reserve(self) -> int:
        """The lowest free place, which is now taken."""

    @abstractmethod
    def release(self, place: int) -> None:
        """Free a place."""

    @abstractmethod
    def restore(self, places: Iterable[int]) -> None:
        """These places are taken, and no others."""

    @abstractmethod
    def attach(self, place: int, row: Row) -> None:
        """Set the row's arrays to those at this place."""

    @abstractmethod
    def renew(self, place: int, row: Row) -> None:
        """The same, with 0 in all of them."""


class Shelf(ABC):
    """Where rows stand."""

    @abstractmethod
    def section(self, name: str, row: Row) -> Section:
        """The section of this name, for rows like this one."""


class Places:
    """Numbers from 0, of which the lowest free one is always given first."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self.end = 0

    def reserve(self) -> int:
        if self._free:
            return heapq.heappop(self._free)
        self.end += 1
        return self.end - 1

    def release(self, place: int) -> None:
        heapq.heappush(self._free, place)

    def restore(self, places: Iterable[int]) -> None:
        taken = set(places)
        self.end = max(taken, default=-1) + 1
        self._free = sorted(set(range(self.end)) - taken)


class InMemory(Shelf):
    """Rows stand by themselves, in the memory of the process; ``tree`` copies all of them.

    Parameters
    ----------
    saved : Tree, optional
        What ``tree`` returned, from which sections are filled as they are made.
    """

    def __init__(self, saved: Tree = None) -> None:
        self._saved = saved
        self._sections: dict[str, _Loose] = {}

    def section(self, name: str, row: Row) -> Section:
        saved = branch(self._saved, name) if self._saved is not None else None
        self._sections[name] = _Loose(row, saved)
        return self._sections[name]

    def tree(self) -> Tree:
        """The rows of all sections, by place: bytes, since a row knows its types and shapes."""
        return {name: section.tree() for name, section in self._sections.items()}


class _Loose(Section):
    def __init__(self, row: Row, saved: Tree) -> None:
        self._places = Places()
        self._held: dict[int, dict[str, Array]] = {}
        self._blank = row.arrays
        if saved is not None:
            columns = {name: array_in(saved, name) for name in self._blank}
            for i, place in enumerate(array_in(saved, "places").tolist()):
                self._held[place] = {name: self._read(name, column[i]) for name, column in columns.items()}

    def _read(self, name: str, content: Array) -> Array:
        like = self._blank[name]
        if content.dtype != np.uint8 or content.size != like.nbytes:
            raise ValueError(f"a row of {name} has {like.nbytes} bytes, not {content.nbytes}")
        return np.frombuffer(content.tobytes(), like.dtype).reshape(like.shape).copy()

    def tree(self) -> Tree:
        rows = {
            name: np.array([_as_bytes(held[name]) for held in self._held.values()], np.uint8) for name in self._blank
        }
        return {"places": np.array(list(self._held), np.int64), **rows}

    def reserve(self) -> int:
        return self._places.reserve()

    def release(self, place: int) -> None:
        self._places.release(place)
        self._held.pop(place, None)

    def restore(self, places: Iterable[int]) -> None:
        self._places.restore(places)

    def attach(self, place: int, row: Row) -> None:
        if place not in self._held:
            raise ValueError(f"there is no row at place {place}")
        row.arrays.update(self._held[place])

    def renew(self, place: int, row: Row) -> None:
        row.arrays = {name: np.zeros(array.shape, array.dtype) for name, array in row.arrays.items()}
        self._held[place] = row.arrays


def _as_bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
