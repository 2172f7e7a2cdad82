"""Rows in files that are mapped into memory: the system keeps of them what fits, and the rest on the disk."""

from __future__ import annotations

import bisect
import math
import mmap
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sparsemean.journal.log import guarded
from sparsemean.memory.rows import Places, Row, Section, Shelf
from sparsemean.tree import Array

SUFFIX = ".rows"
SMALLEST, LARGEST = 1 << 16, 1 << 30  # bytes by which a file grows, which double in between
RESIDENT = 1 << 29  # bytes of rows that may stay in this process's memory between rounds
ALIGNED = 64


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
        """Wait until all that was written is on the disk."""
        for section in self._sections:
            section.sync()

    def rest(self) -> None:
        """Let the system take back the memory of rows, if that is much; they stay in its cache while there is room."""
        if sum(section.bytes for section in self._sections) > RESIDENT:
            for section in self._sections:
                section.rest()

    def close(self) -> None:
        """Give the files back; rows that are still in use stay readable."""
        for section in self._sections:
            section.close()
        self._sections = []


def growth(row_bytes: int) -> Iterator[int]:
    """How many rows each further part of a file has room for.

    >>> import itertools
    >>> list(itertools.islice(growth(40_000), 4)), next(growth(1 << 40))
    ([1, 3, 6, 13], 1)
    """
    size = SMALLEST
    while True:
        yield max(1, size // row_bytes)
        size = min(2 * size, LARGEST)


@dataclass(init=False)
class _Mapped(Section):
    """Places in a file; no field of its own counts as state."""

    def __init__(self, path: Path, row: Row) -> None:
        self._places = Places()
        self._fields: dict[str, tuple[np.dtype[np.generic], tuple[int, ...], int]] = {}
        at = 0
        for name, array in row.arrays.items():
            self._fields[name] = (array.dtype, array.shape, at)
            at += math.ceil(array.nbytes / ALIGNED) * ALIGNED
        self._row_bytes = at
        self._maps: list[mmap.mmap] = []
        self._ends: list[int] = []  # rows up to the end of each map
        self._growth = growth(self._row_bytes)
        self.path = path
        self.bytes = 0
        with guarded("opened"):
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _grow(self) -> None:
        rows = next(self._growth)
        length = math.ceil(rows * self._row_bytes / mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        _allocate(self._file, self.bytes, length)  # room for all of it, or a store into the map could kill us
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

    def restore(self, places: Iterable[int]) -> None:
        self._places.restore(places)

    def attach(self, place: int, row: Row) -> None:
        self._reach(place)
        which = bisect.bisect_right(self._ends, place)
        start = (place - (self._ends[which - 1] if which else 0)) * self._row_bytes
        for name, (dtype, shape, at) in self._fields.items():
            flat: Array = np.frombuffer(self._maps[which], dtype, math.prod(shape), start + at)
            row.arrays[name] = flat.reshape(shape)

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
            for each in self._maps:
                each.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        os.close(self._file)


def _allocate(file: int, at: int, length: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, at, length)
    else:
        os.pwrite(file, bytes(length), at)
