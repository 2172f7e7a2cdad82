"""The numba twins of ``listed``; only ``kernels.twin`` imports this file, at the first call."""

# As in ``compiled``, whose comments say why: tile by tile over all lists, so that the sums of a tile stay in the cache;
# arrays are passed by their addresses; a coordinate belongs to one thread, and no bit depends on the number of threads.
# Here coordinates are read, two bytes each, where ``compiled`` draws them.
#
# Sums over coordinates are those of NumPy, value after value in the order of a list. So they are not taken per part of
# tiles: ``fold_listed`` returns what NumPy is to sum, and ``fit_listed`` shares out lists among threads, not tiles.
#
# From ``compiled`` come views of addresses and blocks of tiles alone, which numba's cache on disk would not see change.

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from sparsemean._types import Array
from sparsemean.kernels.carry import CANCELLED, Columns
from sparsemean.kernels.carry import ODD as _ODD
from sparsemean.kernels.compiled import _addresses, _aligned, _blocks, _blocks_between, _mixed_with, _touch, _view
from sparsemean.kernels.jit import entry as _entry
from sparsemean.kernels.jit import inner as _inner
from sparsemean.kernels.listed import ListedBatch, ListedChanges, ListedFit, ListedSums, ListedTotals, Lost, first_lost
from sparsemean.kernels.parallel_map import parallel_map
from sparsemean.kernels.tiled import Tiled

_PART = 64  # tiles per call of a loop, however many threads there are
_LEAF = 128  # entries that NumPy sums without halving them
_INT, _DOUBLE, _BYTE = np.empty(0, np.int64), np.empty(0), np.empty(0, np.uint8)  # types that ``_view`` reads


# --- entry points: arguments checked, parts shared among threads ----------------------------------


def fold_listed(totals: ListedTotals, batch: ListedBatch, threads: int = 1) -> ListedSums:
    """See ``fold_listed_numpy``. Threads do not change a bit."""
    dim, blocks = totals.sums.size, batch.starts.size
    energy, spread = np.zeros((2, len(batch.where), blocks))
    found = ListedSums(energy, spread, [])
    if not batch.where:
        return found
    lists, kept_alive = _lists(batch.where, dim), _aligned(batch.values)
    values, expected = _by_list(kept_alive, batch.where), _addresses(batch.expected, dim)
    common, heard, flag, factors = _mixed_with(batch.blend, len(batch.where), dim)
    held_at = np.stack([_held_at(where, totals.moment_begin) for where in batch.where])
    found.held.extend(np.empty(size) for size in held_at[:, -1].tolist())
    held = held_at, _each_address(found.held), _each_address(batch.noise)
    trees, scales = [_Tree(where.k, blocks == 1) for where in batch.where], np.asarray(batch.scales, np.float64)
    pairwise = (
        np.array([tree.depth.size for tree in trees]),
        _each_address([tree.ends for tree in trees]),
        _each_address([tree.kept for tree in trees]),
        _each_address([tree.leaves for tree in trees]),
    )

    def part(first: int) -> None:
        last = min(first + _PART, lists[0])
        some = _blocks_between(batch.starts, first * lists[1], last * lists[1])
        how = np.ascontiguousarray(batch.weights[:, some]), batch.starts[some], scales
        blend = common, heard, flag, np.ascontiguousarray(factors[:, some])
        _fold_listed(tuple(totals), lists, values, expected, blend, how, held, pairwise, first, last)

    parallel_map(part, range(0, lists[0], _PART), threads)
    for i, (where, tree) in enumerate(zip(batch.where, trees, strict=True)):
        if blocks == 1:
            found.energy[i], found.spread[i] = tree.sums(where.at[_PART:-1:_PART])
        else:
            block = np.searchsorted(batch.starts, where.coordinates, side="right") - 1
            found.energy[i], found.spread[i] = (np.bincount(block, each, blocks) for each in tree.kept.reshape(2, -1))
    return found


