"""Coordinates listed tile by tile, by their number within the tile: two bytes each, and no kernel draws them again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sparsemean._types import Ints
from sparsemean.kernels.sample import AnyInts


class Tiled(NamedTuple):
    """Distinct coordinates of a vector or of a range of it, in ascending order of their tiles.

    Attributes
    ----------
    tile
        Coordinates in a tile; the last may be short.
    at
        Where each tile begins in ``places``, and where the last ends.
    places
        Numbers within their tiles, unsigned: 16 bits where they suffice.
    """

    tile: int
    at: Ints
    places: AnyInts

    @staticmethod
    def empty(tile: int, counts: Ints) -> Tiled:
        """Room for so many coordinates of each tile."""
        at = np.append(0, np.cumsum(counts))
        return Tiled(tile, at, np.empty(int(at[-1]), np.uint16 if tile <= 1 << 16 else np.uint32))

    @staticmethod
    def of(tile: int, dim: int, coordinates: Ints) -> Tiled:
        """These ascending coordinates.

        >>> Tiled.of(4, 10, np.array([1, 3, 8])).places.tolist()
        [1, 3, 0]
        """
        found = Tiled.empty(tile, np.bincount(coordinates // tile, minlength=-(-dim // tile)))
        found.places[:] = coordinates % tile
        return found

    @property
    def k(self) -> int:
        """How many they are."""
        return self.places.size

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self.at.nbytes + self.places.nbytes

    @property
    def coordinates(self) -> Ints:
        """All of them; read-only.

        >>> Tiled(4, np.array([0, 2, 2, 3]), np.array([3, 1, 0], np.uint16)).coordinates
        array([3, 1, 8])
        """
        starts = np.arange(self.at.size - 1) * self.tile
        found: Ints = np.repeat(starts, np.diff(self.at)) + self.places
        found.flags.writeable = False
        return found

    def some(self, numbers: Ints) -> Ints:
        """Some of them, by their numbers in the list.

        >>> Tiled(4, np.array([0, 2, 2, 3]), np.array([3, 1, 0], np.uint16)).some(np.array([2, 0]))
        array([8, 3])
        """
        tiles: Ints = np.searchsorted(self.at, numbers, side="right") - 1
        return tiles * self.tile + self.places[numbers]

    def between(self, lo: int, hi: int) -> Tiled:
        """Those in [lo, hi), counted from lo."""
        at = self.at[-(-lo // self.tile) : -(-hi // self.tile) + 1]
        return Tiled(self.tile, at - at[0], self.places[at[0] : at[-1]])

    def near(self, at: Ints) -> tuple[Ints, Ints]:
        """Those in the tiles in which the coordinates ``at`` lie, and where they stand."""
        tiles = np.unique(at // self.tile)
        counts = self.at[tiles + 1] - self.at[tiles]
        where = np.repeat(self.at[tiles] - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        return np.repeat(tiles * self.tile, counts) + self.places[where], where
