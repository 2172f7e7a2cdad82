"""The numba twins; ``kernels.choose`` imports this file at the first call, nobody else does.

They share one file because numba keeps what it compiled on disk until the file of the function that is called changes,
whatever becomes of the functions that it calls in turn. For the same reason only arrays, plain tuples and numbers are
passed into compiled code: the types are kept too, and one of ours could not be read again once it had another name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar, cast

import numba.extending
import numpy as np
import numpy.typing as npt

from sparsemean.kernels.fold import Batch, Totals
from sparsemean.kernels.sample import RANKED, STRIDE, Sample

nb: Any = numba  # typed in some releases only
Array = npt.NDArray[Any]
Function = TypeVar("Function", bound=Callable[..., Any])

_PART = 128  # blocks in one go of a thread, however many threads: sums over parts must not depend on them
_PIECE = 1 << 18  # coordinates in one go where there are no blocks
_LANES = 64  # drawn at a time, so that no rest of a loop is done one by one


def _inner(function: Function) -> Function:
    """Compiled together with who calls it."""
    return cast(Function, nb.njit(nogil=True, error_model="numpy")(function))


def _entry(function: Function) -> Function:
    """Compiled at the first call, kept on disk for the next process, run without the interpreter's lock."""
    try:
        return cast(Function, nb.njit(nogil=True, error_model="numpy", cache=True)(function))
    except RuntimeError:  # no folder can be written, as in a sealed container
        return _inner(function)


# --- what the library calls -----------------------------------------------------------------------


def scatter(sums: Array, counts: Array, coordinates: Array, y: Array) -> None:
    """See ``scatter_numpy``."""
    _scatter(sums, counts, coordinates, y)


def sample(drawn: Sample, first: int, last: int, out: Array) -> None:
    """See ``sample_numpy``."""
    _sample(tuple(drawn), first, last, out, _room(drawn.size))


def gather(drawn: Sample, vector: Array, out: Array) -> None:
    """See ``gather_numpy``."""
    vector = np.require(vector, requirements=("C", "A"))
    (address,), like = _addresses([vector], drawn.dim)
    _gather(tuple(drawn), drawn.blocks, address, like, out, _room(drawn.size))


def fold(totals: Totals, batch: Batch, threads: int = 1) -> None:
    """See ``fold_numpy``. A coordinate is in one part, and so in one thread: threads do not change a bit."""
    if not batch.samples:
        return
    drawn = batch.samples[0]
    if any(each[3:] != drawn[3:] for each in batch.samples):
        raise ValueError("the samples of a batch must be of one size")
    seeds = np.array([each[:3] for each in batch.samples], np.uint64)
    kept_alive = [np.require(values, requirements=("C", "A")) for values in batch.values]
    values, expected = _addresses(kept_alive, drawn.k), _addresses(batch.expected, drawn.dim)
    drawn_all = (seeds, *drawn[3:])

    def part(first: int) -> tuple[slice, Array, Array]:
        last = min(first + _PART, drawn.blocks)
        layers = _layers_between(batch.starts, first * drawn.size, last * drawn.size)
        shape = (len(batch.samples), totals.energy[layers].size)
        energy, fourths = np.zeros(shape), np.zeros(shape)
        how = np.ascontiguousarray(batch.weights[:, layers]), batch.starts[layers], float(batch.scale)
        own = totals._replace(energy=energy, fourths=fourths)
        _fold(tuple(own), drawn_all, values, expected, how, first, last, _room(drawn.size))
        return layers, energy, fourths

    # Sums per node, added one node after the other, so that how payloads are batched does not change a bit either.
    all_energy, all_fourths = np.zeros((2, len(batch.samples), totals.energy.size))
    with ThreadPoolExecutor(threads) as pool:  # Python's, since numba's own do not survive a fork
        for layers, energy, fourths in (pool.map if threads > 1 else map)(part, range(0, drawn.blocks, _PART)):
            all_energy[:, layers] += energy
            all_fourths[:, layers] += fourths
    for energy, fourths in zip(all_energy, all_fourths, strict=True):
        totals.energy[:] += energy
        totals.fourths[:] += fourths


def restore(stream: Sequence[int], codes: Array, steps: Array, group: int, levels: int, out: Array) -> None:
    """See ``restore_numpy``."""
    _restore(np.uint64(stream[0]), np.uint64(stream[1]), codes, steps, group, levels, out)


