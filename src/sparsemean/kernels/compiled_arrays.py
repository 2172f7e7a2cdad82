"""The numba twins of ``arrays``, which draw nothing; only ``kernels.twin`` imports this file, at the first call."""

# As in ``compiled``: functions that call one another are in one file because of numba's cache on disk, threads are
# Python's, and bits do not depend on their number: arrays are cut into pieces of a fixed size, and what is summed over
# pieces is added in their order.

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from sparsemean._types import Array
from sparsemean.kernels.carry import CANCELLED
from sparsemean.kernels.jit import entry as _entry
from sparsemean.kernels.jit import inner as _inner
from sparsemean.kernels.parallel_map import cores, parallel_map

_PIECE = 1 << 18  # coordinates per call of a loop, however many threads there are
_COMPARED = 1024  # entries compared at a time, where few are expected to be large
_FEW = 0.05  # share of the entries up to which they are few
_TRIED = 1 << 14  # entries from which the magnitude of the k-th largest is guessed


# --- entry points: pieces shared among threads ----------------------------------------------------


def scatter(sums: Array, counts: Array, coordinates: Array, y: Array) -> None:
    """See ``scatter_numpy``."""
    _scatter(sums, counts, coordinates, y)


def power_sums(
    sums: Array,
    squares: Array,
    cubes: Array,
    counts: Array,
    moment_begin: Array,
    size: int,
    starts: Array,
    least: int,
    width: int,
) -> tuple[Array, Array]:
    """See ``power_sums_numpy``. Threads do not change a bit."""
    loop = partial(_power_sums, sums, squares, cubes, counts, moment_begin, size, least, width)
    found = _by_block(4 + 10 * width, sums.size, starts, loop)
    return found[:4], found[4:].reshape(10, width, starts.size)


