"""The numba twins that draw samples or dither; only ``kernels.twin`` imports this file, at the first call."""

# How these loops work, and what must stay as it is.
#
# Tile by tile, all nodes. The outer loop goes over tiles (the sampler's 4,096 coordinates), the inner one over nodes,
# so that the sums of a tile stay in the cache while the values of all nodes stream through once. A node's coordinates
# in the tile are drawn again each time, into ``room``, as 16-bit numbers within the tile. Coordinates that were kept
# would have to be read from memory, eight bytes for a value of four; to draw them takes less time
# (docs/performance.md, "indices given").
#
# Lanes. The draw applies a few rounds of integer arithmetic to all entries of ``room``, and LLVM turns it into vector
# instructions: 16-bit lanes hold four times as many numbers as the 64 bits to which numba widens all integer
# arithmetic, hence the intrinsics at the end. The count is rounded up to a multiple of _LANES, so that no remainder of
# the loop is done one by one; the entries beyond the count are computed and never read.
#
# Hands. In a balanced draw the places of a slot come in many short runs, one for each hand. Where they start is
# reckoned for all hands of the tile at once, in loops apart: the turns by additions, each from the last; the words in
# lanes of 64 bits; the orders in lanes of 32, since one by one their random bits would be branches that nobody can
# predict. Then the runs are written, _RUN places at a time: those beyond a count are written over by the next hand.
#
# Addresses. Values and rows are passed as an array of addresses, and ``_view`` makes an array of one where it is
# needed. numba would convert a list of arrays anew at every call, and compile anew for each length of a tuple of
# arrays and for each mixture of read-only and writable ones. The host functions check type, length, contiguity and
# alignment before any address is read, and hold references until the loops are done.
#
# The cache on disk. numba keeps what it compiled until the file of the function that is *called* changes, whatever
# becomes of the functions that this calls in turn: therefore all of them are in this file. The types of the arguments
# are pickled with it, and a class of ours could not be read again under another name: therefore only arrays, plain
# tuples and numbers are passed into compiled code.
#
# Threads. ``parallel_map`` on Python's threads, with the interpreter's lock released; no prange, since numba's threads
# do not survive a fork.
#
# Bits. Results must not change by a bit with the number of threads, nor, for ``fold``, with how payloads are batched:
# - A coordinate belongs to one part of _PART tiles, and so to one thread; its sums are added node after node.
# - Sums over coordinates are taken per part, and parts are added in ascending order, so _PART must not depend on
#   threads. ``fold`` keeps them per node until all parts are in, and then adds node after node.
# - Each expression has the parentheses of its NumPy twin, and ``jit`` leaves fastmath off: nothing is reordered or
#   fused.
#
# Integers. In numba uint64 with int64 gives float64. Words of the stream are uint64 throughout, constants included;
# coordinates and places are int64, or narrower unsigned numbers, which widen without loss. An unsigned index also
# saves the test for negative ones.

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from sparsemean._types import Array
from sparsemean.kernels.carry import CANCELLED, Changes, Columns
from sparsemean.kernels.carry import ODD as _ODD
from sparsemean.kernels.fit_sums import Fit
from sparsemean.kernels.fold import Batch, Blend, Totals
from sparsemean.kernels.hands import HALVES, ROUNDS, TURNED
from sparsemean.kernels.jit import entry as _entry
from sparsemean.kernels.jit import inlined as _inlined
from sparsemean.kernels.jit import inner as _inner
from sparsemean.kernels.jit import nb
from sparsemean.kernels.parallel_map import parallel_map
from sparsemean.kernels.sample import RANKED, STRIDE, Sample

_PART = 64  # tiles per call of a loop, however many threads there are
_LANES = 64  # entries are drawn in multiples of this
_RUN = 16  # hands are reckoned, and their places written, in multiples of this
_DOUBLE, _BYTE = np.empty(0), np.empty(0, np.uint8)  # the types that ``_view`` reads where they are fixed


# --- entry points: arguments checked, parts shared among threads ----------------------------------


def sample(sample: Sample, first: int, last: int, out: Array) -> None:
    """See ``sample_numpy``."""
    _sample(tuple(sample), first, last, out, _room(sample))


def gather(sample: Sample, vector: Array, out: Array) -> None:
    """See ``gather_numpy``."""
    vector = np.require(vector, requirements=("C", "A"))
    (address,), like = _addresses([vector], sample.dim)
    _gather(tuple(sample), sample.tiles, address, like, out, _room(sample))


def fold(totals: Totals, batch: Batch, threads: int = 1) -> None:
    """See ``fold_numpy``. Neither threads nor how payloads are batched change a bit."""
    if not batch.samples:
        return
    drawn, drawn_all = _drawn(batch.samples)
    tiles = drawn.tiles
    kept_alive = _aligned(batch.values)  # as long as their addresses are in use
    values, expected = _addresses(kept_alive, drawn.k), _addresses(batch.expected, drawn.dim)
    mixed = _mixed_with(batch.blend, len(batch.samples), drawn.dim)

    def part(first: int) -> tuple[slice, Array, Array]:
        last = min(first + _PART, tiles)
        blocks = _blocks_between(batch.starts, first * drawn.size, last * drawn.size)
        shape = (len(batch.samples), totals.energy[blocks].size)
        energy, fourths = np.zeros(shape), np.zeros(shape)
        # Contiguous, since numba compiles anew for arrays with strides.
        how = np.ascontiguousarray(batch.weights[:, blocks]), batch.starts[blocks], float(batch.scale)
        own = totals._replace(energy=energy, fourths=fourths)
        blend = (*mixed[:3], np.ascontiguousarray(mixed[3][:, blocks]))
        _fold(tuple(own), drawn_all, values, expected, blend, how, first, last, _room(drawn))
        return blocks, energy, fourths

    # Per node over all parts first, then node after node: the order is the same in one batch as in several.
    all_energy, all_fourths = np.zeros((2, len(batch.samples), totals.energy.size))
    for blocks, energy, fourths in parallel_map(part, range(0, tiles, _PART), threads):
        all_energy[:, blocks] += energy
        all_fourths[:, blocks] += fourths
    for energy, fourths in zip(all_energy, all_fourths, strict=True):
        totals.energy[:] += energy
        totals.fourths[:] += fourths


