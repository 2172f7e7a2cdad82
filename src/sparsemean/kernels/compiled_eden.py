"""The numba twins of ``eden``; only ``kernels.twin`` imports this file, at the first call."""

# As in ``compiled``: functions that call one another are in one file because of numba's cache on disk (a word of the
# stream is for ever what it is, so it may come from there), threads are Python's, and bits do not depend on their
# number, since a tile belongs to one thread. A tile of 4,096 single-precision numbers and its copy stay in the
# first-level cache through all stages of its rotation. Halves are passed to the loops as arrays of their own, which is
# what lets LLVM make vectors of them.

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparsemean._types import Array
from sparsemean.kernels.compiled import _drawn_word
from sparsemean.kernels.eden import LAYER, NUDGE, ROOT_TWO, TILE, Tiles
from sparsemean.kernels.jit import entry as _entry
from sparsemean.kernels.jit import inner as _inner
from sparsemean.kernels.lloyd_max import centroids, thresholds
from sparsemean.kernels.parallel_map import cores, parallel_map

_PART = 16  # tiles per call of a loop


def rotate_and_round(stream: Sequence[int], values: Array, tiles: Tiles, scales: Array, codes: Array) -> None:
    """See ``rotate_and_round_numpy``."""
    how = _words(stream), tuple(tiles), _levels(tiles.width)
    values = np.require(values, requirements=("C", "A"))
    _in_parts(scales.size, lambda first, last: _rotate_and_round(*how, values, scales, codes, first, last))


def rotate_back(
    stream: Sequence[int], scales: Array, codes: Array, tiles: Tiles, values: Array, energies: Array
) -> None:
    """See ``rotate_back_numpy``."""
    how = _words(stream), tuple(tiles), _levels(tiles.width)
    _in_parts(scales.size, lambda first, last: _rotate_back(*how, scales, codes, values, energies, first, last))


def _in_parts(count: int, part: Callable[[int, int], None]) -> None:
    """Call ``part`` for every few tiles."""
    parallel_map(lambda first: part(first, min(first + _PART, count)), range(0, count, _PART), cores())


def _words(stream: Sequence[int]) -> tuple[np.uint64, np.uint64]:
    return np.uint64(stream[0]), np.uint64(stream[1])


def _levels(width: int) -> tuple[Array, Array, Array, Array]:
    """Thresholds and centroids of the codes, then of those with a bit more; none have more than 8."""
    finer = min(width + 1, 8)
    return thresholds(width), centroids(width), thresholds(finer), centroids(finer)


