"""The numba twin of ``one_pass``; only ``kernels.twin`` imports this file, at the first call."""

# As in ``compiled``, whose comments say why: tile by tile over all nodes, arrays by their addresses, and in parts of
# tiles whose sums are added in order, so that no bit depends on the number of threads. All that a tile needs (the
# coordinates of every node, sums, counts, the average of what was heard) stays in the cache until its mean is written
# and its rows have learnt; nothing as long as a vector is allocated.
#
# The bits are those that ``fold``, ``power_sums``, ``fit_sums`` and ``carry`` leave of the same payloads. Therefore
# their own inner functions are called, and a part is one piece of ``power_sums``. numba's cache on disk does not see
# when they change: whoever changes what they do saves this file, too.

from __future__ import annotations

from typing import Any

import numpy as np

from sparsemean._types import Array
from sparsemean.kernels.carry import CANCELLED
from sparsemean.kernels.compiled import (
    _BYTE,
    _LANES,
    _add,
    _addresses,
    _aligned,
    _draw,
    _drawn,
    _fit,
    _keyed,
    _mix,
    _room,
    _sized,
    _touch,
    _view,
)
from sparsemean.kernels.compiled_arrays import _PIECE, _sum_of_squares
from sparsemean.kernels.jit import entry as _entry
from sparsemean.kernels.jit import inner as _inner
from sparsemean.kernels.one_pass import PassSums, Powers, Remembered, Sent
from sparsemean.kernels.parallel_map import parallel_map
from sparsemean.kernels.sample import Sample

_EVERY = Sample(np.uint64(0), np.uint64(0), 0, 1, 1, 1 << 12)  # in place of a sample, where all coordinates are sent


