"""What every kind of value can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from sparsemean._types import Floats
from sparsemean.payload.noise import Levels, Octaves
from sparsemean.sampling import Key
from sparsemean.wire.reader import Reader

LARGEST = 1e100  # beyond it sums of squares overflow; no honest vector goes there


def bounded(values: Floats) -> bool:
    """Whether all of them are finite and no larger than ``LARGEST``.

    The sum of squares tells in one pass, but for floats of which that overflows. einsum takes it rather than dot, whose
    threads may wait for a core that others use: 8 ms, however short the vector.

    >>> [bounded(np.array([1.0, each], np.float32)) for each in (3e38, np.inf, np.nan)]
    [True, False, False]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        squares = float(np.einsum("i,i->", values, values))
    if np.isfinite(squares) and squares <= LARGEST**2:
        return True
    limit = values.dtype.type(min(LARGEST, float(np.finfo(values.dtype).max)))
    return bool(-limit <= values.min() and values.max() <= limit)  # NaN compares as false


class Read(NamedTuple):
    """Values that came, the variance of the rounding noise in each, and the scale that would suit their sender.

    A scale is that of few-bit values (``Plan.scale``); None where values have none.
    """

    values: Floats
    noise: Levels | Octaves | float
    wanted_scale: float | None = None


class ValueKind(ABC):
    """A number format: its code in the frame, and how arrays become bytes and come back.

    ``dtype`` is that of the values that come back; ``exact`` says whether packing those again gives the same bytes.
    """

    code: int
    name: str
    dtype: np.dtype[np.floating]
    exact: ClassVar[bool]

    @abstractmethod
    def size(self, count: int) -> int:
        """Bytes that ``count`` values take."""

    def omega(self, count: int) -> float:
        """ω with E‖noise‖² = ω‖values‖² for so many values, where that is known and not small; else 0."""
        return 0.0

    @abstractmethod
    def pack(self, values: Floats, key: Key) -> bytes:
        """The values as bytes, rounded by the dither of the key; refuses what does not fit the format."""

    @abstractmethod
    def unpack(self, reader: Reader, count: int, key: Key) -> tuple[Floats, Levels | Octaves | float]:
        """The next ``count`` values, finite, and the variance of the rounding noise in each."""

    def read(self, reader: Reader, count: int, key: Key) -> Read:
        """The same, with the scale that would suit the sender."""
        return Read(*self.unpack(reader, count, key))
