"""Which coordinates keep the sums of their powers: all of a short vector, every eighth block of a long one.

Only standard errors and the shrinkage of the correlation rest on these sums. Their relative error is that of a mean
over the kept coordinates, far below what a standard error has to be good to; everything else stays exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from sparsemean.blocks import Blocks
from sparsemean.payload import Doubles, Ints
from sparsemean.sampling import block_size

SHORT = 64  # blocks of the sampler up to which all are kept
EVERY = 8  # of more blocks one in so many


@dataclass(frozen=True)
class Kept:
    """``begin[b]`` is where the sampler's block b stands among the kept coordinates, −1 where it is not kept.

    Which are kept is chosen for the whole vector, of the given layers. Of it, [lo, hi) is looked at, whole blocks of
    the sampler, and coordinates and blocks are counted from lo.

    >>> Kept(Blocks((5, 3))).count, Kept(Blocks((1 << 22,))).count, Kept(Blocks((1 << 22,)), 4096, 1 << 21).count
    (8, 524288, 258048)
    """

    blocks: Blocks
    lo: int = 0
    hi: int | None = None

    @cached_property
    def size(self) -> int:
        """Coordinates in a block of the sampler."""
        return block_size(self.blocks.dim)

    @cached_property
    def _chosen(self) -> npt.NDArray[np.bool_]:
        """The blocks of the whole vector that are kept: of every layer at least one in ``EVERY``."""
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
        """How many coordinates below each of these are kept."""
        block, rest = np.divmod(coordinates, self.size)
        before = np.append(0, np.cumsum(self._chosen))[block]
        return before * self.size + np.where(np.append(self._chosen, False)[block], rest, 0)

    @cached_property
    def _range(self) -> tuple[int, int]:
        return self.lo, self.blocks.dim if self.hi is None else self.hi

    @cached_property
    def begin(self) -> Ints:
        """Where each block of the sampler begins."""
        lo, hi = self._range
        here = self._chosen[lo // self.size : -(-hi // self.size)]
        return np.where(here, (np.cumsum(here) - 1) * self.size, -1)

    @cached_property
    def coordinates(self) -> Ints:
        """All that are kept, in order."""
        lo, hi = self._range
        every = (np.flatnonzero(self.begin >= 0)[:, None] * self.size + np.arange(self.size)).ravel()
        return every[every < hi - lo]

    @cached_property
    def count(self) -> int:
        """How many are kept."""
        first, last = self._below(np.array(self._range)).tolist()
        return int(last - first)

    @cached_property
    def everything(self) -> bool:
        """Whether no coordinate is left out."""
        lo, hi = self._range
        return self.count == hi - lo

    @cached_property
    def scale(self) -> Doubles:
        """For each layer of the whole vector: its coordinates over those of them that are kept."""
        held = np.diff(self._below(np.append(self.blocks.starts, self.blocks.dim)))
        return np.asarray(self.blocks.sizes) / held

    def places(self, coordinates: Ints) -> Ints:
        """Where coordinates stand among those kept, −1 for those that are not."""
        begin = self.begin[coordinates // self.size]
        return np.where(begin >= 0, begin + coordinates % self.size, -1)


@lru_cache(maxsize=8)
def kept(blocks: Blocks, lo: int = 0, hi: int | None = None) -> Kept:
    """What is kept of vectors with these layers, or of a range of them; the same in every round."""
    return Kept(blocks, lo, hi)
