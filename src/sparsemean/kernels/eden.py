"""EDEN: values are rotated at random, tile by tile, and rounded to the levels that suit a normal distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from sparsemean._types import Doubles, Ints
from sparsemean.kernels.bit_stream import Bytes, Singles, packed, packed_bytes, unpacked
from sparsemean.kernels.lloyd_max import centroids, thresholds
from sparsemean.kernels.stream import stream_index, stream_word
from sparsemean.kernels.twin import ROTATION, twin

TILE = 4096
LEAST = 512  # values of a tile: of fewer, rotated numbers are not normal enough for the estimate to be unbiased
LAYER = TILE // 64  # words that hold a sign for each value of a tile
NUDGE = np.float32(2.0**-14)  # far above the rounding errors of a rotation, far below the distance of two levels
ROOT_TWO = np.float32(math.sqrt(2.0))
Size = TypeVar("Size", int, Ints)


class Tiles(NamedTuple):
    """How values are cut into tiles, and where the codes of each stand.

    Attributes
    ----------
    starts : (tiles + 1,) array
        Where the values of each tile begin, always at a multiple of 2,048; and how many there are.
    finer : (tiles,) array
        How many values of the tile, the first of them, have a bit more than ``width``; a multiple of 8.
    begins : (tiles + 1,) array
        Where the bytes of its codes begin, and how many there are.
    width : int
        Bits of a code.
    """

    starts: Ints
    finer: Ints
    begins: Ints
    width: int

    @staticmethod
    def of(count: int, rate: int) -> Tiles:
        """For ``count`` values, at least LEAST, at ``rate`` sixteenths of a bit each.

        >>> tiles = Tiles.of(4096 + 4097, 24)
        >>> tiles.starts, tiles.finer, tiles.begins
        (array([   0, 4096, 6144, 8193]), array([2048, 1024, 1024]), array([   0,  768, 1152, 1537]))
        """
        full, others = tile_sizes(count)
        sizes = np.array([TILE] * full + others, np.int64)
        return Tiles(_cumulated(sizes), finer_values(sizes, rate), _cumulated(codes_size(sizes, rate)), rate // 16)


def _cumulated(sizes: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])


def tile_sizes(count: int) -> tuple[int, list[int]]:
    """How many tiles are of full size, and the sizes of the others, which follow; no tile is smaller than LEAST.

    >>> tile_sizes(5000), tile_sizes(4608), tile_sizes(4607), tile_sizes(8192)
    ((1, [904]), (1, [512]), (0, [2048, 2559]), (2, []))
    """
    full, rest = divmod(count, TILE)
    if full and 0 < rest < LEAST:
        return full - 1, [TILE // 2, TILE // 2 + rest]
    return full, [rest] if rest else []


def finer_values(size: Size, rate: int) -> Size:
    """How many values of a tile of this size have a bit more; a multiple of 8, so that the others begin with a byte."""
    return size * (rate % 16) // 128 * 8


def codes_size(size: Size, rate: int) -> Size:
    """Bytes of the codes of a tile of this size: of the values with a bit more, then of the others."""
    width, finer = rate // 16, finer_values(size, rate)
    return finer // 8 * (width + 1) + packed_bytes(size - finer, width)


def stages_of(size: int) -> tuple[int, int]:
    """How many passes the rotation of a tile has, and how many butterfly stages each.

    Where the size is no power of two, the stages spread a value less evenly, and it takes a third pass.

    >>> stages_of(4096), stages_of(784)
    ((2, 12), (3, 10))
    """
    stages = (size - 1).bit_length()
    return 3 if size & (size - 1) else 2, stages


def shrinkage(size: int) -> float:
    """What undoes the growth of norms in the stages of a rotation, each of which multiplies them by √2."""
    passes, stages = stages_of(size)
    return math.sqrt(2.0 ** -(passes * stages))


def signs(stream: Sequence[int], layer: int, count: int) -> Singles:
    """±1 for each value of a tile; pass p of tile t goes by layer 3t + p, and what nudges its values by the next."""
    words = stream_word(stream, stream_index(LAYER * layer, -(-count // 64)))
    negative = np.unpackbits(words.astype("<u8", copy=False).view(np.uint8), count=count, bitorder="little")
    return np.float32(1.0) - np.float32(2.0) * negative.astype(np.float32)


def butterflies(values: Singles) -> Singles:
    """One stage: the sums and differences of the halves, interleaved; the middle one of an odd number goes last.

    >>> butterflies(np.array([1, 2, 3, 5], np.float32))
    array([ 4., -2.,  7., -3.], dtype=float32)
    """
    half, odd = divmod(values.size, 2)
    first, second, mixed = values[:half], values[half + odd :], np.empty_like(values)
    mixed[0 : 2 * half : 2], mixed[1 : 2 * half : 2] = first + second, first - second
    if odd:
        mixed[-1] = ROOT_TWO * values[half]
    return mixed


def butterflies_back(mixed: Singles) -> Singles:
    """The transpose of a stage, which undoes it up to a factor of 2."""
    half, odd = divmod(mixed.size, 2)
    even, uneven, values = mixed[0 : 2 * half : 2], mixed[1 : 2 * half : 2], np.empty_like(mixed)
    values[:half], values[half + odd :] = even + uneven, even - uneven
    if odd:
        values[half] = ROOT_TWO * mixed[-1]
    return values


def rotated(values: Singles, stream: Sequence[int], tile: int) -> Singles:
    """Random signs, then butterfly stages, in each pass; norms grow by 1/``shrinkage``."""
    passes, stages = stages_of(values.size)
    for each in range(passes):
        values = values * signs(stream, 3 * tile + each, values.size)
        for _ in range(stages):
            values = butterflies(values)
    return values


def rotated_back(values: Singles, stream: Sequence[int], tile: int) -> Singles:
    """The transpose of ``rotated``; norms grow likewise."""
    passes, stages = stages_of(values.size)
    for each in reversed(range(passes)):
        for _ in range(stages):
            values = butterflies_back(values)
        values = values * signs(stream, 3 * tile + each, values.size)
    return values


def nudged(z: Singles, stream: Sequence[int], tile: int) -> Singles:
    """Rotated values up or down by NUDGE, at random.

    Where few values of a vector differ from 0, many rotated ones would be 0 but for rounding errors, and these are not
    random: if they decided how such a number is rounded, the estimate would be biased.
    """
    return z + NUDGE * signs(stream, 3 * tile + stages_of(z.size)[0], z.size)


def halved(numbers: Doubles) -> float:
    """Their sum, in an order that all twins share: filled up with 0, the second half is added to the first, and so on.

    >>> halved(np.array([1.0, 2.0, 3.0]))
    6.0
    """
    filled = np.zeros(1 << (numbers.size - 1).bit_length())
    filled[: numbers.size] = numbers
    while filled.size > 1:
        filled = filled[: filled.size // 2] + filled[filled.size // 2 :]
    return float(filled[0])


def rotate_and_round_numpy(stream: Sequence[int], values: Singles, tiles: Tiles, scales: Singles, codes: Bytes) -> None:
    """Write the scale of each tile, and its codes.

    With z the rotated values, of mean square 1, and q their levels, the scale is √(Σx²·size)/Σzq: what comes back has
    the inner product Σx² with x, which makes it unbiased.

    Parameters
    ----------
    stream
        The two words of the stream that the signs are drawn from.
    values
        Finite ones of at most 2¹¹².
    tiles
        How they are cut.
    scales
        For one number per tile: 0 where all its values are, or too small for a scale of single precision.
    codes
        For ``tiles.begins[-1]`` bytes.
    """
    for tile in range(scales.size):
        x = values[tiles.starts[tile] : tiles.starts[tile + 1]]
        here, finer = codes[tiles.begins[tile] : tiles.begins[tile + 1]], int(tiles.finer[tile])
        wide = x.astype(np.float64)
        energy = halved(wide * wide)
        scales[tile], here[:] = 0.0, 0
        if energy == 0.0:
            continue
        factor = math.sqrt(x.size / energy) * shrinkage(x.size)
        z = rotated((wide * factor).astype(np.float32), stream, tile)
        near, chosen, levels, at = nudged(z, stream, tile), [], np.empty(z.size, np.float32), 0
        for part, width in ((slice(0, finer), tiles.width + 1), (slice(finer, z.size), tiles.width)):
            if z[part].size:
                code = np.searchsorted(thresholds(width), near[part]).astype(np.uint8)
                levels[part] = centroids(width)[code]
                chosen.append(packed(code, width))
        scales[tile] = math.sqrt(energy * x.size) / halved(z.astype(np.float64) * levels)
        if scales[tile]:
            for some in chosen:
                here[at : at + some.size] = some
                at += some.size


def rotate_back_numpy(
    stream: Sequence[int], scales: Singles, codes: Bytes, tiles: Tiles, values: Singles, energies: Doubles
) -> None:
    """Write the values that scales and codes stand for, and Σq² of each tile, q being the levels.

    Parameters
    ----------
    stream, scales, codes, tiles
        As in ``rotate_and_round_numpy``.
    values
        For one value each; 0 in a tile of scale 0.
    energies
        For one number per tile.
    """
    for tile in range(scales.size):
        out = values[tiles.starts[tile] : tiles.starts[tile + 1]]
        here, finer = codes[tiles.begins[tile] : tiles.begins[tile + 1]], int(tiles.finer[tile])
        at, levels = finer // 8 * (tiles.width + 1), np.empty(out.size, np.float32)
        if finer:
            levels[:finer] = centroids(tiles.width + 1)[unpacked(here[:at], tiles.width + 1)]
        levels[finer:] = centroids(tiles.width)[unpacked(here[at:], tiles.width)[: out.size - finer]]
        wide = levels.astype(np.float64)
        energies[tile] = np.sum(wide * wide)  # exact in any order: multiples of 2⁻²⁴
        if scales[tile] == 0.0:
            out[:] = 0.0
            continue
        factor = float(scales[tile]) * shrinkage(out.size)
        out[:] = rotated_back(levels, stream, tile).astype(np.float64) * factor


rotate_and_round = twin(
    rotate_and_round_numpy,
    "rotate_and_round",
    ROTATION,
    values=lambda stream, values, tiles, scales, codes: values.size,
)
rotate_back = twin(
    rotate_back_numpy,
    "rotate_back",
    ROTATION,
    values=lambda stream, scales, codes, tiles, values, energies: values.size,
)
