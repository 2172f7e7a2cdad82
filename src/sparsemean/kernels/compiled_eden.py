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
    values = np.ascontiguousarray(values)
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
    one, other, sums = np.empty(TILE, np.float32), np.empty(TILE, np.float32), np.empty(TILE)
    chosen, drawn = np.empty(TILE, np.uint8), np.empty(LAYER, np.uint64)
    for tile in range(first, last):
        x = values[starts[tile] : starts[tile + 1]]
        here, size, more = codes[begins[tile] : begins[tile + 1]], x.size, finer[tile]
        half = _half_filled(size)
        scales[tile], here[:] = 0.0, 0
        energy = _inner_product(x, x, sums, half)
        if energy == 0.0:
            continue
        passes, stages = _stages(size)
        factor = math.sqrt(size / energy) * math.sqrt(2.0 ** -(passes * stages))
        z, spare = one[:size], other[:size]
        for i in range(size):
            z[i] = np.float64(x[i]) * factor
        for each in range(passes):
            _flip(z, stream, 3 * tile + each, drawn)
            for _ in range(stages):
                _butterflies(z, spare)
                z, spare = spare, z
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
        scales[tile] = math.sqrt(energy * size) / _inner_product(z, spare, sums, half)
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
    one, other, sums = np.empty(TILE, np.float32), np.empty(TILE, np.float32), np.empty(TILE)
    drawn = np.empty(LAYER, np.uint64)
    for tile in range(first, last):
        out = values[starts[tile] : starts[tile + 1]]
        here, size, more = codes[begins[tile] : begins[tile + 1]], out.size, finer[tile]
        z, spare, at = one[:size], other[:size], more // 8 * (width + 1)
        _unpack(here[:at], width + 1, levels[3], z[:more])
        _unpack(here[at:], width, levels[1], z[more:])
        energies[tile] = _inner_product(z, z, sums, _half_filled(size))
        if scales[tile] == 0.0:
            out[:] = 0.0
            continue
        passes, stages = _stages(size)
        for back in range(passes):
            for _ in range(stages):
                _butterflies_back(z, spare)
                z, spare = spare, z
            _flip(z, stream, 3 * tile + passes - 1 - back, drawn)
        factor = np.float64(scales[tile]) * math.sqrt(2.0 ** -(passes * stages))
        for i in range(size):
            out[i] = np.float64(z[i]) * factor


@_inner
def _stages(size: int) -> tuple[int, int]:
    stages = 0
    while 1 << stages < size:
        stages += 1
    return 2 if 1 << stages == size else 3, stages


@_inner
def _half_filled(size: int) -> int:
    """Half of the least power of two that is not below ``size``."""
    half = 1
    while 2 * half < size:
        half *= 2
    return half


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
def _butterflies(values: Array, mixed: Array) -> None:
    half = values.size // 2
    _sums_and_differences(values[:half], values[values.size - half :], mixed, half)
    if values.size % 2:
        mixed[values.size - 1] = ROOT_TWO * values[half]


@_inner
def _sums_and_differences(first: Array, second: Array, mixed: Array, half: int) -> None:
    for i in range(half):
        one, other = first[i], second[i]
        mixed[2 * i], mixed[2 * i + 1] = one + other, one - other


@_inner
def _butterflies_back(mixed: Array, values: Array) -> None:
    half = mixed.size // 2
    _halves(mixed, values[:half], values[mixed.size - half :], half)
    if mixed.size % 2:
        values[half] = ROOT_TWO * mixed[mixed.size - 1]


@_inner
def _halves(mixed: Array, first: Array, second: Array, half: int) -> None:
    for i in range(half):
        one, other = mixed[2 * i], mixed[2 * i + 1]
        first[i], second[i] = one + other, one - other


@_inner
def _inner_product(one: Array, other: Array, sums: Array, half: int) -> float:
    """Σ one·other in the order of ``halved``; 2·half is the filled size."""
    for i in range(one.size):
        sums[i] = np.float64(one[i]) * np.float64(other[i])
    sums[one.size : 2 * half] = 0.0
    while half:
        _add(sums[:half], sums[half : 2 * half])
        half //= 2
    return float(sums[0])


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