@_entry
def _rotate_and_round(
    stream: Any, tiles: Any, levels: Any, values: Array, scales: Array, codes: Array, first: int, last: int
) -> None:
    starts, finer, begins, width = tiles
    one, other, sums = np.empty(TILE, np.float32), np.empty(TILE, np.float32), np.empty(TILE // 2)
    chosen, drawn = np.empty(TILE, np.uint8), np.empty(LAYER, np.uint64)
    for tile in range(first, last):
        x = values[starts[tile] : starts[tile + 1]]
        here, size, more = codes[begins[tile] : begins[tile + 1]], x.size, finer[tile]
        scales[tile], here[:] = 0.0, 0
        energy = _inner_product(x, x, sums)
        if energy == 0.0:
            continue
        passes, stages = _stages(size)
        factor = math.sqrt(size / energy) * math.sqrt(2.0 ** -(passes * stages))
        z, spare = one[:size], other[:size]
        for i in range(size):
            z[i] = np.float64(x[i]) * factor
        for each in range(passes):
            _flip(z, stream, 3 * tile + each, drawn)
            z, spare = _stages_of(z, spare, stages)
        spare[:] = NUDGE
        _flip(spare, stream, 3 * tile + passes, drawn)
        for i in range(size):
            spare[i] += z[i]
        _count(spare[:more], levels[2], chosen[:more])
        _count(spare[more:], levels[0], chosen[more:size])
        for i in range(more):
            spare[i] = levels[3][chosen[i]]
        for i in range(more, size):
            spare[i] = levels[1][chosen[i]]
        scales[tile] = math.sqrt(energy * size) / _inner_product(z, spare, sums)
        if scales[tile] != 0.0:
            at = more // 8 * (width + 1)
            _pack(chosen[:more], width + 1, here[:at])
            _pack(chosen[more:size], width, here[at:])


@_entry
def _rotate_back(
    stream: Any,
    tiles: Any,
    levels: Any,
    scales: Array,
    codes: Array,
    values: Array,
    energies: Array,
    first: int,
    last: int,
) -> None:
    starts, finer, begins, width = tiles
    one, other, sums = np.empty(TILE, np.float32), np.empty(TILE, np.float32), np.empty(TILE // 2)
    drawn = np.empty(LAYER, np.uint64)
    for tile in range(first, last):
        out = values[starts[tile] : starts[tile + 1]]
        here, size, more = codes[begins[tile] : begins[tile + 1]], out.size, finer[tile]
        z, spare, at = one[:size], other[:size], more // 8 * (width + 1)
        _unpack(here[:at], width + 1, levels[3], z[:more])
        _unpack(here[at:], width, levels[1], z[more:])
        energies[tile] = _inner_product(z, z, sums)
        if scales[tile] == 0.0:
            out[:] = 0.0
            continue
        passes, stages = _stages(size)
        for back in range(passes):
            z, spare = _stages_back(z, spare, stages)
            _flip(z, stream, 3 * tile + passes - 1 - back, drawn)
        factor = np.float64(scales[tile]) * math.sqrt(2.0 ** -(passes * stages))
        for i in range(size):
            out[i] = np.float64(z[i]) * factor


@_inner
def _stages(size: int) -> tuple[int, int]:
    """See ``stages_of``."""
    stages = 0
    while 1 << stages < size:
        stages += 1
    return 2 if 1 << stages == size else 3, stages


@_inner
def _flip(values: Array, stream: Any, layer: int, drawn: Array) -> None:
    """The signs of a layer."""
    for word in range((values.size + 63) // 64):
        drawn[word] = _drawn_word(stream[0], stream[1], np.uint64(LAYER * layer + word + 1))  # numbered from 1
    bits, bytes = values.view(np.uint32), drawn.view(np.uint8)
    for byte in range(values.size // 8):
        eight = np.uint32(bytes[byte])
        for i in range(8):
            bits[8 * byte + i] ^= np.uint32(eight >> np.uint32(i) << np.uint32(31))
    for i in range(values.size // 8 * 8, values.size):
        bits[i] ^= np.uint32(np.uint32(bytes[i // 8]) >> np.uint32(i % 8) << np.uint32(31))


@_inner
def _stages_of(values: Array, spare: Array, stages: int) -> tuple[Array, Array]:
    """Apply the butterfly stages of a pass, two at a time where the size allows; returns the result and the other."""
    size, half, quarter = values.size, values.size // 2, values.size // 4
    while stages:
        if stages > 1 and size % 4 == 0:
            first, second = values[:half], values[half:]
            _two_stages(first[:quarter], first[quarter:], second[:quarter], second[quarter:], spare, quarter)
            stages -= 2
        else:
            _one_stage(values[:half], values[size - half :], spare, half)
            if size % 2:
                spare[size - 1] = ROOT_TWO * values[half]
            stages -= 1
        values, spare = spare, values
    return values, spare


@_inner
def _one_stage(first: Array, second: Array, mixed: Array, half: int) -> None:
    for i in range(half):
        one, other = first[i], second[i]
        mixed[2 * i], mixed[2 * i + 1] = one + other, one - other


@_inner
def _two_stages(first: Array, second: Array, third: Array, fourth: Array, mixed: Array, quarter: int) -> None:
    """What two stages make of four quarters, each sum and difference rounded as there."""
    for i in range(quarter):
        a, b, c, d = first[i] + third[i], second[i] + fourth[i], first[i] - third[i], second[i] - fourth[i]
        mixed[4 * i], mixed[4 * i + 1], mixed[4 * i + 2], mixed[4 * i + 3] = a + b, a - b, c + d, c - d


@_inner
def _stages_back(values: Array, spare: Array, stages: int) -> tuple[Array, Array]:
    """Undo the butterfly stages of a pass, likewise."""
    size, half, quarter = values.size, values.size // 2, values.size // 4
    while stages:
        if stages > 1 and size % 4 == 0:
            first, second = spare[:half], spare[half:]
            _two_back(values, first[:quarter], first[quarter:], second[:quarter], second[quarter:], quarter)
            stages -= 2
        else:
            _one_back(values, spare[:half], spare[size - half :], half)
            if size % 2:
                spare[half] = ROOT_TWO * values[size - 1]
            stages -= 1
        values, spare = spare, values
    return values, spare


@_inner
def _one_back(mixed: Array, first: Array, second: Array, half: int) -> None:
    for i in range(half):
        one, other = mixed[2 * i], mixed[2 * i + 1]
        first[i], second[i] = one + other, one - other


@_inner
def _two_back(mixed: Array, first: Array, second: Array, third: Array, fourth: Array, quarter: int) -> None:
    for i in range(quarter):
        a, b = mixed[4 * i] + mixed[4 * i + 1], mixed[4 * i] - mixed[4 * i + 1]
        c, d = mixed[4 * i + 2] + mixed[4 * i + 3], mixed[4 * i + 2] - mixed[4 * i + 3]
        first[i], second[i], third[i], fourth[i] = a + c, b + d, a - c, b - d


@_inner
def _inner_product(one: Array, other: Array, sums: Array) -> float:
    """Σ one·other in the order of ``halved``."""
    half = 1
    while 2 * half < one.size:
        half *= 2
    both = one.size - half  # products that have another half the filled size further on
    _add_products(one[:both], other[:both], one[half:], other[half:], sums)
    for i in range(both, half):
        sums[i] = np.float64(one[i]) * np.float64(other[i])
    while half > 1:
        half //= 2
        _add(sums[:half], sums[half : 2 * half])
    return float(sums[0])


@_inner
def _add_products(one: Array, other: Array, one_more: Array, other_more: Array, sums: Array) -> None:
    for i in range(one.size):
        product = np.float64(one[i]) * np.float64(other[i])
        sums[i] = product + np.float64(one_more[i]) * np.float64(other_more[i])


@_inner
def _add(sums: Array, more: Array) -> None:
    for i in range(sums.size):
        sums[i] += more[i]


@_inner
def _count(z: Array, thresholds: Array, codes: Array) -> None:
    """How many thresholds lie below each number; one after the other for all numbers, so that LLVM makes vectors."""
    codes[:] = 0
    for each in range(thresholds.size):
        _count_one(z, thresholds[each], codes)


@_inner
def _count_one(z: Array, threshold: float, codes: Array) -> None:
    for i in range(z.size):
        codes[i] += z[i] > threshold


@_inner
def _pack(codes: Array, width: int, out: Array) -> None:
    """Eight codes to ``width`` bytes."""
    bits, whole = np.uint64(width), codes.size // 8
    for group in range(whole):
        word = np.uint64(0)
        for i in range(8):
            word |= np.uint64(codes[8 * group + i]) << np.uint64(i) * bits
        for byte in range(width):
            out[width * group + byte] = word >> np.uint64(8 * byte) & np.uint64(0xFF)
    word = np.uint64(0)
    for i in range(8 * whole, codes.size):
        word |= np.uint64(codes[i]) << np.uint64(i - 8 * whole) * bits
    for byte in range(width * whole, out.size):
        out[byte] = word >> np.uint64(8 * (byte - width * whole)) & np.uint64(0xFF)


@_inner
def _unpack(stored: Array, width: int, centroids: Array, levels: Array) -> None:
    """The levels of eight codes from ``width`` bytes."""
    bits, least, whole = np.uint64(width), np.uint64((1 << width) - 1), levels.size // 8
    for group in range(whole):
        word = np.uint64(0)
        for byte in range(width):
            word |= np.uint64(stored[width * group + byte]) << np.uint64(8 * byte)
        for i in range(8):
            levels[8 * group + i] = centroids[word >> np.uint64(i) * bits & least]
    word = np.uint64(0)
    for byte in range(width * whole, stored.size):
        word |= np.uint64(stored[byte]) << np.uint64(8 * (byte - width * whole))
    for i in range(8 * whole, levels.size):
        levels[i] = centroids[word >> np.uint64(i - 8 * whole) * bits & least]