class _Tree:
    """The sums of y² and of the terms of its spread over a list, while parts of the list come from several threads.

    NumPy sums pairwise: it halves an array until pieces have at most _LEAF entries. A leaf that lies within one part is
    summed there. What belongs to other leaves is kept until all parts are in: of the arrays for it few pages are ever
    written, and so taken from the system.

    Parameters
    ----------
    k
        Length of the list.
    pairwise
        Whether sums are pairwise; else all is kept, as of a leaf that no part can sum.
    """

    def __init__(self, k: int, pairwise: bool) -> None:
        whole: tuple[Array, Array] = np.array([-1, k]), np.zeros(1, np.int64)
        self.ends, self.depth = _leaves(k) if pairwise else whole
        self.kept, self.leaves = np.empty(2 * k), np.zeros(2 * self.depth.size)

    def sums(self, bounds: Array) -> tuple[float, float]:
        """Both, once all parts are in; ``bounds`` is where they were cut."""
        kept, leaves = self.kept.reshape(2, -1), self.leaves.reshape(2, -1)
        first, second = (_tree_sum(self.ends, self.depth, bounds, kept[i], leaves[i]) for i in (0, 1))
        return first, second


@lru_cache(maxsize=64)  # of U and S of a round, for all nodes; and of their halves
def _leaves(k: int) -> tuple[Array, Array]:
    """Where the leaves of a pairwise sum of k begin, and the last ends; and how often an array was halved for each."""
    if k <= _LEAF:
        return np.array([0, k]), np.zeros(1, np.int64)
    half = k // 2 - k // 2 % 8
    (ends, depth), (others, deeper) = _leaves(half), _leaves(k - half)
    return np.append(ends, others[1:] + half), np.append(depth, deeper) + 1


def _held_at(where: Tiled, moment_begin: Array) -> Array:
    """How many coordinates of a list lie in tiles that have moments, before each tile and in all."""
    return np.append(0, np.cumsum(np.where(moment_begin >= 0, np.diff(where.at), 0)))


def fit_listed(fit: ListedFit, threads: int = 1) -> Array:
    """See ``fit_listed_numpy``. Threads do not change a bit."""
    dim, found = fit.common.size, np.zeros((len(fit.where), 7, fit.starts.size))
    if not fit.where:
        return found
    lists, kept_alive = _lists(fit.where, dim), _aligned(fit.values)
    values, rows = _by_list(kept_alive, fit.where), _addresses(fit.rows, dim)
    heard, weights = _addresses(fit.heard, dim)[0], np.ascontiguousarray(fit.weights)
    ends = np.linspace(0, len(fit.where), min(threads, len(fit.where)) + 1).astype(np.int64).tolist()

    def part(i: int) -> None:
        how = weights, fit.starts, fit.rounding
        _fit_listed(found, lists, values, rows, heard, fit.common, how, ends[i], ends[i + 1])

    parallel_map(part, range(len(ends) - 1), threads)
    return found


def carry_listed(columns: Columns, changes: ListedChanges, threads: int = 1, checks: Array | None = None) -> list[Lost]:
    """See ``carry_listed_numpy``. Threads do not change a bit."""
    if not changes.where:
        return [first_lost(_INT, _INT) for _ in columns.sums]
    dim = columns.sums[0].size
    lists, kept_alive = _lists(changes.where, dim), _aligned(changes.values)
    values, rows = _by_list(kept_alive, changes.where), _addresses(changes.rows, dim)
    sums, weights = _addresses(columns.sums, dim)[0], np.ascontiguousarray(columns.weights)
    bits = np.empty(0, f"u{rows[1].itemsize}")  # the type that reads values and rows as their bits
    if checks is not None and values[1].dtype != rows[1].dtype:
        raise ValueError("checksums need values of the type that rows have")

    def part(first: int) -> tuple[Array, Array, Array]:
        last = min(first + _PART, lists[0])
        lost, found = np.empty((2, sums.size, (last - first) * lists[1]), np.int64), np.zeros(sums.size, np.int64)
        added = np.zeros(0 if checks is None else checks.size, np.uint64)
        _carry_listed(sums, weights, columns.starts, lists, values, rows, bits, first, last, lost, found, added)
        return lost, found, added

    parts = parallel_map(part, range(0, lists[0], _PART), threads)
    if checks is not None:
        for *_, added in parts:
            checks += added
    return [
        first_lost(*(np.concatenate([lost[which, s, : found[s]] for lost, found, _ in parts]) for which in (0, 1)))
        for s in range(sums.size)
    ]