def carry(columns: Columns, changes: Changes, threads: int = 1, checks: Array | None = None) -> Array:
    """See ``carry_numpy``. Threads do not change a bit."""
    if not changes.samples:
        return np.empty(0, np.int64)
    drawn, drawn_all = _drawn(changes.samples)
    tiles = drawn.tiles
    kept_alive = _aligned(changes.values)
    values, rows = _addresses(kept_alive, drawn.k), _addresses(changes.rows, drawn.dim)
    sums = _addresses(columns.sums, drawn.dim)[0]
    weights = np.ascontiguousarray(columns.weights)
    bits = np.empty(0, f"u{rows[1].itemsize}")  # the type that reads values and rows as their bits
    if checks is not None and values[1].dtype != rows[1].dtype:
        raise ValueError("checksums need values of the type that rows have")

    def part(first: int) -> tuple[Array, Array]:
        last = min(first + _PART, tiles)
        lost = np.empty((last - first) * drawn.size, np.int64)
        added = np.zeros(0 if checks is None else checks.size, np.uint64)
        where, room = (columns.starts, first, last), _room(drawn)
        return lost[: _carry(sums, weights, where, drawn_all, values, rows, bits, room, lost, added)], added

    found = parallel_map(part, range(0, tiles, _PART), threads)
    if checks is not None:
        for _, added in found:
            checks += added
    return np.sort(np.concatenate([lost for lost, _ in found]))


def put(changes: Changes, threads: int = 1) -> None:
    """See ``put_numpy``. A row is written by one thread."""
    if not changes.samples:
        return
    drawn, (seeds, sizes) = _drawn(changes.samples)
    tiles = drawn.tiles
    kept_alive = _aligned(changes.values)
    (values, like), (rows, kind) = _addresses(kept_alive, drawn.k), _addresses(changes.rows, drawn.dim)

    def part(i: int) -> None:
        _put(seeds[i], sizes, tiles, values[i], like, rows[i], kind, _room(drawn))

    parallel_map(part, range(len(changes.samples)), threads)


def fit_sums(fit: Fit, threads: int = 1) -> Array:
    """See ``fit_sums_numpy``. Threads do not change a bit; how nodes are batched may change the last ones."""
    found = np.zeros((7, fit.starts.size))
    if not fit.samples:
        return found
    drawn, drawn_all = _drawn(fit.samples)
    tiles = drawn.tiles
    kept_alive = _aligned(fit.values)
    values, rows = _addresses(kept_alive, drawn.k), _addresses(fit.rows, drawn.dim)
    heard = _addresses(fit.heard, drawn.dim)[0]

    def part(first: int) -> tuple[slice, Array]:
        last = min(first + _PART, tiles)
        blocks = _blocks_between(fit.starts, first * drawn.size, last * drawn.size)
        own, how = np.zeros((7, fit.starts[blocks].size)), (fit.weights[:, blocks], fit.starts[blocks], fit.rounding)
        _fit_sums(own, drawn_all, values, rows, heard, fit.common, how, first, last, _room(drawn))
        return blocks, own

    for blocks, own in parallel_map(part, range(0, tiles, _PART), threads):
        found[:, blocks] += own
    return found


def restore(stream: Sequence[int], codes: Array, steps: Array, group: int, levels: int, out: Array) -> None:
    """See ``restore_numpy``."""
    _restore(np.uint64(stream[0]), np.uint64(stream[1]), codes, steps, group, levels, out)


def quantise(stream: Sequence[int], values: Array, steps: Array, group: int, levels: int, out: Array) -> None:
    """See ``quantise_numpy``."""
    values = np.require(values, requirements=("C", "A"))
    _quantise(np.uint64(stream[0]), np.uint64(stream[1]), values, steps, group, levels, out)


def rank_words(sample: Sample, stream: Sequence[int], out: Array) -> None:
    """See ``rank_words_numpy``."""
    _rank_words(tuple(sample), np.uint64(stream[0]), np.uint64(stream[1]), out, _room(sample)[2])


# --- arguments of the loops -----------------------------------------------------------------------


def _drawn(samples: Sequence[Sample]) -> tuple[Sample, tuple[Array, Any]]:
    """The first sample; of each the words and what its slot decides, and the sizes that they share."""
    drawn = samples[0]
    if any(each.sizes != drawn.sizes for each in samples):
        raise ValueError("the samples of a batch must be of one size")
    seeds = [(each.a, each.b, each.own, each.off, each.slot, each.hand_a, each.hand_b, each.hand_o) for each in samples]
    return drawn, (np.array(seeds, np.uint64), drawn.sizes)


def _mixed_with(blend: Blend | None, nodes: int, dim: int) -> tuple[Array, Array, Array, Array]:
    """The common vector, addresses and type of ``heard``, and the factors; an empty common vector without a blend."""
    if blend is None:
        return np.empty(0), np.zeros(nodes, np.uint64), np.empty(0, np.uint8), np.zeros((3, 1))
    heard, like = _addresses(blend.heard, dim)  # of type float64 if all are None, and one type compiles once
    return blend.common, heard, like.astype(np.uint8), blend.factors


def _blocks_between(starts: Array, low: int, high: int) -> slice:
    """The blocks that overlap the coordinates [low, high)."""
    return slice(int(np.searchsorted(starts, low, "right")) - 1, int(np.searchsorted(starts, high)))


