"""The numba twins that draw nothing: passes over arrays as they lie. Imported as ``compiled`` is."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from sparsemean._types import Array
from sparsemean.kernels.jit import entry as _entry
from sparsemean.kernels.jit import inner as _inner
from sparsemean.kernels.parallel_map import cores, parallel_map

_PIECE = 1 << 18  # coordinates in one go, however many threads: sums over pieces must not depend on them
_COMPARED = 1024  # entries at a time that are looked through for the few large ones among them
_FEW = 0.05  # of the entries
_TRIED = 1 << 14  # entries from which is guessed where the k largest begin

# --- what the library calls -----------------------------------------------------------------------


def scatter(sums: Array, counts: Array, coordinates: Array, y: Array) -> None:
    """See ``scatter_numpy``."""
    _scatter(sums, counts, coordinates, y)


def power_sums(sums: Array, squares: Array, cubes: Array, begin: Array, size: int, starts: Array) -> Array:
    """See ``power_sums_numpy``. The pieces and the order of their sums do not depend on the threads."""
    ends = np.append(starts[1:], sums.size)
    pieces = [
        (block, low, min(low + _PIECE, end))
        for block, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
        for low in range(start, end, _PIECE)
    ]
    found = np.zeros((4, starts.size))
    parts = parallel_map(
        lambda piece: _power_sums(sums, squares, cubes, begin, size, piece[1], piece[2]), pieces, _threads(sums.size)
    )
    for (block, *_), part in zip(pieces, parts, strict=True):
        found[:, block] += part
    return found


def reweigh(factors: Array, counts: Array, sums: Array, out: Array, anew: bool = False) -> None:
    """See ``reweigh_numpy``."""
    parallel_map(
        lambda piece: _reweigh(factors, counts, sums, out, anew, *piece), _pieces(sums.size), _threads(sums.size)
    )


def add_scaled(sums: Array, factor: float, out: Array, anew: bool = False) -> None:
    """See ``add_scaled_numpy``."""
    parallel_map(lambda piece: _add_scaled(sums, factor, out, anew, *piece), _pieces(sums.size), _threads(sums.size))


def largest(vector: Array, k: int) -> Array:
    """See ``largest_numpy``. Only entries above a guess are looked at twice: exact, however wrong the guess is."""
    vector = np.ascontiguousarray(vector)
    kind = np.uint32 if vector.itemsize == 4 else np.uint64
    bits, beyond_sign = vector.view(kind), kind(np.iinfo(kind).max >> 1)  # magnitudes in the order of the numbers

    def above(piece: tuple[int, int], least: int) -> tuple[Array, Array]:
        low, high = piece
        return _above(bits[low:high], beyond_sign, kind(least), low)

    for least in (_guessed(vector, k), 0):
        pieces = parallel_map(partial(above, least=least), _pieces(vector.size), _threads(vector.size))
        at, magnitudes = (np.concatenate(each) for each in zip(*pieces, strict=True))
        if at.size >= k:
            break
    exact = np.partition(magnitudes, at.size - k)[at.size - k] if k else beyond_sign
    return _chosen(at, magnitudes, exact, np.empty(k + 1, np.int64))[:k]


def _guessed(vector: Array, k: int) -> int:
    """A magnitude, as bits, that rather more than k entries reach: four standard deviations more in those tried."""
    tried = np.abs(vector[:: max(1, vector.size // _TRIED)])
    wanted = tried.size * (k / max(1, vector.size))
    rank = math.ceil(wanted + 4.0 * math.sqrt(wanted)) + 4
    if rank >= tried.size:
        return 0
    least = np.partition(tried, tried.size - rank)[tried.size - rank]
    return int(least.view(np.uint32 if vector.itemsize == 4 else np.uint64))


def _pieces(size: int) -> list[tuple[int, int]]:
    return [(low, min(low + _PIECE, size)) for low in range(0, size, _PIECE)]


def _threads(size: int) -> int:
    """All cores where there are pieces enough."""
    return cores() if size >= 4 * _PIECE else 1


# --- loops ----------------------------------------------------------------------------------------


@_entry
def _scatter(sums: Array, counts: Array, coordinates: Array, y: Array) -> None:
    for i in range(coordinates.size):
        sums[coordinates[i]] += y[i]
        counts[coordinates[i]] += 1


@_entry
def _power_sums(
    sums: Array, squares: Array, cubes: Array, begin: Array, size: int, low: int, high: int
) -> tuple[float, float, float, float]:
    s2, sp3, q2, qs2 = 0.0, 0.0, 0.0, 0.0
    for tile in range(low // size, (high - 1) // size + 1):
        first, last, away = max(low, tile * size), min(high, tile * size + size), begin[tile] - tile * size
        s2 += _sum_of_squares(sums[first:last])
        if begin[tile] >= 0:
            for j in range(first, last):
                s, q = sums[j], squares[j + away]
                sp3 += s * cubes[j + away]
                q2 += q * q
                qs2 += q * s * s
    return s2, sp3, q2, qs2


@_inner
def _sum_of_squares(x: Array) -> float:
    """In eight sums, since one would wait for each addition before the next."""
    lanes = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    a, b, c, d, e, f, g, h = lanes
    for j in range(0, x.size - 7, 8):
        a += x[j] * x[j]
        b += x[j + 1] * x[j + 1]
        c += x[j + 2] * x[j + 2]
        d += x[j + 3] * x[j + 3]
        e += x[j + 4] * x[j + 4]
        f += x[j + 5] * x[j + 5]
        g += x[j + 6] * x[j + 6]
        h += x[j + 7] * x[j + 7]
    for j in range(x.size // 8 * 8, x.size):
        a += x[j] * x[j]
    return ((a + b) + (c + d)) + ((e + f) + (g + h))


@_entry
def _reweigh(factors: Array, counts: Array, sums: Array, out: Array, anew: bool, low: int, high: int) -> None:
    if anew:
        for j in range(low, high):
            out[j] = 0.0 + factors[counts[j]] * sums[j]
    else:
        for j in range(low, high):
            out[j] += factors[counts[j]] * sums[j]


@_entry
def _add_scaled(sums: Array, factor: float, out: Array, anew: bool, low: int, high: int) -> None:
    if anew:
        for j in range(low, high):
            out[j] = factor * sums[j]
    else:
        for j in range(low, high):
            out[j] += factor * sums[j]


@_entry
def _above(bits: Array, beyond_sign: Any, least: Any, first: int) -> tuple[Array, Array]:
    """Where magnitudes reach ``least``, counted from ``first`` on, and these magnitudes."""
    count = 0
    for i in range(bits.size):
        count += bits[i] & beyond_sign >= least
    at, magnitudes = np.empty(count + 1, np.int64), np.empty(count + 1, bits.dtype)
    if count < bits.size * _FEW:
        _pick_few(bits, beyond_sign, least, first, at, magnitudes)
    else:
        found = np.uint64(0)
        for i in range(bits.size):  # no branch, for it could not be foreseen; what is not meant is overwritten
            at[found] = first + i
            magnitudes[found] = bits[i] & beyond_sign
            found += np.uint64(bits[i] & beyond_sign >= least)
    return at[:count], magnitudes[:count]


@_inner
def _pick_few(bits: Array, beyond_sign: Any, least: Any, first: int, at: Array, magnitudes: Array) -> None:
    """Compared in vectors, a byte for each, after which eight bytes without any are passed by at once."""
    one, found, reached = np.uint64(1), 0, np.zeros(_COMPARED, np.uint8)
    eights = reached.view(np.uint64)
    for start in range(0, bits.size, _COMPARED):
        part = bits[start : start + _COMPARED]
        reached[part.size // 8 * 8 :] = 0
        for i in range(part.size):
            reached[i] = part[i] & beyond_sign >= least
        for eight in range((part.size + 7) // 8):
            left = eights[eight]
            while left:  # the lowest one in byte b is 2^(8b); times this number, its highest byte is b
                byte = np.int64((left & (~left + one)) * np.uint64(0x0001020304050607) >> np.uint64(56))
                at[found] = first + start + 8 * eight + byte
                magnitudes[found] = part[8 * eight + byte] & beyond_sign
                found += 1
                left &= left - one


@_entry
def _chosen(candidates: Array, magnitudes: Array, least: Any, out: Array) -> Array:
    """The candidates above ``least``, and the first of those at it, so that all but the last place are filled."""
    equal, found = out.size - 1, np.uint64(0)
    for i in range(candidates.size):
        equal -= magnitudes[i] > least
    for i in range(candidates.size):
        tied = magnitudes[i] == least and equal > 0
        out[found] = candidates[i]
        found += np.uint64(magnitudes[i] > least or tied)
        equal -= tied
    return out
