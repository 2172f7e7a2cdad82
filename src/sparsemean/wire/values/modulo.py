"""Modulo values: EDEN's, or codes that wrap around and are read by what the receiver expects (Wyner and Ziv 1976)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats, Ints
from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues
from sparsemean.kernels.bit_stream import packed, unpacked
from sparsemean.kernels.eden import LEAST, TILE, Tiles, rotate_and_round, rotate_back, rotated, rotated_back, shrinkage
from sparsemean.kernels.lloyd_max import distortion
from sparsemean.kernels.restore import uniforms
from sparsemean.payload import Resolved, Wrapped
from sparsemean.payload.noise import Levels
from sparsemean.sampling import Key, stream_of
from sparsemean.theory.eden import eden_error
from sparsemean.wire.checksum import crc32
from sparsemean.wire.reader import Reader
from sparsemean.wire.values.bits import check_padding
from sparsemean.wire.values.dither import LABEL as DITHER
from sparsemean.wire.values.dithered import Dithered
from sparsemean.wire.values.eden import Eden
from sparsemean.wire.values.kind import ValueKind

FIRST_CODE = 160
ROTATION = b"modulo"
SKETCH = 64  # numbers of a tile that the sender is told
FAILED = 1.6  # mean square of what could not be told, over what the sketch showed of it
FINEST = 2.0**-40  # of the largest number of a tile: points have to be whole numbers that float64 holds
LARGEST_VALUE = 2.0**96  # a rotation multiplies norms by up to 2¹⁸ before it scales them back
LARGEST_STEP = 2.0**100  # of a point up to 2⁷ steps from where it is sought
LARGEST_READ = 2.0**120  # whatever is expected
CHECKSUM_BYTES = 4


@final
@dataclass(frozen=True)
class Modulo(ValueKind):
    """Tiles of 4,096 values: all steps in single precision, all checksums, then all codes.

    A tile is rotated. Where it travels as by EDEN, minus its scale stands for the step, and its checksum is 0. Else,
    with z a rotated number, h the step, L = 2^b and a dither D, its point is m = ⌊z/h + D⌋ and its code m mod L. What
    comes back, h·(m + ½ − D), is uniform around z with width h, if it is taken for the right one of the points with
    this code: that next to what the receiver expects. The checksum is one of all m of the tile, so that a point that
    was taken for another does not go unnoticed. Fewer than 512 values are neither, but rounded with dither.

    Parameters
    ----------
    code : int
        160 + b, b being the bits of a value, 2 to 8.
    sketch : array of float32, optional
        What ``sketch_of`` makes of the receiver's expectation; the sender's. Without it all tiles are as by EDEN; with
        it those whose noise is less so.
    """

    code: int
    sketch: Floats | None = field(default=None, compare=False, repr=False)
    dtype: np.dtype[np.floating] = np.dtype("<f4")
    exact: ClassVar[bool] = False

    @property
    def bits(self) -> int:
        """b, of a value."""
        return self.code - FIRST_CODE

    @property
    def name(self) -> str:  # type: ignore[override]
        """Such as "modulo-3"."""
        return f"modulo-{self.bits}"

    @property
    def few(self) -> Dithered:
        """How fewer values than can be rotated are rounded."""
        return Dithered(self.code, self.name, self.bits)

    def size(self, count: int) -> int:
        """Bytes that ``count`` values take: those of EDEN, and a checksum a tile."""
        if count < LEAST:
            return self.few.size(count)
        return Eden(16 * self.bits).size(count) + CHECKSUM_BYTES * self._tiles(count).finer.size

    def _tiles(self, count: int) -> Tiles:
        return Tiles.of(count, 16 * self.bits)

    def omega(self, count: int) -> float:
        """That of EDEN, which is the most that it can be."""
        return eden_error(self.bits) if count >= LEAST else 0.0

    def pack(self, values: Floats, key: Key) -> bytes:
        """The values, as float32, as bytes; refuses magnitudes above 2⁹⁶."""
        if values.size and not -LARGEST_VALUE <= values.min() <= values.max() <= LARGEST_VALUE:  # NaN compares as false
            raise InvalidInput(
                f"{self.name} takes values up to {LARGEST_VALUE:.3g}; rescale the vector, or use float32 or float64"
            )
        if values.size < LEAST:
            return self.few.pack(values, key)
        tiles, turns, told = self._tiles(values.size), stream_of(key, ROTATION), 0
        steps, sums = np.empty(tiles.finer.size, "<f4"), np.zeros(tiles.finer.size, "<u4")
        codes = np.empty(tiles.begins[-1], np.uint8)
        rotate_and_round(turns, values.astype(np.float32, copy=False), tiles, steps, codes)
        steps[steps > 0.0] *= -1.0
        for tile in range(steps.size) if self.sketch is not None else ():
            x = values[tiles.starts[tile] : tiles.starts[tile + 1]]
            near, told = self.sketch[told : told + SKETCH], told + SKETCH  # type: ignore[index]
            z = _turned(x, turns, tile)
            if (step := _step(z, near, self.bits)) ** 2 / 12.0 < self.omega(x.size) * float(np.mean(z * z)):
                drawn = uniforms(stream_of(key, DITHER), int(tiles.starts[tile]), z.size) - 0.5
                points = np.floor(z / step + drawn).astype(np.int64)
                steps[tile], sums[tile] = step, _checksum(points)
                wrapped = (points % (1 << self.bits)).astype(np.uint8)
                codes[tiles.begins[tile] : tiles.begins[tile + 1]] = packed(wrapped, self.bits)
        return steps.tobytes() + sums.tobytes() + codes.tobytes()

    def unpack(self, reader: Reader, count: int, key: Key) -> tuple[Floats, Levels]:
        """The next ``count`` values, and the variance of their noise; refused where they depend on an expectation."""
        if count < LEAST:
            return self.few.unpack(reader, count, key)
        codes = self.codes(reader, count, key)
        if np.any(codes.steps > 0.0):
            raise MalformedPayload("values are relative to an expectation, and nodes of this run are told of none")
        found = codes.near(np.zeros(count))
        return found.values, found.noise

    def codes(self, reader: Reader, count: int, key: Key) -> Codes:
        """The next ``count`` values, at least LEAST, whatever they depend on."""
        body, tiles = Reader(reader.take(self.size(count))), self._tiles(count)
        steps = np.frombuffer(body.take(4 * tiles.finer.size), "<f4").astype(np.float32)  # and so aligned
        sums = np.frombuffer(body.take(4 * tiles.finer.size), "<u4").astype(np.uint32)
        codes = np.frombuffer(body.take(body.left), np.uint8)
        if not np.all(np.abs(steps) <= LARGEST_STEP):
            raise NonFiniteValues(f"steps must be finite and at most {LARGEST_STEP:.3g}; check the node's vector")
        for tile in np.flatnonzero(steps == 0.0).tolist():
            if np.signbit(steps[tile]) or np.any(codes[tiles.begins[tile] : tiles.begins[tile + 1]]):
                raise MalformedPayload("a tile of step 0 has a sign, or codes other than 0")
        if np.any(sums[steps <= 0.0]):
            raise MalformedPayload("a tile that depends on no expectation has a checksum")
        check_padding(codes, int(tiles.starts[-1] - tiles.starts[-2]) * tiles.width)
        return Codes(codes, steps, sums, tiles, key)


@final
@dataclass(frozen=True, eq=False)
class Codes(Wrapped):
    """Codes that wait for the receiver's expectation.

    Parameters
    ----------
    codes : array of uint8
        As they travelled.
    steps : (tiles,) array of float32
        h; or the negative of EDEN's scale.
    sums : (tiles,) array of uint32
        Checksum of the points of each tile.
    tiles : Tiles
        How values are cut, and where the codes of each tile stand.
    key : Key
        That of rotation and dither.
    """

    codes: npt.NDArray[np.uint8]
    steps: npt.NDArray[np.float32]
    sums: npt.NDArray[np.uint32]
    tiles: Tiles
    key: Key

    @property
    def arrays(self) -> tuple[npt.NDArray[np.uint8], ...]:
        """What it holds."""
        return (self.codes,)

    def near(self, expected: Doubles) -> Resolved:
        """The values, where these are expected.

        A tile whose points contradict its checksum counts as what is expected. Its noise is what is left out, as far as
        the sender's sketch shows it.
        """
        tiles, turns = self.tiles, stream_of(self.key, ROTATION)
        sizes, scales = np.diff(tiles.starts), np.maximum(-self.steps, np.float32(0.0))
        values, energies = np.empty(int(tiles.starts[-1]), np.float32), np.empty(sizes.size)
        rotate_back(turns, scales, self.codes, tiles, values, energies)
        noise = distortion(np.full(sizes.size, float(tiles.width))) * scales.astype(np.float64) ** 2 * energies / sizes
        kept, failed = np.empty_like(values), 0
        for tile, step in enumerate(self.steps.astype(np.float64).tolist()):
            here = slice(int(tiles.starts[tile]), int(tiles.starts[tile + 1]))
            b = expected[here]
            if step <= 0.0:
                innovation = values[here] - b
            elif (found := self._innovation(tile, here, b, turns)) is not None:
                innovation, noise[tile] = found, step**2 / 12.0
                values[here] = np.clip(b + found, -LARGEST_READ, LARGEST_READ)
            else:
                innovation, noise[tile] = np.zeros(b.size), FAILED * (step / steps_of_spread(tiles.width)) ** 2
                values[here], failed = b, failed + 1
            energy = float(np.mean(innovation * innovation))
            # Of the innovation that part is kept which is not noise: the linear estimate of least error.
            part = max(0.0, 1.0 - noise[tile] / energy) if energy else 0.0
            kept[here] = np.clip(b + part * innovation, -LARGEST_READ, LARGEST_READ)
        each = TILE // 2
        return Resolved(values, kept, Levels(np.repeat(noise, -(-sizes // each)), each, values.size), failed)

    @np.errstate(over="ignore", invalid="ignore")  # where what is expected is absurd, nothing can be told
    def _innovation(self, tile: int, here: slice, b: Doubles, turns: Sequence[int]) -> Doubles | None:
        """How a tile differs from what is expected; None where it cannot be told."""
        step, levels = float(self.steps[tile]), 1 << self.tiles.width
        center, drawn = _turned(b, turns, tile), uniforms(stream_of(self.key, DITHER), here.start, b.size) - 0.5
        stored = self.codes[self.tiles.begins[tile] : self.tiles.begins[tile + 1]]
        codes = unpacked(stored, self.tiles.width)[: b.size].astype(np.float64)
        points = codes + levels * np.rint((center / step + drawn - 0.5 - codes) / levels)
        if not np.abs(points).max() < 2.0**62 or _checksum(points.astype(np.int64)) != self.sums[tile]:
            return None
        return _turned_back(step * (points + 0.5 - drawn) - center, turns, tile)


def sketch_of(expected: Doubles, key: Key) -> Floats:
    """What a sender is told of an expectation: of each tile of it, rotated, the first numbers.

    Rotated numbers are nearly normal with one variance, so that a few of z − sketch tell the spread of all.
    """
    turns, starts = stream_of(key, ROTATION), Tiles.of(expected.size, 16).starts
    parts = (_turned(expected[a:b], turns, tile)[:SKETCH] for tile, (a, b) in enumerate(pairwise(starts.tolist())))
    return np.concatenate(list(parts)).astype("<f4")


def sketch_bytes(count: int) -> int:
    """How long the sketch of so many values is, at least LEAST."""
    return 4 * SKETCH * Tiles.of(count, 16).finer.size


def steps_of_spread(bits: int) -> float:
    """h over the spread that a sketch shows: codes reach 4 + b/2 times that to either side, wherever the dither is.

    With r normal, 64 numbers of the sketch and 4,096 in a tile, one of them is farther off in one tile of 600 with 2
    bits, of 2,000 with 3 and of 8,000 with 4: the tail of Student's t with 64 degrees of freedom.

    >>> round(steps_of_spread(3) ** 2 / 12, 3)  # noise over the mean square of the difference
    0.206
    """
    return 2.0 * (4.0 + bits / 2.0) / ((1 << bits) - 1)


def _step(z: Doubles, near: Floats, bits: int) -> float:
    """The step that suits what is seen of z − expectation, as a float32 that is not below it."""
    off = z[: near.size] - near
    step = max(steps_of_spread(bits) * float(np.sqrt(np.mean(off * off))), float(np.abs(z).max()) * FINEST)
    single = np.float32(step)
    return float(single if single >= step else np.nextafter(single, np.float32(np.inf)))


def _checksum(points: Ints) -> int:
    return crc32(points.astype("<i8", copy=False).tobytes())


def _turned(values: Floats, turns: Sequence[int], tile: int) -> Doubles:
    z: Doubles = rotated(values.astype(np.float32), turns, tile).astype(np.float64) * shrinkage(values.size)
    return z


def _turned_back(z: Doubles, turns: Sequence[int], tile: int) -> Doubles:
    values: Doubles = rotated_back(z.astype(np.float32), turns, tile).astype(np.float64) * shrinkage(z.size)
    return values
