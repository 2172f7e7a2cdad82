"""IEEE numbers as they are: float32 and float64."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput, NonFiniteValues
from sparsemean.sampling import Key
from sparsemean.wire.reader import Reader
from sparsemean.wire.values.kind import LARGEST, ValueKind, bounded


@final
@dataclass(frozen=True)
class Exact(ValueKind):
    """Values as numbers of ``dtype``, without noise and without need of a key."""

    code: int
    name: str
    dtype: np.dtype[np.floating]
    exact: ClassVar[bool] = True

    def size(self, count: int) -> int:
        """Bytes that ``count`` values take."""
        return count * self.dtype.itemsize

    def pack(self, values: Floats, key: Key) -> bytes:
        """The values as bytes; refuses what does not fit the format."""
        with np.errstate(over="ignore"):
            packed = values.astype(self.dtype)
        if not bounded(packed):
            raise InvalidInput(f"values must fit {self.name} and stay below {LARGEST:g}; clip or rescale the vector")
        return packed.tobytes()

    def unpack(self, reader: Reader, count: int, key: Key) -> tuple[Floats, float]:
        """The next ``count`` values, as a view of the buffer where it is aligned; the noise is 0."""
        values = np.frombuffer(reader.take(self.size(count)), self.dtype)
        if not bounded(values):
            raise NonFiniteValues(f"values must be finite and below {LARGEST:g}; the node should check its vector")
        return values, 0.0