def _by_block(rows: int, size: int, starts: Array, loop: Callable[[int, int], Array]) -> Array:
    """What ``loop`` returns for each piece [low, high) of a block, added up: (rows, blocks)."""
    ends = np.append(starts[1:], size)
    pieces = [
        (block, low, min(low + _PIECE, end))
        for block, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
        for low in range(start, end, _PIECE)
    ]
    found = np.zeros((rows, starts.size))
    parts = parallel_map(lambda piece: loop(piece[1], piece[2]), pieces, _threads(size))
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
    """See ``largest_numpy``. Only entries that reach a guessed magnitude are partitioned.

    Exact whatever the guess: if fewer than k reach it, all entries are taken.
    """
    vector = np.ascontiguousarray(vector)
    kind = np.uint32 if vector.itemsize == 4 else np.uint64
    # Without the sign, bits of floats are ordered as their magnitudes are.
    bits, beyond_sign = vector.view(kind), kind(np.iinfo(kind).max >> 1)

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
    """A magnitude, as bits, that is likely reached by k entries or a few more.

    Of the entries tried, as many reach it as k of all would be expected to, and four standard deviations more.
    """
    tried = np.abs(vector[:: max(1, vector.size // _TRIED)])
    wanted = tried.size * (k / max(1, vector.size))
    rank = math.ceil(wanted + 4.0 * math.sqrt(wanted)) + 4
    if rank >= tried.size:
        return 0
    least = np.partition(tried, tried.size - rank)[tried.size - rank]
    return int(least.view(np.uint32 if vector.itemsize == 4 else np.uint64))


def expected_at(known: Any, coefficients: Array, coordinates: Array) -> Array:
    """See ``expected_at_numpy``."""
    out = np.empty(coordinates.size)
    last, heard, common, starts = known
    _expected_at(last, heard, common, starts, coefficients, coordinates, out)
    return out


def fit_at(known: Any, weight: Array, coordinates: Array, values: Array, rounding: float) -> Array:
    """See ``fit_at_numpy``: in the order of the coordinates, so that bits are the same."""
    found = np.zeros((7, weight.size))
    last, heard, common, starts = known
    _fit_at(last, heard, common, starts, weight, coordinates, values, rounding, found)
    return found


def carry_at(sums: Array, weight: Array, starts: Array, coordinates: Array, before: Array, after: Array) -> Array:
    """See ``carry_at_numpy``."""
    lost = np.empty(coordinates.size, np.int64)
    return lost[: _carry_at(sums, weight, starts, coordinates, before, after, CANCELLED, lost)]


def _pieces(size: int) -> list[tuple[int, int]]:
    """[low, high) of each piece."""
    return [(low, min(low + _PIECE, size)) for low in range(0, size, _PIECE)]


def _threads(size: int) -> int:
    """All cores if there are pieces enough."""
    return cores() if size >= 4 * _PIECE else 1


# --- loops, in the order of the entry points ------------------------------------------------------


@_entry
def _scatter(sums: Array, counts: Array, coordinates: Array, y: Array) -> None:
    for i in range(coordinates.size):
        sums[coordinates[i]] += y[i]
        counts[coordinates[i]] += 1


@_entry
def _power_sums(
    sums: Array,
    squares: Array,
    cubes: Array,
    counts: Array,
    moment_begin: Array,
    size: int,
    least: int,
    width: int,
    low: int,
    high: int,
) -> Array:
    """Of the coordinates [low, high), which lie in one block: the four sums, then the ten by count, in one row."""
    s2, sp3, q2, qs2 = 0.0, 0.0, 0.0, 0.0
    number, energy, held = np.zeros(8 * width), np.zeros(8 * width), np.zeros((width, 8))
    for tile in range(low // size, (high - 1) // size + 1):
        first, last, begin = max(low, tile * size), min(high, tile * size + size), moment_begin[tile]
        s2 += _sum_of_squares(sums[first:last])
        _add_by_count(sums[first:last], counts[first:last], least, number, energy)
        if begin >= 0:
            here = slice(begin + first - tile * size, begin + last - tile * size)
            of_tile = sums[first:last], squares[here], cubes[here], counts[first:last]
            sp3, q2, qs2 = _add_held(*of_tile, least, held, sp3, q2, qs2)
    found = np.zeros(4 + 10 * width)
    found[0], found[1], found[2], found[3] = s2, sp3, q2, qs2
    for m in range(width):
        for lane in range(8):
            found[4 + m] += number[8 * m + lane]
            found[4 + width + m] += energy[8 * m + lane]
        for row in range(8):
            found[4 + (2 + row) * width + m] = held[m, row]
    return found


@_inner
def _add_by_count(sums: Array, counts: Array, least: int, number: Array, energy: Array) -> None:
    """Eight entries for each count, since an addition to one waits for the addition before to the same."""
    offset = np.uint64(8 * least)
    for j in range(sums.size):
        at = (np.uint64(counts[j]) << np.uint64(3)) - offset | np.uint64(j & 7)
        number[at] += 1.0
        energy[at] += sums[j] * sums[j]


@_inner
def _add_held(
    sums: Array,
    squares: Array,
    cubes: Array,
    counts: Array,
    least: int,
    held: Array,
    sp3: float,
    q2: float,
    qs2: float,
) -> tuple[float, float, float]:
    """Add to the last eight rows by count, and to Σ S·P3, Σ Q² and Σ Q·S², which are returned."""
    for j in range(sums.size):
        s, q, p3, m = sums[j], squares[j], cubes[j], np.uint64(counts[j] - least)
        sp3 += s * p3
        q2 += q * q
        qs2 += q * s * s
        x = s / max(counts[j], 1)
        x2, c2 = x * x, max(q - s * x, 0.0)
        held[m, 0] += 1.0
        held[m, 1] += x2 * x2
        held[m, 2] += c2 * c2
        held[m, 3] += x2 * c2
        held[m, 4] += x * (p3 - 3.0 * x * q + 2.0 * x2 * s)
        held[m, 5] += x * (-4.0 * p3 + x * (6.0 * q - 3.0 * x * s))
        held[m, 6] += c2 * c2 * (c2 * c2)
        held[m, 7] += x2 * x2 * (x2 * x2)
    return sp3, q2, qs2


@_inner
def _sum_of_squares(x: Array) -> float:
    """In eight partial sums, since each addition to a single one would wait for the one before.

    Written out, since LLVM may not reorder sums without fastmath; the tree of the last line is part of the result.
    """
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
            out[j] = 0.0 + factors[counts[j]] * sums[j]  # 0 and not −0, as in the NumPy twin
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
    """Where magnitudes reach ``least``, as coordinates of which the first is ``first``, and these magnitudes."""
    count = 0
    for i in range(bits.size):
        count += bits[i] & beyond_sign >= least
    at, magnitudes = np.empty(count + 1, np.int64), np.empty(count + 1, bits.dtype)
    if count < bits.size * _FEW:
        _pick_few(bits, beyond_sign, least, first, at, magnitudes)
    else:
        # Without a branch, which the processor could not predict: each entry is written to the next place, and stays
        # if that moves on. Hence the one place more. An unsigned index is not tested for being negative.
        found = np.uint64(0)
        for i in range(bits.size):
            at[found] = first + i
            magnitudes[found] = bits[i] & beyond_sign
            found += np.uint64(bits[i] & beyond_sign >= least)
    return at[:count], magnitudes[:count]


@_inner
def _pick_few(bits: Array, beyond_sign: Any, least: Any, first: int, at: Array, magnitudes: Array) -> None:
    """The same for few: compared by vector instructions, a byte each; eight bytes of zeros are skipped at once."""
    one, found, reached = np.uint64(1), 0, np.zeros(_COMPARED, np.uint8)
    eights = reached.view(np.uint64)
    for start in range(0, bits.size, _COMPARED):
        part = bits[start : start + _COMPARED]
        reached[part.size // 8 * 8 :] = 0
        for i in range(part.size):
            reached[i] = part[i] & beyond_sign >= least
        for eight in range((part.size + 7) // 8):
            left = eights[eight]
            while left:  # the lowest bit set is 2^(8b) for byte b, and times this number it has b as its highest byte
                byte = np.int64((left & (~left + one)) * np.uint64(0x0001020304050607) >> np.uint64(56))
                at[found] = first + start + 8 * eight + byte
                magnitudes[found] = part[8 * eight + byte] & beyond_sign
                found += 1
                left &= left - one


@_entry
def _chosen(candidates: Array, magnitudes: Array, least: Any, out: Array) -> Array:
    """The candidates above ``least`` and the first of those equal to it, in all but the last place of ``out``."""
    # Without a branch, as in ``_above``.
    equal, found = out.size - 1, np.uint64(0)
    for i in range(candidates.size):
        equal -= magnitudes[i] > least
    for i in range(candidates.size):
        tied = magnitudes[i] == least and equal > 0
        out[found] = candidates[i]
        found += np.uint64(magnitudes[i] > least or tied)
        equal -= tied
    return out


@_inner
def _block(starts: Array, coordinate: int) -> int:
    """Which block a coordinate lies in."""
    return 0 if starts.size == 1 else int(np.searchsorted(starts, coordinate, side="right")) - 1


@_entry
def _expected_at(
    last: Array, heard: Array, common: Array, starts: Array, coefficients: Array, coordinates: Array, out: Array
) -> None:
    for i in range(coordinates.size):
        at = coordinates[i]
        block = _block(starts, at)
        on_common, own, unheard = coefficients[0, block], coefficients[1, block], coefficients[2, block]
        c = common[at]
        out[i] = unheard * c + heard[at] * ((on_common - own - unheard) * c + own * last[at])


@_entry
def _fit_at(
    last: Array,
    heard: Array,
    common: Array,
    starts: Array,
    weight: Array,
    coordinates: Array,
    values: Array,
    rounding: float,
    found: Array,
) -> None:
    for i in range(coordinates.size):
        at = coordinates[i]
        block = _block(starts, at)
        w = weight[block]
        x, c, b = w * values[i], w * common[at], w * last[at]
        if heard[at]:
            r = b - c
            if not abs(r) > rounding * (abs(b) + abs(c)):
                r = 0.0
            found[0, block] += c * c
            found[1, block] += c * r
            found[2, block] += r * r
            found[3, block] += x * c
            found[4, block] += x * r
        else:
            found[5, block] += c * c
            found[6, block] += x * c


@_entry
def _carry_at(
    sums: Array,
    weight: Array,
    starts: Array,
    coordinates: Array,
    before: Array,
    after: Array,
    cancelled: float,
    lost: Array,
) -> int:
    count = 0
    for i in range(coordinates.size):
        at = coordinates[i]
        w = weight[_block(starts, at)]
        moved = sums[at] + w * (after[i] - before[i])
        sums[at] = moved
        if abs(moved) < cancelled * abs(w * before[i]):
            lost[count] = at
            count += 1
    return count