def _room(drawn: Sample) -> tuple[Array, Array, Array]:
    """Scratch memory of a thread: the chosen numbers within a tile, the words that shuffle it, and its hands."""
    # 16 bits wherever they suffice: all tiles but those of vectors beyond 2³⁶ coordinates.
    chosen = np.empty(drawn.size + _LANES, np.uint16 if drawn.size <= 1 << 16 else np.uint32)
    hands = np.zeros((4, _padded(drawn.size // drawn.hand, _RUN) if drawn.hand else 0), np.uint32)
    return chosen, np.empty(RANKED, np.uint64), hands


def _aligned(arrays: Sequence[Array]) -> list[Array]:
    """The arrays as numba can read them, copies where needed; the caller holds them while it uses their addresses."""
    return [np.require(array, requirements=("C", "A")) for array in arrays]


def _addresses(arrays: Sequence[Array | None], size: int) -> tuple[Array, Array]:
    """The addresses of arrays of one type and size, 0 for None, and an empty array of that type.

    The caller holds the arrays while it uses the addresses.
    """
    given = [array for array in arrays if array is not None]
    like = np.empty(0, given[0].dtype if given else np.float64)
    if any(
        a.dtype != like.dtype or a.shape != (size,) or not (a.flags.c_contiguous and a.flags.aligned) for a in given
    ):
        raise ValueError(f"needed are contiguous arrays of {size} numbers each, all of type {like.dtype}")
    return np.array([0 if a is None else a.__array_interface__["data"][0] for a in arrays], np.uint64), like


# --- loops, in the order of the entry points ------------------------------------------------------


@_entry
def _sample(drawn: Any, first: int, last: int, out: Array, room: Any) -> None:
    """The coordinates in the tiles [first, last)."""
    prepared, chosen = _prepared(drawn), room[0]
    begin = _place(prepared, first)
    for tile in range(first, last):
        at, count = _draw(prepared, tile, room)
        here, start = out[at - begin : at - begin + count], tile * prepared.size
        for t in range(count):
            here[t] = start + chosen[t]


@_entry
def _gather(drawn: Any, tiles: int, address: int, like: Array, out: Array, room: Any) -> None:
    """The values of one vector at the coordinates of its sample."""
    prepared, chosen, sink = _prepared(drawn), room[0], np.empty(1)
    for tile in range(tiles):
        at, count = _draw(prepared, tile, room)
        start = tile * prepared.size
        here, vector = out[at : at + count], _view(address, like, start, min(prepared.size, prepared.dim - start))
        sink[0] = _touch(vector, count)
        for t in range(count):
            here[t] = vector[chosen[t]]


@_entry
def _fold(
    totals: Any, drawn: Any, values: Any, expected: Any, blend: Any, how: Any, first: int, last: int, room: Any
) -> None:
    """The tiles [first, last) of a batch.

    ``totals`` and ``blend`` are plain tuples; ``drawn`` is what ``_drawn`` returns of the samples; ``values`` and
    ``expected`` are addresses and type; ``how`` is weights, first coordinates of blocks, and scale.
    """
    all_sums, all_counts, energy, moment_begin, all_squares, all_cubes, fourths = totals
    seeds, (dim, k, size, slots, hand) = drawn
    weights, starts, scale = how
    all_common, heards, flag, factors = blend
    nodes, chosen, block, sink = seeds.shape[0], room[0], np.empty(size, np.int64), np.empty(1)
    sizes, mixture = _sized(dim, k, size, slots, hand), np.empty(size if all_common.size else 0)
    for tile in range(first, last):
        start, end = tile * size, min(tile * size + size, dim)
        begin = moment_begin[tile] if energy.size else -1
        # All indices below are within the tile.
        here = all_sums[start:end], all_counts[start:end], all_squares[max(begin, 0) :], all_cubes[max(begin, 0) :]
        wanted = nodes * (k * size // dim)
        sink[0] = _touch(here[0], wanted) + _touch(here[1], wanted)
        alone = _blocks(starts, start, end, block)
        common = all_common[start:end]
        for i in range(nodes):
            at, count = _draw(_keyed(sizes, seeds[i]), tile, room)
            sent = _view(values[0][i], values[1], at, count)
            known = _view(expected[0][i], expected[1], start, end - start if expected[0][i] else 0)
            if i == 0 or expected[0][i] != expected[0][i - 1]:  # one row may be expected of all nodes
                sink[0] = _touch(known, count)
            # Two calls, compiled apart: rows may be of single precision, a mixture is of double.
            if common.size == 0:
                _add_one(here, begin, energy, fourths, i, chosen, count, sent, known, weights, block, alone, scale)
            else:
                heard = _view(heards[i], flag, start, end - start if heards[i] else 0)
                _mix(mixture, chosen, count, common, heard, known, factors, block, alone)
                _add_one(here, begin, energy, fourths, i, chosen, count, sent, mixture, weights, block, alone, scale)


@_inner
def _add_one(
    here: Any,
    begin: int,
    energy: Array,
    fourths: Array,
    i: int,
    chosen: Array,
    count: int,
    sent: Array,
    known: Array,
    weights: Array,
    block: Array,
    alone: int,
    scale: float,
) -> None:
    """Add what node i sent of a tile: sums of its own in ``energy[i]`` and ``fourths[i]``."""
    if alone < 0:
        _add_by_block(here, begin >= 0, energy[i], fourths[i], chosen, count, sent, known, weights[i], block, scale)
    elif weights[i, alone] > 0:
        square, fourth = _add(here, energy.size > 0, begin >= 0, chosen, count, sent, known, weights[i, alone], scale)
        if energy.size:
            energy[i, alone] += square
            fourths[i, alone] += fourth


@_inner
def _add(
    here: Any,
    moments: bool,
    powers: bool,
    chosen: Array,
    count: int,
    sent: Array,
    known: Array,
    weight: float,
    scale: float,
) -> tuple[float, float]:
    """In a tile within one block; returns Σ y² and Σ y⁴, which stay in registers meanwhile."""
    sums, counts, squares, cubes = here
    energy, fourth = 0.0, 0.0
    for t in range(count):
        j = chosen[t]
        y = weight * (scale * _residual(sent, known, t, j))
        sums[j] += y
        counts[j] += np.int32(1)  # a plain 1 would widen it to 64 bits and back
        if moments:
            square = y * y
            energy += square
            if powers:
                squares[j] += square
                cubes[j] += square * y
                fourth += square * square
    return energy, fourth


@_inner
def _add_by_block(
    here: Any,
    powers: bool,
    energy: Array,
    fourths: Array,
    chosen: Array,
    count: int,
    sent: Array,
    known: Array,
    weights: Array,
    block: Array,
    scale: float,
) -> None:
    """In a tile of several blocks: each value has the weight of its own block."""
    sums, counts, squares, cubes = here
    for t in range(count):
        j = chosen[t]
        own = block[j]
        if weights[own] > 0:
            y = weights[own] * (scale * _residual(sent, known, t, j))
            square = y * y
            sums[j] += y
            counts[j] += np.int32(1)
            if energy.size:
                energy[own] += square
            if powers:
                squares[j] += square
                cubes[j] += square * y
                fourths[own] += square * square


@_inner
def _residual(sent: Array, known: Array, t: int, j: int) -> float:
    """value − expected in double precision, whatever types they have; an empty ``known`` is 0."""
    return sent[t] - np.float64(known[j]) if known.size else np.float64(sent[t])


@_inner
def _mix(
    mixture: Array,
    chosen: Array,
    count: int,
    common: Array,
    heard: Array,
    known: Array,
    factors: Array,
    block: Array,
    alone: int,
) -> None:
    """``Blend.expected`` at the chosen coordinates of a tile; the rest of ``mixture`` is left from other nodes."""
    for t in range(count):
        j = chosen[t]
        own = block[j] if alone < 0 else alone
        mixed = factors[0, own] * common[j]
        if heard.size:
            mixed += heard[j] * (factors[1, own] * common[j] + factors[2, own] * np.float64(known[j]))
        mixture[j] = mixed


@_entry
def _carry(
    sums: Array,
    weights: Array,
    where: Any,
    drawn: Any,
    values: Any,
    rows: Any,
    bits: Array,
    room: Any,
    lost: Array,
    added: Array,
) -> int:
    """Carry the changes in the tiles [first, last) into all sums.

    What they add to checksums is added to ``added``, unless that is empty. Coordinates where a sum was cancelled
    are written to ``lost``, each once; returns how many.
    """
    seeds, (dim, k, size, slots, hand) = drawn
    starts, first, last = where
    nodes, chosen, block, found = seeds.shape[0], room[0], np.empty(size, np.int64), 0
    mark, sink = np.zeros(size, np.uint8), np.empty(1)  # mark[j]: coordinate j of the tile is in ``lost``
    sizes = _sized(dim, k, size, slots, hand)
    for tile in range(first, last):
        start, end = tile * size, min(tile * size + size, dim)
        alone, before = _blocks(starts, start, end, block), found
        for i in range(nodes):
            at, count = _draw(_keyed(sizes, seeds[i]), tile, room)
            new, old = _view(values[0][i], values[1], at, count), _view(rows[0][i], rows[1], start, end - start)
            sink[0] = _touch(old, count)
            for s in range(sums.size):
                total = _view(sums[s], _DOUBLE, start, end - start)
                for t in range(count):
                    j = chosen[t]
                    weight, was = weights[s, i, block[j] if alone < 0 else alone], np.float64(old[j])
                    total[j] += weight * (np.float64(new[t]) - was)
                    # What remains is then mostly the rounding of the value that left; the caller sums the rows anew.
                    if abs(total[j]) < CANCELLED * abs(weight * was) and mark[j] == 0:
                        mark[j] = 1
                        lost[found] = start + np.int64(j)
                        found += 1
            if added.size:
                added[i] += _check(
                    _view(values[0][i], bits, at, count), _view(rows[0][i], bits, start, end - start), chosen, start
                )
        for i in range(before, found):  # unmarks the few, instead of clearing the whole tile
            mark[lost[i] - start] = 0
    return found


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
def _put(seeds: Array, sizes: Any, tiles: int, values: int, like: Array, row: int, kind: Array, room: Any) -> None:
    """Write the values of one sample into its row."""
    prepared, chosen, sink = _keyed(_sized(*sizes), seeds), room[0], np.empty(1)
    for tile in range(tiles):
        at, count = _draw(prepared, tile, room)
        new = _view(values, like, at, count)
        here = _view(row, kind, tile * prepared.size, min(prepared.size, prepared.dim - tile * prepared.size))
        sink[0] = _touch(here, count)
        for t in range(count):
            here[chosen[t]] = new[t]


@_entry
def _fit_sums(
    found: Array,
    drawn: Any,
    values: Any,
    rows: Any,
    heards: Array,
    all_common: Array,
    how: Any,
    first: int,
    last: int,
    room: Any,
) -> None:
    """The tiles [first, last), added to ``found``; ``values`` and ``rows`` are addresses and type."""
    seeds, (dim, k, size, slots, hand) = drawn
    weights, starts, rounding = how
    nodes, chosen, block, sink = seeds.shape[0], room[0], np.empty(size, np.int64), np.empty(1)
    sizes = _sized(dim, k, size, slots, hand)
    for tile in range(first, last):
        start, end = tile * size, min(tile * size + size, dim)
        alone, common = _blocks(starts, start, end, block), all_common[start:end]
        for i in range(nodes):
            at, count = _draw(_keyed(sizes, seeds[i]), tile, room)
            sent = _view(values[0][i], values[1], at, count)
            last_sent = _view(rows[0][i], rows[1], start, end - start if rows[0][i] else 0)
            heard = _view(heards[i], _BYTE, start, end - start if heards[i] else 0)
            sink[0] = _touch(last_sent, count) + _touch(heard, count)
            if alone >= 0:
                totals = _fit(weights[i, alone], chosen, count, sent, common, last_sent, heard, rounding)
                for feature, total in enumerate(totals):
                    found[feature, alone] += total
            else:
                for t in range(count):
                    j = chosen[t]
                    own = block[j]
                    h, b = (np.float64(heard[j]), np.float64(last_sent[j])) if heard.size else (0.0, 0.0)
                    x, c, r = _fitted(weights[i, own], sent[t], common[j], b, h, rounding)
                    products = h * c * c, c * r, r * r, h * x * c, x * r, (1.0 - h) * c * c, (1.0 - h) * x * c
                    for feature, product in enumerate(products):
                        found[feature, own] += product


@_inner
def _fit(
    weight: float, chosen: Array, count: int, sent: Array, common: Array, last: Array, heard: Array, rounding: float
) -> tuple[float, float, float, float, float, float, float]:
    """The seven sums of a tile within one block, in registers meanwhile; an empty ``heard`` is 0."""
    ff, fr, rr, xf, xr, cc, xc = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(count):
        j = chosen[t]
        h, b = (np.float64(heard[j]), np.float64(last[j])) if heard.size else (0.0, 0.0)
        x, c, r = _fitted(weight, sent[t], common[j], b, h, rounding)
        ff += h * c * c
        fr += c * r
        rr += r * r
        xf += h * x * c
        xr += x * r
        cc += (1.0 - h) * c * c
        xc += (1.0 - h) * x * c
    return ff, fr, rr, xf, xr, cc, xc


@_inner
def _fitted(weight: float, sent: float, common: float, last: float, heard: float, rounding: float) -> Any:
    """x, c and r of one value, weighted; r is 0 where it is no more than rounding."""
    x, c, b = weight * np.float64(sent), weight * common, weight * last
    r = heard * (b - c)
    return x, c, (r if abs(r) > rounding * (abs(b) + abs(c)) else 0.0)


@_entry
def _restore(a: Any, b: Any, codes: Array, steps: Array, group: int, levels: int, out: Array) -> None:
    """Groups share a step, and pairs a word: the low half dithers the first value. A group's size is even."""
    low = (1 - levels) / 2
    for number in range(steps.size):
        step, first = steps[number], number * group
        some, here, count = codes[first : first + group], out[first : first + group], min(group, codes.size - first)
        start = np.uint64(first // 2 + 1)  # a stream's words are numbered from 1
        for pair in range(count // 2):  # without a branch, so that LLVM makes vectors of it
            word = _drawn_word(a, b, start + np.uint64(pair))
            here[2 * pair] = step * ((some[2 * pair] + low) - _dither(word & np.uint64(0xFFFFFFFF)))
            here[2 * pair + 1] = step * ((some[2 * pair + 1] + low) - _dither(word >> np.uint64(32)))
        if count % 2:
            word = _drawn_word(a, b, start + np.uint64(count // 2))
            here[count - 1] = step * ((some[count - 1] + low) - _dither(word & np.uint64(0xFFFFFFFF)))


@_entry
def _quantise(a: Any, b: Any, values: Array, steps: Array, group: int, levels: int, out: Array) -> None:
    """As ``_restore``; a sum is above 0, so that to cut off its fraction is to round it down."""
    half = levels / 2
    for number in range(steps.size):
        step, first = steps[number], number * group
        some, here, count = values[first : first + group], out[first : first + group], min(group, out.size - first)
        start = np.uint64(first // 2 + 1)
        if step == 0.0:
            here[:] = 0
            continue
        for pair in range(count // 2):
            word = _drawn_word(a, b, start + np.uint64(pair))
            low, high = _dither(word & np.uint64(0xFFFFFFFF)), _dither(word >> np.uint64(32))
            here[2 * pair] = np.int32(np.float64(some[2 * pair]) / step + half + low)
            here[2 * pair + 1] = np.int32(np.float64(some[2 * pair + 1]) / step + half + high)
        if count % 2:
            low = _dither(_drawn_word(a, b, start + np.uint64(count // 2)) & np.uint64(0xFFFFFFFF))
            here[count - 1] = np.int32(np.float64(some[count - 1]) / step + half + low)


@_entry
def _rank_words(drawn: Any, a: Any, b: Any, out: Array, hands: Array) -> None:
    """Hand after hand; along a run the rank changes only where it has gone round the hand."""
    prepared = _prepared(drawn)
    hand, slots, dim, at = prepared.hand, prepared.slots, prepared.dim, 0
    for tile in range((dim + prepared.size - 1) >> prepared.w):
        start = tile << prepared.w
        m = min(prepared.size, dim - start)
        full = m >> prepared.v
        _, left = _ahead(prepared, tile)
        end, turn = _turns(hands, prepared, tile, full)
        _runs(hands, prepared, tile, full)
        for h in range(full):
            over = left >= dim - prepared.rest
            left += prepared.rest - (dim if over else 0)
            total = slots * prepared.each + prepared.more + over
            index = int(np.uint32(hands[0, h] - hands[2, h]))  # of the first place; below 2³² in any hand
            o, count = int(hands[2, h]) & (hand - 1), int(hands[1, h])
            _write_ranked(out[at : at + count], a, b, start + h * hand, hand, o, index, total)
            at += count
        if full * hand < m:
            index, count, total = _short_run(prepared, tile, full, m - full * hand, end, turn)
            begin, width = start + full * hand, m - full * hand
            _write_ranked(out[at : at + count], a, b, begin, width, prepared.hand_o, index, total)
            at += count


@_inner
def _write_ranked(out: Array, a: Any, b: Any, begin: int, width: int, o: int, index: int, total: int) -> None:
    """The words of a run in a hand of ``width`` places from ``begin`` on, of which all slots take ``total``."""
    rounds = total // width
    rest, rank = total - rounds * width, index // width
    x = index - rank * width
    more, fewer = (rank << 32) // (rounds + 1), (rank << 32) // max(rounds, 1)
    for t in range(out.size):
        place = begin + (x + o) % width
        half = _drawn_word(a, b, np.uint64((place >> 1) + 1)) >> np.uint64((place & 1) << 5)
        out[t] = np.uint32(half + np.uint64(more if x < rest else fewer))
        x += 1
        if x == width:
            x, rank = 0, rank + 1
            more, fewer = (rank << 32) // (rounds + 1), (rank << 32) // max(rounds, 1)


@_inner
def _dither(half: Any) -> float:
    """D = U − ½ with U = (w + ½) / 2³²."""
    return (np.float64(half) + 0.5) * 2.0**-32 - 0.5


# --- shared by the loops --------------------------------------------------------------------------


@_inner
def _blocks(starts: Array, start: int, end: int, block: Array) -> Any:
    """The block of a tile [start, end) that lies in one; else −1, with that of coordinate start + j in block[j]."""
    now = np.searchsorted(starts, start, side="right") - 1
    if now + 1 == starts.size or starts[now + 1] >= end:
        return now
    for j in range(end - start):
        while now + 1 < starts.size and starts[now + 1] <= start + j:
            now += 1
        block[j] = now
    return -1


@_inner
def _touch(array: Array, wanted: int) -> float:
    """Read an array into the cache in order, if most of its cache lines are wanted.

    Memory is fastest in order, and the loops that follow go through the tile in random order. The caller stores the
    result in ``sink``, since LLVM would remove reads of which nothing is used.
    """
    total = 0.0
    if wanted * 16 >= array.size:
        for j in range(0, array.size, 64 // array.itemsize):  # one entry of each line
            total += array[j]
    return total


# --- one tile of a sample (docs/sampling.md) ------------------------------------------------------


class _Prepared(NamedTuple):
    """A sample with what all its tiles share.

    Attributes
    ----------
    a, b, own, off, slot, dim, k, size, slots, hand, hand_a, hand_b, hand_o
        As in ``Sample``.
    q, r
        size·k = q·dim + r.
    w, v
        size = 2**w and hand = 2**v.
    each, more, rest
        slots·hand·k = (slots·each + more)·dim + rest, with more < slots and rest < dim.
    """

    a: Any
    b: Any
    own: Any
    off: Any
    slot: Any
    hand_a: Any
    hand_b: Any
    hand_o: Any
    dim: int
    k: int
    size: int
    slots: int
    hand: int
    q: int
    r: int
    w: int
    v: int
    each: int
    more: int
    rest: int


@_inner
def _prepared(drawn: Any) -> _Prepared:
    """The sample with the fields of a ``Sample``."""
    a, b, off, dim, k, size, slot, slots, hand, hand_a, hand_b, hand_o = drawn
    own = (off + slot * dim) // slots
    q, each = size * k // dim, hand * k // dim
    more = slots * (hand * k - each * dim) // dim
    rest = slots * (hand * k - each * dim) - more * dim
    shared = dim, k, size, slots, hand, q, size * k - q * dim, _bits(size - 1), _bits(hand - 1), each, more, rest
    return _Prepared(a, b, own, off, slot, hand_a, hand_b, hand_o, *shared)


@_inner
def _sized(dim: int, k: int, size: int, slots: int, hand: int) -> _Prepared:
    """What samples of these sizes have in common, for ``_keyed``."""
    zero = np.uint64(0)
    return _prepared((zero, zero, 0, dim, k, size, 0, slots, hand, zero, zero, 0))


@_inner
def _keyed(sizes: _Prepared, seeds: Array) -> _Prepared:
    """The same sizes with what distinguishes one sample, so that divisions are done once for all nodes."""
    # All lie in one uint64 array; offsets and slot are reckoned with as int64.
    own, off, slot, hand_o = np.int64(seeds[2]), np.int64(seeds[3]), np.int64(seeds[4]), np.int64(seeds[7])
    return _Prepared(seeds[0], seeds[1], own, off, slot, seeds[5], seeds[6], hand_o, *sizes[8:])


@_inner
def _place(prepared: _Prepared, tile: int) -> Any:
    """floor((own + min(tile·size, dim)·k) / dim): where a tile begins on the wire.

    By q and r, since tile·size·k may exceed 64 bits: tile·r stays below 2²⁰·2⁴⁰.
    """
    return (
        prepared.k
        if tile * prepared.size >= prepared.dim
        else tile * prepared.q + (prepared.own + tile * prepared.r) // prepared.dim
    )


@_inlined
def _draw(prepared: _Prepared, tile: int, room: Any) -> tuple[int, int]:
    """Draw a tile into ``room``: chosen[i] = walk(place i) for i < count; returns place on the wire and count."""
    x, draws, hands = room
    at = _place(prepared, tile)
    count = _place(prepared, tile + 1) - at
    if count == 0:
        return at, count
    m = min(prepared.size, prepared.dim - tile * prepared.size)
    w = prepared.w if m == prepared.size else _bits(m - 1)
    words, start = _shuffle_words(m, w), np.uint64(STRIDE * tile)
    for r in range(words):
        draws[r] = _word(prepared, start + np.uint64(r))
    if prepared.hand:
        _deal(x, hands, prepared, tile, m)
    else:
        _turn(x, _below(m, w, prepared, start + np.uint64(words)), m, _padded(count, _LANES))
    _walk(x, draws, words, m, w, count)
    return at, count


@_inlined
def _walk(x: Array, draws: Array, words: int, m: int, w: int, count: int) -> None:
    """x[i] = walk(x[i]) in a tile of m, for i < count."""
    if m <= RANKED:
        _rank(x, draws, m, count)
    else:
        _shuffle(x, draws, words, w, _padded(count, _LANES))
        if m < 1 << w:
            _walk_on(x, draws, words, m, w, count)


@_inner
def _shuffle_words(m: int, w: int) -> int:
    """``shuffle_words`` of a tile of m, with w = bits(m − 1)."""
    return m if m <= RANKED else 2 + (48 + w - 1) // w


@_inner
def _turn(x: Array, o: int, m: int, count: int) -> None:
    """The places of a sample that stands alone: (i + o) mod m for i < count."""
    lane = x.dtype.type
    for i in range(count):
        x[i] = _plus(lane(i), lane(o))
    for i in range(m - o, count):  # modulo m by a subtraction; what overflowed the lane comes right again
        x[i] -= m


@_inlined
def _deal(x: Array, hands: Array, prepared: _Prepared, tile: int, m: int) -> None:
    """The places of a slot in a balanced draw, hand after hand; see ``hands.dealt``."""
    _run_starts(hands, prepared, tile, m)
    _write_hands(x, hands[0], hands[1], prepared, m)


@_inlined
def _write_hands(x: Array, starts: Array, counts: Array, prepared: _Prepared, m: int) -> None:
    """So many places of each hand of a tile of m, from its start on and round its end."""
    hand, full = prepared.hand, m >> prepared.v
    at, mask = 0, x.dtype.type(hand - 1)
    for h in range(full):
        begin, start, count = x.dtype.type(h * hand), starts[h], int(counts[h])
        _write_run(x, at, begin, x.dtype.type(start), mask)
        t = _RUN
        while t < count:  # a range would divide by its step
            _write_run(x, at + t, begin, x.dtype.type(start + t), mask)
            t += _RUN
        at += count
    if full * hand < m:
        start, short = np.int64(starts[full]), m - full * hand
        for t in range(counts[full]):
            x[at + t] = full * hand + (start + t) % short


@_inlined
def _run_starts(hands: Array, prepared: _Prepared, tile: int, m: int) -> None:
    """Where a slot's run starts in each hand of a tile, modulo 2³² or the places of a short hand, and its count."""
    full = m >> prepared.v
    left, turn = _turns(hands, prepared, tile, full)
    _runs(hands, prepared, tile, full)
    if full * prepared.hand < m:
        width = m - full * prepared.hand
        start, hands[1, full], _ = _short_run(prepared, tile, full, width, left, turn)
        hands[0, full] = (start + prepared.hand_o) % width


@_inner
def _short_run(prepared: _Prepared, tile: int, h: int, m: int, left: int, turn: int) -> Any:
    """The last hand of the vector, number h of its tile, if it has only m places: as ``_turns`` and ``_runs``.

    Where the run begins before the hand is turned, its count, and what all slots take together.
    """
    dim, k, slots = prepared.dim, prepared.k, prepared.slots
    each = m * k // dim
    extra = (left + slots * (m * k - each * dim)) // dim
    turn = (turn + extra) % slots
    more = turn < extra
    place, size = (turn, extra) if more else (turn - extra, slots - extra)
    word = _drawn_word(prepared.hand_a, prepared.hand_b, np.uint64((tile << prepared.w - prepared.v) + h + 1))
    dealt = _shuffled(np.uint32(place), np.uint32(size), np.uint32(word), np.uint32(word >> np.uint64(32)))
    start = (0 if more else (each + 1) * extra) + (each + more) * np.int64(dealt)
    return start, each + more, slots * each + extra


@_inner
def _turns(hands: Array, prepared: _Prepared, tile: int, full: int) -> tuple[int, int]:
    """For each full hand of a tile, the turn of the slot, and how many slots take one place more: those of low turns.

    The remainder and the turn at the end are returned.
    """
    dim, slots, turns, extras = prepared.dim, prepared.slots, hands[0], hands[1]
    ahead, left = _ahead(prepared, tile)
    turn = (prepared.slot + ahead) % slots
    step, back = prepared.rest, dim - prepared.rest
    for h in range(full):  # from hand to hand by additions
        over = left >= back
        left = left - back if over else left + step
        extra = prepared.more + over
        turn += extra
        turn = turn - slots if turn >= slots else turn
        turns[h], extras[h] = turn, extra
    return left, turn


@_inner
def _ahead(prepared: _Prepared, tile: int) -> tuple[int, int]:
    """Up to the tile all slots together have taken ahead places, modulo their number, and left/dim of the next."""
    taken = prepared.off + prepared.slots * (tile * prepared.r % prepared.dim)
    ahead = taken // prepared.dim
    return ahead, taken - ahead * prepared.dim


@_inner
def _runs(hands: Array, prepared: _Prepared, tile: int, full: int) -> None:
    """Turn and extra of each hand become the start of its run, modulo 2³², and its count."""
    starts, counts, low, high = hands[0], hands[1], hands[2], hands[3]
    first, padded = np.uint64((tile << prepared.w - prepared.v) + 1), _padded(full, _RUN)
    for h in range(padded):  # apart, so that the vectors of the next loop have lanes of 32 bits
        word = _drawn_word(prepared.hand_a, prepared.hand_b, first + np.uint64(h))
        low[h], high[h] = np.uint32(word), np.uint32(word >> np.uint64(32))
    slots, each = np.uint32(prepared.slots), np.uint32(prepared.each)
    for h in range(padded):
        turn, extra = starts[h], counts[h]
        more = turn < extra
        place = _shuffled(
            turn if more else np.uint32(turn - extra), extra if more else np.uint32(slots - extra), low[h], high[h]
        )
        before = np.uint32(0) if more else np.uint32((each + np.uint32(1)) * extra)
        count = np.uint32(each + more)
        starts[h], counts[h] = before + count * place + low[h], count


@_inner
def _rank(x: Array, draws: Array, m: int, count: int) -> None:
    """A tile of few coordinates: the order of m words is the permutation."""
    order = x[x.size - RANKED :]
    for j in range(m):
        rank = 0
        for i in range(m):
            rank += draws[i] < draws[j]
        order[rank] = j
    for i in range(count):
        x[i] = order[x[i]]


@_inner
def _shuffle(x: Array, draws: Array, rounds: int, w: int, count: int) -> None:
    """Any other: the keyed bijection of [0, 2**w), applied to x[i] for i < count, a multiple of _LANES."""
    for r in range(rounds):  # the outer loop, so that LLVM makes vectors of the inner one
        a, c, mask, shift = _constants(x, draws[r], r, w)
        for i in range(count):
            x[i] = _round(x[i], a, c, mask, shift)


@_inner
def _walk_on(x: Array, draws: Array, rounds: int, m: int, w: int, count: int) -> None:
    """In a short tile m is less than 2**w: whatever fell beyond is sent through the bijection until it is below m."""
    for i in range(count):
        while x[i] >= m:
            for r in range(rounds):
                a, c, mask, shift = _constants(x, draws[r], r, w)
                x[i] = _round(x[i], a, c, mask, shift)


@_inner
def _constants(x: Array, z: Any, r: int, w: int) -> tuple[Any, Any, Any, Any]:
    """Factor (odd), summand, mask and shift of round r with word z, in the type of the lanes."""
    mask, lane = np.uint64((1 << w) - 1), x.dtype.type
    return lane(z & mask | np.uint64(1)), lane((z >> np.uint64(32)) & mask), lane(mask), lane((2 * w + 1) // 3 - r % 2)


@_inner
def _below(bound: int, w: int, prepared: _Prepared, start: Any) -> Any:
    """Uniform in [0, bound): the first word from ``start`` whose low w bits are below it."""
    while True:
        low = np.int64(_word(prepared, start) & np.uint64((1 << w) - 1))
        if low < bound:
            return low
        start += np.uint64(1)


@_inner
def _padded(count: int, lanes: int) -> int:
    """The least multiple of ``lanes`` from ``count`` on."""
    return (count + lanes - 1) // lanes * lanes


@_inner
def _bits(n: int) -> int:
    """n.bit_length(), 0 for n < 0."""
    w = 0
    while n >> w > 0:
        w += 1
    return w


# --- words of a stream ----------------------------------------------------------------------------


@_inner
def _word(prepared: _Prepared, index: Any) -> Any:
    """The word at this index of a sample's stream; see ``stream_word``."""
    return _drawn_word(prepared.a, prepared.b, index + np.uint64(1))


@_inner
def _drawn_word(a: Any, b: Any, number: Any) -> Any:
    """The same by its number, from 1 on, and the two words of the stream."""
    return _mixed(_mixed(a + number * np.uint64(0x9E3779B97F4A7C15)) ^ b)


@_inner
def _mixed(z: Any) -> Any:
    """The finaliser of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# --- intrinsics: what numba's Python cannot express -----------------------------------------------


@_inner
def _view(address: Any, like: Array, start: int, size: int) -> Any:
    """The elements [start, start + size) of the array at this address, of the type of ``like``; nothing is checked."""
    return nb.carray(_pointer(address, like, start), size)


def _build_pointer(context: Any, address: Any, like: Any, start: Any) -> Any:
    """The address as a pointer to the type of ``like``, moved on by ``start`` elements."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))
        return builder.gep(pointer, [arguments[2]])

    return nb.types.CPointer(like.dtype)(address, like, start), build


def _build_plus(context: Any, x: Any, o: Any) -> Any:
    """x + o in the type of x; numba would widen it to 64 bits, and a vector would hold a quarter as many."""
    return x(x, x), lambda context, builder, signature, arguments: builder.add(*arguments)


def _build_round(context: Any, x: Any, a: Any, c: Any, mask: Any, shift: Any) -> Any:
    """One round of the bijection in the type of x: y ^ (y >> shift) with y = (x·a + c) & mask."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, a, c, mask, shift = arguments
        y = builder.and_(builder.add(builder.mul(x, a), c), mask)
        return builder.xor(y, builder.lshr(y, shift))

    return x(x, x, x, x, x), build


def _build_shuffled(context: Any, x: Any, size: Any, low: Any, high: Any) -> Any:
    """``hands.shuffled`` in 32 bits; ``low`` and ``high`` are the halves of the hand's word."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, size, low, high = arguments
        half, whole = x.type, ir.IntType(64)
        word = builder.or_(builder.zext(low, whole), builder.shl(builder.zext(high, whole), whole(32)))
        low = builder.and_(builder.trunc(builder.lshr(word, whole(TURNED)), half), half((1 << HALVES) - 1))
        high = builder.trunc(builder.lshr(word, whole(TURNED + HALVES)), half)
        for a, b in ROUNDS:
            u = builder.mul(low, half(a))
            z = builder.zext(builder.add(u, builder.mul(high, half(b))), whole)
            pivot = builder.trunc(builder.lshr(builder.mul(z, builder.zext(size, whole)), whole(32)), half)
            y = builder.sub(pivot, x)
            y = builder.select(builder.icmp_unsigned("<", pivot, x), builder.add(y, size), y)
            larger = builder.select(builder.icmp_unsigned("<", x, y), y, x)
            odd = builder.or_(builder.shl(larger, half(1)), half(1))
            swap = builder.icmp_signed("<", builder.mul(builder.or_(u, half(1)), odd), half(0))
            x = builder.select(swap, y, x)
        return x

    return x(x, x, x, x), build


def _build_write_run(context: Any, x: Any, at: Any, begin: Any, start: Any, mask: Any) -> Any:
    """x[at + i] = begin + ((start + i) & mask) for i < _RUN, in one vector; nothing is checked."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, *numbers = arguments
        lane, lanes = numbers[0].type, ir.VectorType(numbers[0].type, _RUN)
        nothing, zeros = ir.Constant(lanes, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), _RUN), [0] * _RUN)
        begin, start, mask = (
            builder.shuffle_vector(builder.insert_element(nothing, number, ir.IntType(32)(0)), nothing, zeros)
            for number in numbers
        )
        i = ir.Constant(lanes, [lane(i) for i in range(_RUN)])
        places = builder.add(begin, builder.and_(builder.add(start, i), mask))
        data = context.make_array(signature.args[0])(context, builder, array).data
        builder.store(places, builder.bitcast(builder.gep(data, [at]), lanes.as_pointer()), align=lane.width // 8)
        return context.get_dummy_value()

    return nb.types.void(x, at, begin, start, mask), build


_pointer, _plus, _round, _shuffled, _write_run = (
    nb.extending.intrinsic(build)
    for build in (_build_pointer, _build_plus, _build_round, _build_shuffled, _build_write_run)
)
