"""Rows in memory-mapped files: the page cache holds what fits, the disk the rest."""

from __future__ import annotations

import bisect
import math
import mmap
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sparsemean._types import Array
from sparsemean.journal.log import guarded
from sparsemean.memory.rows import Places, Row, Section, Shelf
from sparsemean.state_tree import Tree, branch, names_in

SUFFIX = ".rows"
SMALLEST, LARGEST = 1 << 16, 1 << 30  # bytes by which a file grows, which double in between
RESIDENT = 1 << 29  # bytes of rows that may stay in this process's memory between rounds
ALIGNED = 64  # bytes, a cache line


class MappedShelf(Shelf):
    """One file for each section, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._sections: list[_Mapped] = []

    def section(self, name: str, row: Row) -> Section:
        section = _Mapped(self._folder / (name + SUFFIX), row)
        self._sections.append(section)
        return section

    def lengths(self) -> dict[str, int]:
        """Bytes that are in use of each file."""
        return {section.path.name: section.bytes for section in self._sections}

    def sync(self) -> None:
        """Sync all rows to the disk."""
        for section in self._sections:
            section.sync()

    def rest(self) -> None:
        """Unmap pages of rows if there are many; they stay in the page cache while there is room."""
        if sum(section.bytes for section in self._sections) > RESIDENT:
            for section in self._sections:
                section.rest()

    def close(self) -> None:
        """Close the files; rows that are still referenced stay readable."""
        for section in self._sections:
            section.close()
        self._sections = []


def growth(row_bytes: int) -> Iterator[tuple[int, int]]:
    """How many rows each further part of a file has room for, and its length in bytes.

    >>> import itertools
    >>> [rows for rows, _ in itertools.islice(growth(40_000), 4)], next(growth(1 << 40))[0]
    ([1, 3, 6, 13], 1)
    """
    size = SMALLEST  # the row's length alone decides, so that a reader finds a place without an index
    while True:
        rows = max(1, size // row_bytes)
        yield rows, math.ceil(rows * row_bytes / mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        size = min(2 * size, LARGEST)


class RowLayout:
    """How the arrays of a row stand one after the other; ``fields`` has the type and the shape of each."""

    def __init__(self, fields: Mapping[str, tuple[str, tuple[int, ...]]]) -> None:
        self._fields = fields
        self._at: dict[str, tuple[np.dtype[np.generic], tuple[int, ...], int]] = {}
        self.row_bytes = 0
        for name, (kind, shape) in fields.items():
            dtype = np.dtype(kind)
            self._at[name] = (dtype, shape, self.row_bytes)
            self.row_bytes += math.ceil(dtype.itemsize * math.prod(shape) / ALIGNED) * ALIGNED

    def tree(self) -> dict[str, Tree]:
        """The layout as a state tree."""
        return {
            "names": list(self._fields),
            "types": [kind for kind, _ in self._fields.values()],
            "shapes": [np.array(shape, np.int64) for _, shape in self._fields.values()],
        }

    @staticmethod
    def of_tree(tree: Tree) -> RowLayout:
        """The layout that ``tree()`` returned."""
        shapes = branch(tree, "shapes")
        sizes = [tuple(shape.tolist()) for shape in shapes] if isinstance(shapes, list) else []  # type: ignore[union-attr]
        fields = zip(names_in(tree, "names"), names_in(tree, "types"), sizes, strict=True)
        return RowLayout({name: (kind, shape) for name, kind, shape in fields})

    def arrays(self, buffer: mmap.mmap | bytearray, start: int = 0) -> dict[str, Array]:
        """The arrays of the row that begins there, as views."""
        return {
            name: np.frombuffer(buffer, dtype, math.prod(shape), start + at).reshape(shape)
            for name, (dtype, shape, at) in self._at.items()
        }

    def offset(self, place: int) -> int:
        """Where in the file the row of this place begins."""
        begin = first = 0
        for rows, length in growth(self.row_bytes):
            if place < first + rows:
                return begin + (place - first) * self.row_bytes
            begin, first = begin + length, first + rows
        raise AssertionError("a file grows without end")


@dataclass(init=False)
class _Mapped(Section):
    """Places in a file; no field of its own counts as state."""

    checks: dict[int, int]

    def __init__(self, path: Path, row: Row) -> None:
        self.checks = {}
        self._places = Places()
        self._layout = RowLayout({name: (array.dtype.str, array.shape) for name, array in row.arrays.items()})
        self._row_bytes = self._layout.row_bytes
        self._maps: list[mmap.mmap] = []
        self._ends: list[int] = []  # rows up to the end of each map
        self._growth = growth(self._row_bytes)
        self.path = path
        self.bytes = 0
        with guarded("opened"):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _grow(self) -> None:
        rows, length = next(self._growth)
        _allocate(self._file, self.bytes, length)  # room for all of it, or a store into the map could kill us
        # One more map, not a longer one: rows are views of the maps, which therefore cannot move.
        self._maps.append(mmap.mmap(self._file, length, offset=self.bytes))
        self._ends.append((self._ends[-1] if self._ends else 0) + rows)
        self.bytes += length

    def reserve(self) -> int:
        place = self._places.reserve()
        self._reach(place)
        return place

    def _reach(self, place: int) -> None:
        with guarded("enlarged"):
            while not self._ends or place >= self._ends[-1]:
                self._grow()

    def release(self, place: int) -> None:
        self._places.release(place)
        self.checks.pop(place, None)

    def restore(self, places: Iterable[int]) -> None:
        self._places.restore(places)

    def attach(self, place: int, row: Row) -> None:
        self._reach(place)
        which = bisect.bisect_right(self._ends, place)
        start = (place - (self._ends[which - 1] if which else 0)) * self._row_bytes
        row.arrays.update(self._layout.arrays(self._maps[which], start))

    def described(self) -> Tree:
        return {"file": self.path.name, **self._layout.tree()}

    def renew(self, place: int, row: Row) -> None:
        self.attach(place, row)
        for array in row.arrays.values():
            array[...] = 0

    def sync(self) -> None:
        with guarded("written"):
            if sys.platform == "linux":
                os.fsync(self._file)  # takes what was stored through maps along, and lets other threads run
            else:
                for each in self._maps:
                    each.flush()

    def rest(self) -> None:
        if hasattr(mmap, "MADV_DONTNEED") and sys.platform == "linux":
            for each in self._maps:  # shared maps of a file: what was stored stays in the page cache
                each.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        os.close(self._file)


def _allocate(file: int, at: int, length: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, at, length)
    else:
        os.pwrite(file, bytes(length), at)