def put_listed(changes: ListedChanges, threads: int = 1) -> None:
    """See ``put_listed_numpy``. Lists of one row have no coordinate in common, and a list is written by one thread."""
    if not changes.where:
        return
    dim = changes.rows[0].size
    lists, kept_alive = _lists(changes.where, dim), _aligned(changes.values)
    values, rows = _by_list(kept_alive, changes.where), _addresses(changes.rows, dim)
    parallel_map(lambda i: _put_listed(lists, values, rows, i), range(len(changes.where)), threads)


# --- arguments of the loops -----------------------------------------------------------------------


def _lists(where: Sequence[Tiled], dim: int) -> tuple[int, int, int, Array, tuple[Array, Array]]:
    """How many tiles, their size and dim; the addresses of what ``Tiled`` holds, and the type of its places."""
    tile = where[0].tile
    tiles = -(-dim // tile)
    if any(each.tile != tile for each in where):
        raise ValueError("the lists of a batch must be of one tile size")
    return (
        tiles,
        tile,
        dim,
        _addresses([each.at for each in where], tiles + 1)[0],
        _by_list([each.places for each in where], where),
    )


def _by_list(arrays: Sequence[Array], where: Sequence[Tiled]) -> tuple[Array, Array]:
    """The addresses of arrays that have one entry for each coordinate of their lists, and their common type."""
    like = np.empty(0, arrays[0].dtype)
    if any(a.dtype != like.dtype or a.shape != (each.k,) for a, each in zip(arrays, where, strict=True)):
        raise ValueError(f"needed are arrays of as many numbers as coordinates, all of type {like.dtype}")
    return _each_address(arrays), like


def _each_address(arrays: Sequence[Array | None]) -> Array:
    """The addresses of contiguous arrays of any size, 0 for None."""
    return np.concatenate([_addresses([array], 0 if array is None else array.size)[0] for array in arrays])


# --- loops, in the order of the entry points ------------------------------------------------------


@_entry
def _fold_listed(
    totals: Any,
    lists: Any,
    values: Any,
    expected: Any,
    blend: Any,
    how: Any,
    held: Any,
    pairwise: Any,
    first: int,
    last: int,
) -> None:
    """The tiles [first, last) of all lists."""
    all_sums, all_counts, moment_begin, all_squares, all_cubes, all_variances = totals
    tiles, size, dim, ats, places = lists
    weights, starts, scales = how
    all_common, heards, flag, factors = blend
    held_at, held_squares, noises = held
    leaves, all_ends, all_kept, all_leaf_sums = pairwise
    block, known_here, sink = np.empty(size, np.int64), np.empty(size), np.empty(1)
    squares, buffers = np.empty(size), np.empty((ats.size, 2, _LEAF))
    leaf, parts = np.empty(ats.size, np.int64), np.empty((ats.size, 2), np.int64)
    for i in range(ats.size):
        whole, ends = _view(ats[i], _INT, 0, tiles + 1), _view(all_ends[i], _INT, 0, leaves[i] + 1)
        leaf[i], parts[i, 0], parts[i, 1] = np.searchsorted(ends, whole[first], "right") - 1, whole[first], whole[last]
    for tile in range(first, last):
        start, end = tile * size, min(tile * size + size, dim)
        begin = moment_begin[tile]
        moments = slice(max(begin, 0), max(begin, 0) + (end - start if begin >= 0 else 0))
        here = all_sums[start:end], all_counts[start:end], all_squares[moments], all_cubes[moments]
        sink[0] = _touch(here[0], size) + _touch(here[1], size)
        alone, common = _blocks(starts, start, end, block), all_common[start:end]
        for i in range(ats.size):
            at = _view(ats[i], _INT, tile, 2)
            count = at[1] - at[0]
            if count == 0:
                continue
            chosen, sent = _view(places[0][i], places[1], at[0], count), _view(values[0][i], values[1], at[0], count)
            known = _view(expected[0][i], expected[1], start, end - start if expected[0][i] else 0)
            if i == 0 or expected[0][i] != expected[0][i - 1]:  # the lists of one node follow each other
                sink[0] = _touch(known, count)
            heard = _view(heards[i], flag, start, end - start if heards[i] else 0)
            _expect(known_here, chosen, common, heard, known, factors, block, alone)
            total = _add(here, chosen, sent, known_here, weights[i], block, alone, scales[i], squares)
            if begin >= 0:
                kept = _view(held_squares[i], _DOUBLE, held_at[i, tile], count)
                noise = _view(noises[i], _DOUBLE, held_at[i, tile], count if noises[i] else 0)
                _add_held(all_variances[moments], chosen, squares, 1.0 / scales[i], noise, kept)
            ends, some, now = _view(all_ends[i], _INT, 0, leaves[i] + 1), squares[:count], leaf[i]
            k = ends[leaves[i]]
            for which in range(2):
                kept = _view(all_kept[i], _DOUBLE, which * k, k)
                of_leaves = _view(all_leaf_sums[i], _DOUBLE, which * leaves[i], leaves[i])
                leaf[i] = _pour(some, at[0], parts[i], ends, now, kept, of_leaves, buffers[i, which])
                if which == 0:
                    _spread(some, total)


@_inner
def _expect(
    out: Array, chosen: Array, common: Array, heard: Array, known: Array, factors: Array, block: Array, alone: int
) -> None:
    """What is expected at the chosen coordinates of a tile, one after another; see ``Blend.expected``."""
    if common.size == 0:
        for t in range(chosen.size):
            out[t] = np.float64(known[chosen[t]]) if known.size else 0.0
        return
    for t in range(chosen.size):
        j = chosen[t]
        own = block[j] if alone < 0 else alone
        mixed = factors[0, own] * common[j]
        if heard.size:
            mixed += heard[j] * (factors[1, own] * common[j] + factors[2, own] * np.float64(known[j]))
        out[t] = mixed


@_inner
def _add(
    here: Any,
    chosen: Array,
    sent: Array,
    known: Array,
    weights: Array,
    block: Array,
    alone: int,
    scale: float,
    written: Array,
) -> float:
    """Add what a node sent of a tile, and write its squares; their sum, value after value, is returned."""
    sums, counts, squares, cubes = here
    total = 0.0
    for t in range(chosen.size):
        j = chosen[t]
        weight = weights[block[j] if alone < 0 else alone]
        y = weight * (scale * (np.float64(sent[t]) - known[t]))
        square = y * y
        sums[j] += y
        counts[j] += np.int32(1)  # a plain 1 would widen it to 64 bits and back
        written[t] = square
        total += square
        if squares.size:
            squares[j] += square
            cubes[j] += square * y
    return total


@_inner
def _add_held(variances: Array, chosen: Array, squares: Array, p: float, noise: Array, kept: Array) -> None:
    """The squares of a tile that has moments, added to the variances and kept."""
    for t in range(chosen.size):
        variances[chosen[t]] += (1.0 - p) * squares[t] + p * (noise[t] if noise.size else 0.0)
        kept[t] = squares[t]


@_inner
def _spread(squares: Array, total: float) -> None:
    """Each square of a tile, of which ``total`` is the sum, becomes a term of the spread."""
    mean, factor = 0.0, 1.0
    if squares.size > 1:
        mean, factor = total / squares.size, squares.size / (squares.size - 1.0)
    for t in range(squares.size):
        off = squares[t] - mean
        squares[t] = factor * (off * off)


@_inner
def _pour(values: Array, at: int, part: Any, ends: Array, leaf: int, kept: Array, leaves: Array, buffer: Array) -> int:
    """Take the entries [at, at + values.size) of a list into a pairwise sum; the first belongs to this leaf.

    ``part`` is the range of entries that come to this buffer. Returns the leaf of the next entry.
    """
    t = 0
    while t < values.size:
        begin, end = ends[leaf], ends[leaf + 1]
        some = values[t : t + min(end - at - t, values.size - t)]
        within = part[0] <= begin and end <= part[1]
        into = buffer[at + t - begin :] if within else kept[at + t :]
        for i in range(some.size):
            into[i] = some[i]
        t += some.size
        if at + t == end:
            if within:
                leaves[leaf] = _leaf_sum(buffer[: end - begin])
            leaf += 1
    return leaf


@_inner
def _leaf_sum(x: Array) -> Any:
    """The sum of a leaf, as NumPy takes it."""
    if x.size < 8:
        total = 0.0
        for j in range(x.size):
            total += x[j]
        return total
    a, b, c, d, e, f, g, h = x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]
    for j in range(8, x.size - 7, 8):
        a += x[j]
        b += x[j + 1]
        c += x[j + 2]
        d += x[j + 3]
        e += x[j + 4]
        f += x[j + 5]
        g += x[j + 6]
        h += x[j + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for j in range(x.size // 8 * 8, x.size):
        total += x[j]
    return total


@_entry
def _tree_sum(ends: Array, depth: Array, bounds: Array, kept: Array, leaves: Array) -> Any:
    """The sum of all leaves; those that a bound of parts cuts are summed here."""
    part, stack, depths, top = 0, np.empty(64), np.empty(64, np.int64), 0
    for leaf in range(depth.size):
        begin, end = ends[leaf], ends[leaf + 1]
        while part < bounds.size and bounds[part] <= begin:
            part += 1
        cut = part < bounds.size and bounds[part] < end
        stack[top], depths[top] = _leaf_sum(kept[begin:end]) if cut else leaves[leaf], depth[leaf]
        while top and depths[top] == depths[top - 1]:  # both halves of an array
            top -= 1
            stack[top] += stack[top + 1]
            depths[top] -= 1
        top += 1
    return stack[0]


@_entry
def _fit_listed(
    found: Array,
    lists: Any,
    values: Any,
    rows: Any,
    heards: Array,
    all_common: Array,
    how: Any,
    first: int,
    last: int,
) -> None:
    """The lists [first, last), tile by tile; each sum goes on from tile to tile, value after value."""
    tiles, size, dim, ats, places = lists
    weights, starts, rounding = how
    block, sink = np.empty(size, np.int64), np.empty(1)
    for tile in range(tiles):
        start, end = tile * size, min(tile * size + size, dim)
        alone, common = _blocks(starts, start, end, block), all_common[start:end]
        for i in range(first, last):
            at = _view(ats[i], _INT, tile, 2)
            count = at[1] - at[0]
            if count == 0:
                continue
            chosen, sent = _view(places[0][i], places[1], at[0], count), _view(values[0][i], values[1], at[0], count)
            row = _view(rows[0][i], rows[1], start, end - start if rows[0][i] else 0)
            heard = _view(heards[i], _BYTE, start, end - start if heards[i] else 0)
            sink[0] = _touch(row, count) + _touch(heard, count)
            if alone >= 0:
                _fit(found[i, :, alone], weights[i, alone], rounding, chosen, sent, common, heard, row)
            else:
                for t in range(count):  # one by one, since the next may lie in another block
                    own = block[chosen[t]]
                    one = slice(t, t + 1)
                    _fit(found[i, :, own], weights[i, own], rounding, chosen[one], sent[one], common, heard, row)


@_inner
def _fit(
    found: Array, w: float, rounding: float, chosen: Array, sent: Array, common: Array, heard: Array, row: Array
) -> None:
    """Add the products of values in one block to the seven sums, which stay in registers meanwhile."""
    ff, fr, rr, xf, xr, cc, xc = found[0], found[1], found[2], found[3], found[4], found[5], found[6]
    for t in range(chosen.size):
        j = chosen[t]
        x, c = w * np.float64(sent[t]), w * common[j]
        if heard.size and heard[j]:
            b = w * np.float64(row[j])
            r = b - c
            if not abs(r) > rounding * (abs(b) + abs(c)):
                r = 0.0
            ff += c * c
            fr += c * r
            rr += r * r
            xf += x * c
            xr += x * r
        else:
            cc += c * c
            xc += x * c
    found[0], found[1], found[2], found[3], found[4], found[5], found[6] = ff, fr, rr, xf, xr, cc, xc


@_entry
def _carry_listed(
    sums: Array,
    weights: Array,
    starts: Array,
    lists: Any,
    values: Any,
    rows: Any,
    bits: Array,
    first: int,
    last: int,
    lost: Array,
    found: Array,
    added: Array,
) -> None:
    """The tiles [first, last).

    Where sum s was cancelled first, and by which list, is written to ``lost[:, s]``; ``found[s]`` is how often.
    """
    _, size, dim, ats, places = lists
    block, mark, sink = np.empty(size, np.int64), np.zeros((sums.size, size), np.uint8), np.empty(1)
    for tile in range(first, last):
        start, end = tile * size, min(tile * size + size, dim)
        alone, before = _blocks(starts, start, end, block), found.copy()
        for i in range(ats.size):
            at = _view(ats[i], _INT, tile, 2)
            count = at[1] - at[0]
            if count == 0:
                continue
            chosen = _view(places[0][i], places[1], at[0], count)
            new, old = _view(values[0][i], values[1], at[0], count), _view(rows[0][i], rows[1], start, end - start)
            sink[0] = _touch(old, count)
            for s in range(sums.size):
                total = _view(sums[s], _DOUBLE, start, end - start)
                for t in range(count):
                    j = chosen[t]
                    weight, was = weights[s, i, block[j] if alone < 0 else alone], np.float64(old[j])
                    total[j] += weight * (np.float64(new[t]) - was)
                    if abs(total[j]) < CANCELLED * abs(weight * was) and mark[s, j] == 0:
                        mark[s, j] = 1
                        lost[0, s, found[s]], lost[1, s, found[s]] = start + np.int64(j), i
                        found[s] += 1
            if added.size:
                added[i] += _check(
                    _view(values[0][i], bits, at[0], count), _view(rows[0][i], bits, start, end - start), chosen, start
                )
        for s in range(sums.size):
            for i in range(before[s], found[s]):
                mark[s, lost[0, s, i] - start] = 0


@_inner
def _check(new: Array, old: Array, chosen: Array, start: int) -> Any:
    """What the change of a tile adds to its row's checksum (``check_of``), modulo 2⁶⁴; ``new`` and ``old`` are bits."""
    total, first = np.uint64(0), np.uint64(start + 1)
    for t in range(new.size):
        j = chosen[t]
        number = (first + np.uint64(j)) * np.uint64(_ODD) | np.uint64(1)
        total += (np.uint64(new[t]) - np.uint64(old[j])) * number
    return total


@_entry
def _put_listed(lists: Any, values: Any, rows: Any, i: int) -> None:
    """Write the values of list i into its row."""
    tiles, size, dim, ats, places = lists
    ends, sink = _view(ats[i], _INT, 0, tiles + 1), np.empty(1)
    for tile in range(tiles):
        count = ends[tile + 1] - ends[tile]
        chosen = _view(places[0][i], places[1], ends[tile], count)
        new = _view(values[0][i], values[1], ends[tile], count)
        here = _view(rows[0][i], rows[1], tile * size, min(size, dim - tile * size))
        sink[0] = _touch(here, count)
        for t in range(count):
            here[chosen[t]] = new[t]
