"""Arrays with a number for each value that are made when they are asked for, such as the variances of rounding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]

_CHUNK = 1 << 15  # numbers at a time, so that they stay in the cache


@dataclass(frozen=True, eq=False)
class Levels:
    """``size`` numbers: ``each`` of every level in a row, as far as they are needed.

    >>> np.asarray(Levels(np.array([1.0, 2.0]), each=3, size=5))
    array([1., 1., 1., 2., 2.])
    """

    levels: Doubles
    each: int
    size: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.repeat(self.levels, self.each)[: self.size].astype(dtype or np.float64, copy=False)

    def __mul__(self, factor: float) -> Levels:
        return replace(self, levels=self.levels * factor)

    def between(self, lo: int, hi: int) -> Levels:
        """The numbers from ``lo`` to before ``hi``."""
        return Levels(np.asarray(self)[lo:hi], 1, hi - lo)

    def at(self, numbers: npt.NDArray[np.int64]) -> Doubles:
        """Some of them."""
        return self.levels[numbers // self.each]

    def sum(self) -> float:
        """Of all the numbers, without making them."""
        beyond = self.levels.size * self.each - self.size
        return float(self.each * self.levels.sum() - beyond * self.levels[-1:].sum())

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """What it holds."""
        return (self.levels,)


@dataclass(frozen=True, eq=False)
class Octaves:
    """``factor`` · max(2^e, ``least``)² for each x of ``values``, where 2^e ≤ |x| < 2^(e+1).

    >>> np.asarray(Octaves(np.array([1.0, -3.0, 0.1, 0.0], "<f4"), least=0.5, factor=4.0))
    array([ 4., 16.,  1.,  1.])
    """

    values: Singles
    least: float
    factor: float

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return (self.factor * self._roots(self.values) ** 2).astype(dtype or np.float64, copy=False)

    def __mul__(self, factor: float) -> Octaves:
        return replace(self, factor=self.factor * factor)

    def between(self, lo: int, hi: int) -> Octaves:
        """The numbers from ``lo`` to before ``hi``."""
        return replace(self, values=self.values[lo:hi])

    def at(self, numbers: npt.NDArray[np.int64]) -> Doubles:
        """Some of them."""
        return np.asarray(replace(self, values=self.values[numbers]))

    def sum(self) -> float:
        """Of all the numbers, without making them all at once."""
        roots = (self._roots(self.values[low : low + _CHUNK]) for low in range(0, self.values.size, _CHUNK))
        return self.factor * sum(float(np.einsum("i,i->", some, some)) for some in roots)  # BLAS would wake threads

    def _roots(self, values: Singles) -> Doubles:
        powers = (values.view("<u4") & np.uint32(0x7F800000)).view("<f4")  # a float32 without its fraction and sign
        roots: Doubles = np.maximum(powers, np.float32(self.least)).astype(np.float64)
        return roots

    @property
    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """What it holds; most often the values themselves."""
        return (self.values,)