def power_sums(sums: Array, squares: Array, cubes: Array, begin: Array, size: int, starts: Array) -> Array:
    """See ``power_sums_numpy``. The pieces and the order of their sums do not depend on the threads."""
    ends = np.append(starts[1:], sums.size)
    pieces = [
        (layer, low, min(low + _PIECE, end))
        for layer, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
        for low in range(start, end, _PIECE)
    ]
    found = np.zeros((4, starts.size))
    parts = _spread(lambda piece: _power_sums(sums, squares, cubes, begin, size, piece[1], piece[2]), pieces)
    for (layer, *_), part in zip(pieces, parts, strict=True):
        found[:, layer] += part
    return found


def reweigh(factors: Array, counts: Array, sums: Array, out: Array) -> None:
    """See ``reweigh_numpy``."""
    pieces = [(low, min(low + _PIECE, sums.size)) for low in range(0, sums.size, _PIECE)]
    for _ in _spread(lambda piece: _reweigh(factors, counts, sums, out, piece[0], piece[1]), pieces):
        pass


def _spread(work: Callable[[Any], Any], pieces: Sequence[Any]) -> list[Any]:
    """The results in order, by all cores where there are pieces enough."""
    if len(pieces) < 4:
        return [work(piece) for piece in pieces]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, pieces))


def _layers_between(starts: Array, low: int, high: int) -> slice:
    """The layers that reach into the coordinates [low, high)."""
    return slice(int(np.searchsorted(starts, low, "right")) - 1, int(np.searchsorted(starts, high)))


def _room(size: int) -> tuple[Array, Array]:
    """Where a block is drawn, and its words. Sixteen bits a number where they suffice: a vector holds more of them."""
    return np.empty(size + _LANES, np.uint16 if size <= 1 << 16 else np.uint32), np.empty(RANKED, np.uint64)


def _addresses(arrays: Sequence[Array | None], size: int) -> tuple[Array, Array]:
    """Where arrays of one type lie, 0 for None, and an empty one of the type; the caller keeps them alive.

    Addresses, for numba compiles anew for each length of a tuple of arrays, and for arrays that are read-only.
    """
    given = [array for array in arrays if array is not None]
    like = np.empty(0, given[0].dtype if given else np.float64)
    if any(
        a.dtype != like.dtype or a.shape != (size,) or not (a.flags.c_contiguous and a.flags.aligned) for a in given
    ):
        raise ValueError(f"needed are contiguous arrays of {size} numbers each, all of type {like.dtype}")
    return np.array([0 if a is None else a.__array_interface__["data"][0] for a in arrays], np.uint64), like


# --- loops ----------------------------------------------------------------------------------------


@_entry
def _scatter(sums: Array, counts: Array, coordinates: Array, y: Array) -> None:
    for i in range(coordinates.size):
        sums[coordinates[i]] += y[i]
        counts[coordinates[i]] += 1


