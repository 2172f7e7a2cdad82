"""Blocks of a vector (layers, cluster centres): consecutive ranges with a weight and a correlation of their own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Ints

Number = TypeVar("Number", bound=np.number[Any])


@dataclass(frozen=True)
class Blocks:
    """Consecutive ranges of the given sizes.

    >>> blocks = Blocks((2, 3))
    >>> blocks.expand(np.array([1.0, 5.0]))
    array([1., 1., 5., 5., 5.])
    >>> blocks.sums(np.arange(5.0))
    array([1., 9.])
    >>> blocks.within(0, 2)
    Blocks(sizes=(2, 0))
    """

    sizes: tuple[int, ...]

    @cached_property
    def dim(self) -> int:
        """Length of the whole vector."""
        return sum(self.sizes)

    @cached_property
    def starts(self) -> Ints:
        """The first coordinate of each."""
        return np.cumsum((0, *self.sizes[:-1]), dtype=np.int64)

    def within(self, lo: int, hi: int) -> Blocks:
        """What of each lies in [lo, hi), counted from lo; empty for those that lie elsewhere."""
        ends = np.clip(np.append(self.starts, self.dim), lo, hi)
        return self if (lo, hi) == (0, self.dim) else Blocks(tuple(np.diff(ends).tolist()))

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The coordinates of each."""
        return tuple(slice(start, start + size) for start, size in zip(self.starts.tolist(), self.sizes, strict=True))

    def of(self, coordinates: Ints) -> Ints:
        """The block each coordinate lies in."""
        return np.searchsorted(self.starts, coordinates, side="right") - 1

    def at(self, per_block: Doubles, coordinates: Ints) -> Doubles | float:
        """The block's number at each coordinate; a plain number where there is one block."""
        if len(self.sizes) == 1:
            return float(per_block[0])
        return per_block[self.of(coordinates)]

    def expand(self, per_block: Doubles) -> Doubles:
        """The block's number at every coordinate; a view of one number where there is one block."""
        if len(self.sizes) == 1:
            return np.broadcast_to(per_block, self.dim)
        return np.repeat(per_block, self.sizes)

    def sums(self, per_coordinate: Doubles) -> Doubles:
        """One sum per block."""
        return self._reduced(np.add, per_coordinate)

    def largest(self, per_coordinate: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The largest number of each block, 0 where it is empty."""
        return self._reduced(np.maximum, per_coordinate)

    def _reduced(self, ufunc: np.ufunc, per_coordinate: npt.NDArray[Number]) -> npt.NDArray[Number]:
        filled = np.asarray(self.sizes) > 0
        reduced = np.zeros(len(self.sizes), per_coordinate.dtype)
        if self.dim:
            reduced[filled] = ufunc.reduceat(per_coordinate, self.starts[filled])
        return reduced

    def sums_at(self, coordinates: Ints, values: Doubles) -> Doubles:
        """One sum per block of values that stand at these coordinates; of each row, where there are several."""
        if len(self.sizes) == 1:
            return np.asarray(np.sum(values, axis=-1, keepdims=True))
        block = self.of(coordinates)
        sums = [np.bincount(block, row, minlength=len(self.sizes)) for row in np.atleast_2d(values)]
        return np.array(sums, np.float64).reshape((*values.shape[:-1], len(self.sizes)))
