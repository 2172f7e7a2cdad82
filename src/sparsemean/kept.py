"""Which coordinates keep the sums of their powers: all of a short vector, every eighth block of a long one.

Only standard errors and the shrinkage of the correlation rest on these sums. Their relative error is that of a mean
over the kept coordinates, far below what a standard error has to be good to; everything else stays exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from sparsemean.blocks import Blocks
from sparsemean.payload import Doubles, Ints
from sparsemean.sampling import block_size

SHORT = 64  # blocks of the sampler up to which all are kept
EVERY = 8  # of more blocks one in so many


@dataclass(frozen=True)
class Kept:
    """``begin[b]`` is where the sampler's block b stands among the kept coordinates, −1 where it is not kept.

    >>> Kept(Blocks((5, 3))).count, Kept(Blocks((1 << 22,))).count
    (8, 524288)
    """

    blocks: Blocks

    @cached_property
    def size(self) -> int:
        """Coordinates in a block of the sampler."""
        return block_size(self.blocks.dim)

    @cached_property
    def _chosen(self) -> Ints:
        """The blocks that are kept: of every layer at least one in ``EVERY``."""
        number = -(-self.blocks.dim // self.size)
        if number <= SHORT:
            return np.arange(number)
        keep = np.zeros(number, bool)
        keep[::EVERY] = True
        first, last = self.blocks.starts // self.size, (self.blocks.starts + self.blocks.sizes - 1) // self.size
        for low, high in zip(first.tolist(), last.tolist(), strict=True):
            if high - low < EVERY:
                keep[low : high + 1] = True
        return np.flatnonzero(keep)

    @cached_property
    def begin(self) -> Ints:
        """Where each block of the sampler begins."""
        begin = np.full(-(-self.blocks.dim // self.size), -1, np.int64)
        begin[self._chosen] = np.arange(self._chosen.size) * self.size
        return begin

    @cached_property
    def coordinates(self) -> Ints:
        """All that are kept, in order."""
        every = (self._chosen[:, None] * self.size + np.arange(self.size)).ravel()
        return every[every < self.blocks.dim]

    @cached_property
    def count(self) -> int:
        """How many are kept."""
        missing = self.begin.size * self.size - self.blocks.dim  # of the last block, which may be short
        return int(self._chosen.size * self.size - (missing if self._chosen[-1] == self.begin.size - 1 else 0))

    @cached_property
    def everything(self) -> bool:
        """Whether no coordinate is left out."""
        return self.count == self.blocks.dim

    @cached_property
    def scale(self) -> Doubles:
        """For each layer: its coordinates over those of them that are kept."""
        if self.everything:
            return np.ones(len(self.blocks.sizes))
        held = self.blocks.sums_at(self.coordinates, np.ones(self.count))
        return np.asarray(self.blocks.sizes) / held

    def places(self, coordinates: Ints) -> Ints:
        """Where coordinates stand among those kept, −1 for those that are not."""
        begin = self.begin[coordinates // self.size]
        return np.where(begin >= 0, begin + coordinates % self.size, -1)


@lru_cache(maxsize=8)
def kept(blocks: Blocks) -> Kept:
    """What is kept of vectors with these layers; the same in every round."""
    return Kept(blocks)