@_entry
def _restore(a: Any, b: Any, codes: Array, steps: Array, group: int, levels: int, out: Array) -> None:
    low = (1 - levels) / 2
    for pair in range((codes.size + 1) // 2):
        word = _mixed(_mixed(a + (np.uint64(pair) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)) ^ b)
        for half in range(2):
            i = 2 * pair + half
            if i < codes.size:
                uniform = (np.float64(word & np.uint64(0xFFFFFFFF)) + 0.5) * 2.0**-32
                out[i] = steps[i // group] * ((codes[i] + low) - (uniform - 0.5))
                word >>= np.uint64(32)


@_entry
def _power_sums(
    sums: Array, squares: Array, cubes: Array, begin: Array, size: int, low: int, high: int
) -> tuple[float, float, float, float]:
    s2, sp3, q2, qs2 = 0.0, 0.0, 0.0, 0.0
    for block in range(low // size, (high - 1) // size + 1):
        first, last, away = max(low, block * size), min(high, block * size + size), begin[block] - block * size
        if begin[block] < 0:
            for j in range(first, last):
                s2 += sums[j] * sums[j]
        else:
            for j in range(first, last):
                s, q = sums[j], squares[j + away]
                s2 += s * s
                sp3 += s * cubes[j + away]
                q2 += q * q
                qs2 += q * s * s
    return s2, sp3, q2, qs2


@_entry
def _reweigh(factors: Array, counts: Array, sums: Array, out: Array, low: int, high: int) -> None:
    for j in range(low, high):
        out[j] += factors[counts[j]] * sums[j]


@_entry
def _sample(drawn: Any, first: int, last: int, out: Array, room: Any) -> None:
    one, chosen = _one(*drawn), room[0]
    begin = _place(one, first)
    for block in range(first, last):
        at, count = _draw(one, block, room)
        here, start = out[at - begin : at - begin + count], block * one.size
        for t in range(count):
            here[t] = start + chosen[t]


@_entry
def _gather(drawn: Any, blocks: int, address: int, like: Array, out: Array, room: Any) -> None:
    one, chosen = _one(*drawn), room[0]
    for block in range(blocks):
        at, count = _draw(one, block, room)
        here, vector = out[at : at + count], _view(address, like, block * one.size, one.size)
        for t in range(count):
            here[t] = vector[chosen[t]]


@_entry
def _fold(totals: Any, drawn: Any, values: Any, expected: Any, how: Any, first: int, last: int, room: Any) -> None:
    """A block stays in the cache while what all nodes sent of it streams through."""
    all_sums, all_counts, energy, kept, all_squares, all_cubes, fourths = totals
    seeds, dim, k, size = drawn
    weights, starts, scale = how
    nodes, chosen, layer, sink = seeds.shape[0], room[0], np.empty(size, np.int64), np.empty(1)
    for block in range(first, last):
        start, end = block * size, min(block * size + size, dim)
        begin = kept[block] if energy.size else -1
        here = all_sums[start:end], all_counts[start:end], all_squares[max(begin, 0) :], all_cubes[max(begin, 0) :]
        wanted = nodes * (k * size // dim)
        sink[0] = _touch(here[0], wanted) + _touch(here[1], wanted)
        alone = _layers(starts, start, end, layer)
        for i in range(nodes):
            at, count = _draw(_one(seeds[i, 0], seeds[i, 1], np.int64(seeds[i, 2]), dim, k, size), block, room)
            sent = _view(values[0][i], values[1], at, count)
            known = _view(expected[0][i], expected[1], start, end - start if expected[0][i] else 0)
            if i == 0 or expected[0][i] != expected[0][i - 1]:
                sink[0] = _touch(known, count)
            if alone < 0:
                _add_layered(
                    here, begin >= 0, energy[i], fourths[i], chosen, count, sent, known, weights[i], layer, scale
                )
            elif weights[i, alone] > 0:
                square, fourth = _add(
                    here, energy.size > 0, begin >= 0, chosen, count, sent, known, weights[i, alone], scale
                )
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
    """One node's values of a block; returns the sums of their squares and of their fourth powers."""
    sums, counts, squares, cubes = here
    energy, fourth = 0.0, 0.0
    for t in range(count):
        j = chosen[t]
        y = weight * (scale * _residual(sent, known, t, j))
        sums[j] += y
        counts[j] += np.int32(1)
        if moments:
            square = y * y
            energy += square
            if powers:
                squares[j] += square
                cubes[j] += square * y
                fourth += square * square
    return energy, fourth


@_inner
def _add_layered(
    here: Any,
    powers: bool,
    energy: Array,
    fourths: Array,
    chosen: Array,
    count: int,
    sent: Array,
    known: Array,
    weights: Array,
    layer: Array,
    scale: float,
) -> None:
    """The same in a block of several layers: each value has the weight of its own."""
    sums, counts, squares, cubes = here
    for t in range(count):
        j = chosen[t]
        own = layer[j]
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
    return sent[t] - np.float64(known[j]) if known.size else np.float64(sent[t])


@_inner
def _touch(array: Array, wanted: int) -> float:
    """Reads an array into the cache in order, as memory is fastest, if most lines of it are wanted in any order."""
    total = 0.0
    if wanted * 16 >= array.size:
        for j in range(0, array.size, 64 // array.itemsize):
            total += array[j]
    return total


@_inner
def _layers(starts: Array, start: int, end: int, layer: Array) -> Any:
    """layer[j] of coordinate start + j; returns the layer if it is the same for all, else −1."""
    now = np.searchsorted(starts, start, side="right") - 1
    if now + 1 == starts.size or starts[now + 1] >= end:
        return now
    for j in range(end - start):
        while now + 1 < starts.size and starts[now + 1] <= start + j:
            now += 1
        layer[j] = now
    return -1


# --- one block of a sample (docs/sampling.md) -----------------------------------------------------


class _One(NamedTuple):
    """A sample with what all its blocks share: size·k = q·dim + r, and size = 2**w."""

    a: Any
    b: Any
    off: Any
    dim: int
    k: int
    size: int
    q: int
    r: int
    w: int


@_inner
def _one(a: Any, b: Any, off: Any, dim: int, k: int, size: int) -> _One:
    q = size * k // dim
    return _One(a, b, off, dim, k, size, q, size * k - q * dim, _bits(size - 1))


@_inner
def _place(one: _One, block: int) -> Any:
    """floor((off + min(block·size, dim)·k) / dim): where a block begins on the wire."""
    return one.k if block * one.size >= one.dim else block * one.q + (one.off + block * one.r) // one.dim


@_inner
def _draw(one: _One, block: int, room: Any) -> tuple[int, int]:
    """Where a block begins on the wire, and its count; chosen[i] = walk((i + o) mod m) in it for i < count."""
    x, draws = room
    at = _place(one, block)
    count = _place(one, block + 1) - at
    if count == 0:
        return at, count
    m = min(one.size, one.dim - block * one.size)
    w = one.w if m == one.size else _bits(m - 1)
    words = m if m <= RANKED else 2 + (48 + w - 1) // w
    start = np.uint64(STRIDE * block)
    for r in range(words):
        draws[r] = _word(one, start + np.uint64(r))
    o = _below(m, w, one, start + np.uint64(words))
    if m <= RANKED:
        _rank(x, draws, o, m)
    else:
        _shuffle(x, draws, words, o, m, w, (count + _LANES - 1) // _LANES * _LANES)
        if m < 1 << w:
            _walk_on(x, draws, words, m, w, count)
    return at, count


@_inner
def _rank(x: Array, draws: Array, o: int, m: int) -> None:
    for j in range(m):
        rank = 0
        for i in range(m):
            rank += draws[i] < draws[j]
        x[(rank - o) % m] = j


@_inner
def _shuffle(x: Array, draws: Array, rounds: int, o: int, m: int, w: int, count: int) -> None:
    lane = x.dtype.type
    for i in range(count):
        x[i] = _plus(lane(i), lane(o))
    for i in range(m - o, count):
        x[i] -= m
    for r in range(rounds):  # outside, so that the inner loop is one of vectors
        a, c, mask, shift = _constants(x, draws[r], r, w)
        for i in range(count):
            x[i] = _round(x[i], a, c, mask, shift)


@_inner
def _walk_on(x: Array, draws: Array, rounds: int, m: int, w: int, count: int) -> None:
    for i in range(count):
        while x[i] >= m:
            for r in range(rounds):
                a, c, mask, shift = _constants(x, draws[r], r, w)
                x[i] = _round(x[i], a, c, mask, shift)


@_inner
def _constants(x: Array, z: Any, r: int, w: int) -> tuple[Any, Any, Any, Any]:
    mask, lane = np.uint64((1 << w) - 1), x.dtype.type
    return lane(z & mask | np.uint64(1)), lane((z >> np.uint64(32)) & mask), lane(mask), lane((2 * w + 1) // 3 - r % 2)


@_inner
def _below(bound: int, w: int, one: _One, start: Any) -> Any:
    while True:
        low = np.int64(_word(one, start) & np.uint64((1 << w) - 1))
        if low < bound:
            return low
        start += np.uint64(1)


@_inner
def _bits(n: int) -> int:
    w = 0
    while n >> w:
        w += 1
    return w


@_inner
def _word(one: _One, index: Any) -> Any:
    return _mixed(_mixed(one.a + (index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)) ^ one.b)


@_inner
def _mixed(z: Any) -> Any:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# --- what numba has no words for ------------------------------------------------------------------


@_inner
def _view(address: Any, like: Array, start: int, size: int) -> Any:
    """The elements [start, start + size) of the array of this type that lies there."""
    return nb.carray(_pointer(address, like, start), size)


def _build_pointer(context: Any, address: Any, like: Any, start: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))
        return builder.gep(pointer, [arguments[2]])

    return nb.types.CPointer(like.dtype)(address, like, start), build


def _build_plus(context: Any, x: Any, o: Any) -> Any:
    """x + o in the type of x; numba would widen it to 64 bits, and a vector hold a quarter as many."""
    return x(x, x), lambda context, builder, signature, arguments: builder.add(*arguments)


def _build_round(context: Any, x: Any, a: Any, c: Any, mask: Any, shift: Any) -> Any:
    """y ^ (y >> shift), y = (x·a + c) & mask, in the type of x."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, a, c, mask, shift = arguments
        y = builder.and_(builder.add(builder.mul(x, a), c), mask)
        return builder.xor(y, builder.lshr(y, shift))

    return x(x, x, x, x, x), build


_pointer, _plus, _round = (nb.extending.intrinsic(build) for build in (_build_pointer, _build_plus, _build_round))
