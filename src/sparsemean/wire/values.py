"""Values on the wire: one kind of number for a whole run, little-endian."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues
from sparsemean.payload import Floats
from sparsemean.wire.reader import Reader

LARGEST = 1e100  # beyond it sums of squares overflow; no honest vector goes there


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A number format: its code in the frame and how arrays of it become bytes."""

    code: int
    name: str
    dtype: np.dtype[np.floating]

    def size(self, count: int) -> int:
        """Bytes that ``count`` values take."""
        return count * self.dtype.itemsize

    def holds(self, values: Floats) -> bool:
        """Whether values of this format are finite and below ``LARGEST``; NaN compares as false."""
        limit = min(LARGEST, float(np.finfo(self.dtype).max))
        return bool(np.all(np.abs(values) <= self.dtype.type(limit)))

    def pack(self, values: Floats) -> bytes:
        """The values as bytes; refuses what does not fit the format."""
        with np.errstate(over="ignore"):
            packed = values.astype(self.dtype)
        if not self.holds(packed):
            raise InvalidInput(f"values must fit {self.name} and stay below {LARGEST:g}; clip or rescale the vector")
        return packed.tobytes()

    def unpack(self, reader: Reader, count: int) -> Floats:
        """The next ``count`` values, finite, as a view of the buffer where it is aligned."""
        values = np.frombuffer(reader.take(self.size(count)), self.dtype)
        if not self.holds(values):
            raise NonFiniteValues(f"values must be finite and below {LARGEST:g}; the node should check its vector")
        return values


KINDS = {
    kind.name: kind
    for kind in (
        ValueKind(1, "float32", np.dtype("<f4")),
        ValueKind(2, "float64", np.dtype("<f8")),
    )
}


def value_kind(name: str) -> ValueKind:
    """The kind of that name.

    >>> value_kind("float32").size(10)
    40
    """
    try:
        return KINDS[name]
    except (KeyError, TypeError):
        raise InvalidInput(f"values is one of {', '.join(KINDS)}; got {name!r}") from None


def pack_signs(values: Floats) -> bytes:
    """One bit a value, set where it is negative."""
    return np.packbits(np.signbit(values), bitorder="little").tobytes()


def unpack_signs(reader: Reader, count: int) -> Floats:
    """The next ``count`` signs as ±1; the padding bits must be 0."""
    bits = np.unpackbits(np.frombuffer(reader.take((count + 7) // 8), np.uint8), bitorder="little")
    if np.any(bits[count:]):
        raise MalformedPayload("padding bits are set")
    return 1.0 - 2.0 * bits[:count]