def one_pass(
    sent: Sent,
    gains: Array,
    zero: float,
    out: Array | None,
    powers: Powers | None,
    memory: Remembered | None = None,
    threads: int = 1,
) -> PassSums:
    """See ``one_pass_numpy``. Threads do not change a bit."""
    n, dim, everywhere = len(sent.values), sent.dim, sent.samples is None
    every = [_EVERY._replace(dim=dim, k=dim)] * n
    drawn, drawn_all = _drawn(every if sent.samples is None else sent.samples)
    kept_alive = _aligned(sent.values)
    values = _addresses(kept_alive, drawn.k)
    tiles, part_tiles = drawn.tiles, max(1, _PIECE // drawn.size)
    kept = _no_memory(n, values[1]) if memory is None else _of_memory(memory, dim)
    begin = np.empty(0, np.int64) if powers is None else powers.begin
    # One of single precision and one of double, of which one or both are empty: so that there is one type to compile.
    target = tuple(
        out if out is not None and out.dtype == kind else np.empty(0, kind) for kind in (np.float32, np.float64)
    )

    def part(first: int) -> tuple[Array, Array, Array, Array]:
        last = min(first + part_tiles, tiles)
        found = np.zeros((2, n)), np.zeros(4), np.zeros(1, np.int32), np.zeros(7)
        how = everywhere, float(sent.scale), gains, float(zero), begin
        rooms = np.empty((n, drawn.size + _LANES), _room(drawn)[0].dtype), *_room(drawn)[1:]
        _one_pass(drawn_all, values, kept, how, target, found, first, last, rooms)
        return found

    own, of_sums, most, fits = np.zeros((2, n)), np.zeros(4), np.zeros(1, np.int32), np.zeros(7)
    for own_part, of_part, most_part, fits_part in parallel_map(part, range(0, tiles, part_tiles), threads):
        own += own_part
        of_sums += of_part
        np.maximum(most, most_part, out=most)
        fits += fits_part
    return PassSums(own[0], own[1], of_sums, most, fits)


def _no_memory(n: int, like: Array) -> Any:
    return (np.zeros(n, np.uint64), like), np.zeros(n, np.uint64), np.empty(0), np.zeros(4)


def _of_memory(memory: Remembered, dim: int) -> Any:
    """Addresses and type of rows, addresses of ``heard`` (0: none), the sums, and (a, g, u, rounding)."""
    heard = _addresses(list(memory.heard), dim)[0] if memory.heard.size else np.zeros(len(memory.last), np.uint64)
    return _addresses(list(memory.last), dim), heard, memory.sums, np.append(memory.factors, memory.rounding)


@_entry
def _one_pass(
    drawn: Any, values: Any, memory: Any, how: Any, outs: Any, found: Any, first: int, last: int, rooms: Any
) -> None:
    """The tiles [first, last): power sums of this part go to ``found``; without ``out`` nothing else is done."""
    seeds, (dim, k, size, slots, hand) = drawn
    rows, heards, all_sums, factors = memory
    everywhere, scale, gains, zero, moment_begin = how
    own, powers, most, fits = found
    n, all_chosen = seeds.shape[0], rooms[0]
    moments, hybrid = moment_begin.size > 0, heards[0] != 0
    energy, fourths = own[0], own[1]
    sums, counts, squares, cubes = np.empty(size), np.empty(size, np.int32), np.empty(size), np.empty(size)
    nothing, mixture, common, number = np.empty(0), np.empty(size), np.empty(size), np.empty(size)
    expected, (single, double) = np.empty(size), outs
    block, sink, taken = np.zeros(1, np.int64), np.empty(1), np.zeros((n, 2), np.int64)
    a, g, u, rounding = factors[0], factors[1], factors[2], factors[3]
    mixed = np.empty((3, 1))
    mixed[0, 0], mixed[1, 0], mixed[2, 0] = u, a - g - u, g
    s2, sp3, q2, qs2 = 0.0, 0.0, 0.0, 0.0
    sizes, inverse = _sized(dim, k, size, slots, hand), 1.0 / n
    for tile in range(first, last):
        start = tile * size
        m = min(size, dim - start)
        begin = moment_begin[tile] if moments else -1
        sums[:m], counts[:m] = 0.0, 0
        if begin >= 0:
            squares[:m], cubes[:m] = 0.0, 0.0
        here = sums, counts, squares, cubes
        before = all_sums[start : start + m]
        if hybrid:
            _average(before, heards, start, number, common)
        for i in range(n):
            chosen = all_chosen[i]
            at, count = start, m
            if everywhere:
                for t in range(m):
                    chosen[t] = t
            else:
                at, count = _draw(_keyed(sizes, seeds[i]), tile, (chosen, rooms[1], rooms[2]))
            taken[i, 0], taken[i, 1] = at, count
            sent = _view(values[0][i], values[1], at, count)
            if rows[0][i] == 0:
                square, fourth = _add(here, moments, begin >= 0, chosen, count, sent, nothing, 1.0, scale)
            else:
                known = _view(rows[0][i], rows[1], start, m)
                sink[0] = _touch(known, count)
                if hybrid:
                    heard = _view(heards[i], _BYTE, start, m)
                    _mix(mixture, chosen, count, common, heard, known, mixed, block, 0)
                    square, fourth = _add(here, moments, begin >= 0, chosen, count, sent, mixture, 1.0, scale)
                    for feature, total in enumerate(_fit(1.0, chosen, count, sent, common, known, heard, rounding)):
                        fits[feature] += total
                else:
                    square, fourth = _add(here, moments, begin >= 0, chosen, count, sent, known, 1.0, scale)
            energy[i] += square
            fourths[i] += fourth
        if moments:
            s2 += _sum_of_squares(sums[:m])
            for j in range(m):
                most[0] = max(most[0], counts[j])
            if begin >= 0:
                for j in range(m):
                    s, q = sums[j], squares[j]
                    sp3 += s * cubes[j]
                    q2 += q * q
                    qs2 += q * s * s
        if single.size or double.size:
            if hybrid:
                for j in range(m):
                    expected[j] = (inverse * number[j] * mixed[1, 0] + u) * common[j] + inverse * before[j] * g
            elif all_sums.size:
                for j in range(m):
                    expected[j] = inverse * before[j]
            remembered = expected[: m if all_sums.size else 0]
            if single.size:
                _write(single[start : start + m], gains, counts, sums, zero, remembered)
            else:
                _write(double[start : start + m], gains, counts, sums, zero, remembered)
            if all_sums.size:
                _learn(before, rows, heards, values, taken, all_chosen, start, m, squares)
    powers[0], powers[1], powers[2], powers[3] = s2, sp3, q2, qs2


@_inner
def _write(out: Array, gains: Array, counts: Array, sums: Array, zero: float, expected: Array) -> None:
    """The mean of a tile: what is expected, if anything is, and the decoded sums."""
    if expected.size:
        for j in range(out.size):
            out[j] = (zero + gains[counts[j]] * sums[j]) + expected[j]
    else:
        for j in range(out.size):
            out[j] = zero + gains[counts[j]] * sums[j]


@_inner
def _average(sums: Array, heards: Array, start: int, number: Array, common: Array) -> None:
    """How many nodes were heard at each coordinate of a tile, and the average of what they last sent."""
    number[: sums.size] = 0.0
    for i in range(heards.size):
        heard = _view(heards[i], _BYTE, start, sums.size)
        for j in range(sums.size):
            number[j] += heard[j]
    for j in range(sums.size):
        common[j] = sums[j] / number[j] if number[j] > 0.0 else 0.0


@_inner
def _learn(
    sums: Array,
    rows: Any,
    heards: Array,
    values: Any,
    taken: Array,
    all_chosen: Array,
    start: int,
    m: int,
    lost: Array,
) -> None:
    """The rows of a tile hold what came, and its sums follow.

    ``taken`` has place on the wire and count of each node; ``lost`` is scratch memory.
    """
    any_lost = False
    lost[:m] = 0.0
    for i in range(taken.shape[0]):
        chosen, (at, count) = all_chosen[i], (taken[i, 0], taken[i, 1])
        new, row = _view(values[0][i], values[1], at, count), _view(rows[0][i], rows[1], start, m)
        for t in range(count):
            j = chosen[t]
            old = np.float64(row[j])
            sums[j] += np.float64(new[t]) - old
            if abs(sums[j]) < CANCELLED * abs(old):
                lost[j], any_lost = 1.0, True
            row[j] = new[t]
        if heards[0] != 0:
            heard = _view(heards[i], _BYTE, start, m)
            for t in range(count):
                heard[chosen[t]] = 1
    if any_lost:
        for j in range(m):
            if lost[j] > 0.0:
                sums[j] = 0.0
                for i in range(taken.shape[0]):
                    sums[j] += np.float64(_view(rows[0][i], rows[1], start, m)[j])
