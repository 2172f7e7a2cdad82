"""Arrays in which few numbers differ, such as the variances of rounding: made when they are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Levels:
    """``size`` numbers: ``levels[which]``, or so many of each level in a row, where ``which`` is a number.

    >>> np.asarray(Levels(np.array([1.0, 2.0]), 3, size=5))
    array([1., 1., 1., 2., 2.])
    """

    levels: Doubles
    which: npt.NDArray[np.uint8] | int
    size: int

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if isinstance(self.which, int):
            return np.repeat(self.levels, self.which)[: self.size].astype(dtype or np.float64, copy=False)
        return self.levels[self.which].astype(dtype or np.float64, copy=False)

    def __mul__(self, factor: float) -> Levels:
        return Levels(self.levels * factor, self.which, self.size)

    def sum(self) -> float:
        """Of all the numbers, without making them."""
        if isinstance(self.which, int):
            often = np.full(self.levels.size, self.which)
            often[-1:] -= often.sum() - self.size
        else:
            often = np.bincount(self.which, minlength=self.levels.size)
        return float(often @ self.levels)

    @property
    def nbytes(self) -> int:
        """What it takes."""
        return self.levels.nbytes + (0 if isinstance(self.which, int) else self.which.nbytes)
