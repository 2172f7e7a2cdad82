"""What every kind of value can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from sparsemean.levels import Levels
from sparsemean.payload import Floats
from sparsemean.sampling import Key
from sparsemean.wire.reader import Reader

LARGEST = 1e100  # beyond it sums of squares overflow; no honest vector goes there


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

    @abstractmethod
    def pack(self, values: Floats, key: Key) -> bytes:
        """The values as bytes, rounded by the dither of the key; refuses what does not fit the format."""

    @abstractmethod
    def unpack(self, reader: Reader, count: int, key: Key) -> tuple[Floats, Levels | float]:
        """The next ``count`` values, finite, and the variance of the rounding noise in each."""
