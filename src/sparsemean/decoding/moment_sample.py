"""Which coordinates keep power sums for the standard error: all of a short vector, one tile in eight of a long one.

Only standard errors and the shrinkage of the correlation rest on these sums. Their relative error is that of a mean
over the sampled coordinates, far below what a standard error has to be good to; everything else stays exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Ints
from sparsemean.kernels.tiled import Tiled
from sparsemean.payload.blocks import Blocks
from sparsemean.sampling import tile_size

SHORT = 64  # tiles up to which all are sampled
EVERY = 8  # of more tiles one in so many


@dataclass(frozen=True)
class MomentSample:
    """The tiles whose coordinates keep Σy² and Σy³, chosen for a whole vector and looked at in the range [lo, hi).

    >>> MomentSample(Blocks((5, 3))).count, MomentSample(Blocks((1 << 22,))).count
    (8, 524288)
    >>> MomentSample(Blocks((1 << 22,)), 4096, 1 << 21).count
    258048

    Parameters
    ----------
    blocks : Blocks
        Blocks of the whole vector; of each at least one tile in ``EVERY`` is sampled.
    lo, hi : int
        The range, which begins and ends with a tile. Coordinates and tiles are counted from ``lo``.
    """

    blocks: Blocks
    lo: int = 0
    hi: int | None = None

    @cached_property
    def size(self) -> int:
        """Coordinates in a tile."""
        return tile_size(self.blocks.dim)

    @cached_property
    def _chosen(self) -> npt.NDArray[np.bool_]:
        """The sampled tiles of the whole vector."""
        number = -(-self.blocks.dim // self.size)
        if number <= SHORT:
            return np.ones(number, bool)
        keep = np.zeros(number, bool)
        keep[::EVERY] = True
        first, last = self.blocks.starts // self.size, (self.blocks.starts + self.blocks.sizes - 1) // self.size
        for low, high in zip(first.tolist(), last.tolist(), strict=True):
            if high - low < EVERY:
                keep[low : high + 1] = True
        return keep

    def _below(self, coordinates: Ints) -> Ints:
        """How many coordinates below each of these are sampled."""
        tile, rest = np.divmod(coordinates, self.size)
        before = np.append(0, np.cumsum(self._chosen))[tile]
        return before * self.size + np.where(np.append(self._chosen, False)[tile], rest, 0)

    @cached_property
    def range(self) -> tuple[int, int]:
        """``lo`` and ``hi``."""
        return self.lo, self.blocks.dim if self.hi is None else self.hi

    @cached_property
    def begin(self) -> Ints:
        """Where each tile begins among the sampled coordinates; −1 for a tile that is not sampled."""
        lo, hi = self.range
        here = self._chosen[lo // self.size : -(-hi // self.size)]
        return np.where(here, (np.cumsum(here) - 1) * self.size, -1)

    @cached_property
    def coordinates(self) -> Ints:
        """All sampled coordinates, in order."""
        lo, hi = self.range
        every = (np.flatnonzero(self.begin >= 0)[:, None] * self.size + np.arange(self.size)).ravel()
        return every[every < hi - lo]

    @cached_property
    def count(self) -> int:
        """How many coordinates are sampled."""
        first, last = self._below(np.array(self.range)).tolist()
        return int(last - first)

    @cached_property
    def everything(self) -> bool:
        """Whether no coordinate is left out."""
        lo, hi = self.range
        return self.count == hi - lo

    @cached_property
    def scale(self) -> Doubles:
        """Coordinates of each block of the whole vector over those of them that are sampled."""
        held = np.diff(self._below(np.append(self.blocks.starts, self.blocks.dim)))
        return np.asarray(self.blocks.sizes) / held

    def places(self, coordinates: Ints) -> Ints:
        """Where coordinates stand among the sampled ones; −1 for those that are not sampled."""
        begin = self.begin[coordinates // self.size]
        return np.where(begin >= 0, begin + coordinates % self.size, -1)

    def listed(self, where: Tiled) -> tuple[Ints, Ints]:
        """The sampled ones of coordinates that are listed by tile, and their numbers in the list."""
        tiles = np.flatnonzero(self.begin >= 0)
        counts = where.at[tiles + 1] - where.at[tiles]
        numbers = np.repeat(where.at[tiles] - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))
        return np.repeat(tiles * self.size, counts) + where.places[numbers], numbers


@lru_cache(maxsize=8)
def moment_sample(blocks: Blocks, lo: int = 0, hi: int | None = None) -> MomentSample:
    """The sample for vectors with these blocks, or for a range of them; the same in every round."""
    return MomentSample(blocks, lo, hi)
