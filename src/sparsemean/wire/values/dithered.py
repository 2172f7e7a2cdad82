"""Integers of few bits by seeded subtractive dither: int8, int4, 2-bit and 1-bit; and int16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar, final

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats
from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues
from sparsemean.kernels import restore
from sparsemean.kernels.bit_stream import packed_bytes
from sparsemean.kernels.quantise import quantise
from sparsemean.kernels.restore import Codes
from sparsemean.payload.noise import Levels
from sparsemean.sampling import Key, stream_of
from sparsemean.sampling.plan import LARGEST_SCALE
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import bits
from sparsemean.wire.values.dither import LABEL
from sparsemean.wire.values.kind import Read, ValueKind
from sparsemean.wire.values.sixteen import BFLOAT16, bfloat16_above

WIDEST = 16  # bits, of which each code has two bytes; others are packed
GROUP = 256  # values that share a scale: 1/16 bit of overhead each
_LARGEST_BITS, _SIGN = 0x7E80, 0x8000  # of bfloat16
Scalar = TypeVar("Scalar", bound=np.generic)


def step(scales: Doubles, levels: int) -> Doubles:
    """s = 2A / (L − 1): L levels from −A to A.

    >>> step(np.array([7.5]), 16)
    array([1.])
    """
    return 2.0 * scales / (levels - 1)


def _integers(levels: int) -> Any:
    return np.uint8 if levels <= 256 else np.uint16


@final
@dataclass(frozen=True)
class Dithered(ValueKind):
    """Groups of 256 values, each with its scale A ≥ max|x| in bfloat16; all scales, then all codes.

    What comes back, x̂ = s·(c + ½ − L/2 − D), is uniform round x with width s, whatever x is: E x̂ = x, var x̂ = s²/12.
    """

    code: int
    name: str
    bits: int
    dtype: np.dtype[np.floating] = np.dtype("<f4")
    exact: ClassVar[bool] = False

    def size(self, count: int) -> int:
        """Bytes that ``count`` values take."""
        return 2 * _groups(count) + (2 * count if self.bits == WIDEST else packed_bytes(count, self.bits))

    def pack(self, values: Floats, key: Key) -> bytes:
        """The values as bytes; refuses magnitudes above 2¹²⁶."""
        largest = _largest_of_groups(values)
        if not np.all(largest <= LARGEST_SCALE):  # NaN compares as false
            raise InvalidInput(
                f"{self.name} takes values up to {LARGEST_SCALE:.3g}; rescale the vector, or use float32 or float64"
            )
        scales = bfloat16_above(largest)
        codes: Codes = np.empty(values.size, _integers(1 << self.bits))
        quantise(stream_of(key, LABEL), values, step(_widened(scales), 1 << self.bits), GROUP, 1 << self.bits, codes)
        return scales.tobytes() + self._packed(codes)

    def unpack(self, reader: Reader, count: int, key: Key) -> tuple[Floats, Levels]:
        """The next ``count`` values, and s²/12 for each: exact, and independent of the values, given the scale."""
        body = Reader(reader.take(self.size(count)))  # all of it is there before anything is allocated
        scales = np.frombuffer(body.take(2 * _groups(count)), "<u2")
        if np.any(scales & ~np.uint16(_SIGN) > _LARGEST_BITS):
            raise NonFiniteValues(f"scales must be finite and at most {LARGEST_SCALE:.3g}; check the node's vector")
        if np.any(scales & _SIGN):
            raise MalformedPayload("the scale of a group is negative")
        codes = self._unpacked(body, count)
        steps = step(_widened(scales), 1 << self.bits)
        values = np.empty(count, self.dtype)
        restore(stream_of(key, LABEL), codes, steps, GROUP, 1 << self.bits, values)
        if not np.all(steps):
            zero = _each(steps == 0.0, slice(0, count))
            if np.any(codes[zero]):
                raise MalformedPayload("a group of scale 0 has codes other than 0")
            values[zero] = 0.0  # not −0
        return values, Levels(steps * steps / 12.0, GROUP, count)

    def _packed(self, codes: Codes) -> bytes:
        if self.bits == WIDEST:
            return codes.astype("<u2", copy=False).tobytes()
        return bits.pack(codes.astype(np.uint8, copy=False), self.bits)

    def _unpacked(self, body: Reader, count: int) -> Codes:
        if self.bits == WIDEST:
            return np.frombuffer(body.take(2 * count), "<u2").astype(np.uint16)  # and so aligned
        return bits.unpack(body, count, self.bits)

    def read(self, reader: Reader, count: int, key: Key) -> Read:
        """The same with a scale that would suit the sender: the median of its own."""
        values, noise = self.unpack(reader, count, key)
        own = np.sort(np.sqrt(12.0 * noise.levels)) * ((1 << self.bits) - 1) / 2
        return Read(values, noise, float(own[own.size // 2]) if own.size else 0.0)


def own_scales(values: Floats) -> Doubles:
    """The scale of each group of values: the smallest bfloat16 that is not below its largest magnitude."""
    return _widened(bfloat16_above(_largest_of_groups(values)))


def _widened(scales: npt.NDArray[np.uint16]) -> Doubles:
    return BFLOAT16.widen(scales).astype(np.float64)


def _groups(count: int) -> int:
    return -(-count // GROUP)


def _largest_of_groups(values: Floats) -> Doubles:
    starts = np.arange(0, values.size, GROUP)
    return np.maximum.reduceat(np.abs(values), starts).astype(np.float64) if values.size else np.empty(0)


def _each(of_groups: npt.NDArray[Scalar], part: slice) -> npt.NDArray[Scalar]:
    """What groups have, for each of the values in a part, which starts with a group."""
    first, last = part.start // GROUP, _groups(part.stop)
    return np.repeat(of_groups[first:last], GROUP)[: part.stop - part.start]
