"""Values rounded at random to the nearest levels of a grid: QSGD, TernGrad, and rounding after a rotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats
from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues
from sparsemean.kernels.bit_stream import Bytes, packed_bytes
from sparsemean.kernels.eden import TILE, rotated, rotated_back, shrinkage
from sparsemean.payload.noise import Levels
from sparsemean.sampling import Key, stream_of
from sparsemean.theory.quantisers import qsgd_bound, rotated_bound, terngrad_bound
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import bits
from sparsemean.wire.values.dither import chunks
from sparsemean.wire.values.dithered import Scalar, step
from sparsemean.wire.values.kind import ValueKind
from sparsemean.wire.values.stated_noise import FACTOR_BYTES, pack_factor, read_factor

BUCKET = 512  # values that share a scale, as in QSGD's experiments
LARGEST_VALUE = 2.0**112
LARGEST_SCALE = 2.0**118  # the norm of a tile of the largest values
ROTATION = b"rotation"


@final
@dataclass(frozen=True)
class Stochastic(ValueKind):
    """Groups of values, each with its scale A in single precision: φ (``stated_noise``), all scales, then all codes.

    L levels from −A to A, u = 2A/(L − 1) apart. A value becomes the level below or above it, c = ⌊x/u + (L − 1)/2 + U⌋,
    so that it comes back as x on average; what comes back needs no dither. Unlike ``Dithered``, whose noise is s²/12,
    the noise of a value depends on where it lies, and is u²/6 on average where steps are small.

    Parameters
    ----------
    code, name
        What the frame and users call it.
    levels : int
        L, from 2 to 256.
    norm : bool, default False
        Whether A is the Euclidean norm of the group, as in QSGD; else its largest magnitude.
    rotates : bool, default False
        Whether groups are tiles of 4,096 that are rotated at random first, as in EDEN; else they are of 512 values.
    trits : bool, default False
        Whether five codes of three levels share a byte.
    """

    code: int
    name: str
    levels: int
    norm: bool = False
    rotates: bool = False
    trits: bool = False
    dtype: np.dtype[np.floating] = np.dtype("<f4")
    exact: ClassVar[bool] = False

    @property
    def group(self) -> int:
        """Values that share a scale."""
        return TILE if self.rotates else BUCKET

    @property
    def width(self) -> int:
        """Bits of a code, where these are not trits."""
        return (self.levels - 1).bit_length()

    def size(self, count: int) -> int:
        """Bytes that ``count`` values take."""
        if count == 0:
            return 0
        codes = bits.trit_bytes(count) if self.trits else packed_bytes(count, self.width)
        return FACTOR_BYTES + 4 * self._groups(count) + codes

    def omega(self, count: int) -> float:
        """What the noise is at worst, by the papers' bounds."""
        shared = max(min(count, self.group), 1)
        if self.rotates:
            return rotated_bound(self.levels, shared)
        return qsgd_bound((self.levels - 1) // 2, shared) if self.norm else terngrad_bound(shared)

    def pack(self, values: Floats, key: Key) -> bytes:
        """The values as bytes; refuses magnitudes above 2¹¹²."""
        if values.size == 0:
            return b""
        if not -LARGEST_VALUE <= values.min() <= values.max() <= LARGEST_VALUE:  # NaN compares as false
            raise InvalidInput(
                f"{self.name} takes values up to {LARGEST_VALUE:.3g}; rescale the vector, or use float32 or float64"
            )
        placed = self._turned(values, key) if self.rotates else values
        scales = self._scales(placed)
        steps = step(scales.astype(np.float64), self.levels)
        divisors = np.where(steps > 0.0, steps, 1.0)
        codes, variance = np.empty(values.size, np.uint8), 0.0
        for part, uniform in chunks(key, values.size):
            place = placed[part].astype(np.float64) / self._each(divisors, part) + (self.levels - 1) / 2
            beyond = place - np.floor(place)
            variance += float(np.sum(beyond * (1.0 - beyond) * self._each(steps, part) ** 2))
            codes[part] = np.floor(place + uniform) * self._each(steps > 0.0, part)
        weight = Levels(steps * steps, self.group, values.size).sum()
        packed = bits.pack_trits(codes) if self.trits else bits.pack(codes, self.width)
        return pack_factor(variance, weight) + scales.tobytes() + packed

    def unpack(self, reader: Reader, count: int, key: Key) -> tuple[Floats, Levels]:
        """The next ``count`` values, and φu² for each: exact in all."""
        if count == 0:
            return np.empty(0, self.dtype), Levels(np.empty(0), self.group, 0)
        body = Reader(reader.take(self.size(count)))  # all of it is there before anything is allocated
        factor = read_factor(body)
        scales = np.frombuffer(body.take(4 * self._groups(count)), "<f4").astype(np.float64)
        if not np.all(np.abs(scales) <= LARGEST_SCALE):
            raise NonFiniteValues(f"scales must be finite and at most {LARGEST_SCALE:.3g}; check the node's vector")
        if np.any(np.signbit(scales)):
            raise MalformedPayload("the scale of a group is negative")
        codes = bits.unpack_trits(body, count) if self.trits else bits.unpack(body, count, self.width)
        everywhere = slice(0, count)
        if np.any(codes >= self.levels):
            raise MalformedPayload(f"a code is beyond the {self.levels} levels")
        if np.any(codes[self._each(scales == 0.0, everywhere)]):
            raise MalformedPayload("a group of scale 0 has codes other than 0")
        steps = step(scales, self.levels)
        values = (self._turned_back if self.rotates else self._levels)(codes, steps, key)
        values[self._each(scales == 0.0, everywhere)] = 0.0  # not −0
        return values, Levels(factor * steps * steps, self.group, count)

    def _levels(self, codes: Bytes, steps: Doubles, key: Key) -> Floats:
        each = self._each(steps, slice(0, codes.size))
        values: Floats = (each * (codes - (self.levels - 1) / 2)).astype(self.dtype)
        return values

    def _scales(self, placed: Floats) -> npt.NDArray[np.float32]:
        """The smallest float32 that is not below the norm, or the largest magnitude, of each group."""
        starts = np.arange(0, placed.size, self.group)
        scales: Doubles = np.maximum.reduceat(np.abs(placed), starts).astype(np.float64)
        if self.norm:  # of tiny values the squares are 0, and the norm would be less than they are
            scales = np.maximum(scales, np.sqrt(np.add.reduceat(placed.astype(np.float64) ** 2, starts)))
        single = scales.astype("<f4")
        return np.where(single < scales, np.nextafter(single, np.float32(np.inf)), single).astype("<f4")

    def _turned(self, values: Floats, key: Key) -> Doubles:
        """The values after the rotation of their tiles, in which they are of the order of 1, so that none underflow."""
        stream, placed = stream_of(key, ROTATION), np.zeros(values.size)
        for tile, start in enumerate(range(0, values.size, TILE)):
            some = values[start : start + TILE].astype(np.float64)
            _, exponent = np.frexp(np.abs(some).max())
            even = (np.ldexp(some, -exponent) * shrinkage(some.size)).astype(np.float32)
            placed[start : start + TILE] = np.ldexp(rotated(even, stream, tile).astype(np.float64), exponent)
        return placed

    def _turned_back(self, codes: Bytes, steps: Doubles, key: Key) -> Floats:
        stream, values = stream_of(key, ROTATION), np.zeros(codes.size, self.dtype)
        for tile, start in enumerate(range(0, codes.size, TILE)):
            levels = codes[start : start + TILE].astype(np.float32) - np.float32((self.levels - 1) / 2)
            back = rotated_back(levels, stream, tile).astype(np.float64)
            values[start : start + TILE] = back * (steps[tile] * shrinkage(levels.size))
        return values

    def _groups(self, count: int) -> int:
        return -(-count // self.group)

    def _each(self, of_groups: npt.NDArray[Scalar], part: slice) -> npt.NDArray[Scalar]:
        """What groups have, for each of the values in a part, which starts with a group."""
        here = of_groups[part.start // self.group : self._groups(part.stop)]
        return np.repeat(here, self.group)[: part.stop - part.start]
