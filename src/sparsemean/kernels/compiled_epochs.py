"""The numba twins of ``epochs``; only ``kernels.twin`` imports this file, at the first call."""

# As in ``compiled``, whose comments say how a tile is drawn and why in lanes of 16 bits. What is imported from there is
# the sampler, whose results are what docs/sampling.md says for ever: numba's cache on disk would not see it change.
#
# What is unscheduled of a tile is a list of gaps, in order, from which each round cuts its run. Where a round sends
# much of a tile, all places of the tile are listed, _RUN at a time, and looked up; where it sends little, the hand of
# each place is found by a multiplication. That takes about as long as memory takes for the tile of the vector whose
# values are wanted: they are asked for ahead, a quarter between every two steps of the draw.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from sparsemean._types import Array
from sparsemean.kernels.compiled import (
    _LANES,
    _RUN,
    _addresses,
    _below,
    _bits,
    _drawn_word,
    _padded,
    _place,
    _plus,
    _Prepared,
    _prepared,
    _room,
    _run_starts,
    _shuffle_words,
    _view,
    _walk,
    _word,
    _write_hands,
    _write_run,
)
from sparsemean.kernels.epochs import RETRY, ROUND, TURN
from sparsemean.kernels.jit import entry as _entry
from sparsemean.kernels.jit import inlined as _inlined
from sparsemean.kernels.jit import inner as _inner
from sparsemean.kernels.jit import nb
from sparsemean.kernels.sample import STRIDE, Sample

_LISTED = 6  # bits: from this share of a tile on, all its places are listed


def schedule(
    own: tuple[int, int], number: int, tile: int, left: Array, begin: Array, end: Array
) -> tuple[Array, Array]:
    """See ``schedule_numpy``."""
    tiles, width = begin.shape
    new = np.empty((2, tiles, width + len(left) - 1), begin.dtype)
    used = _schedule(np.uint64(own[0]), np.uint64(own[1]), number, tile, np.ascontiguousarray(left), begin, end, new)
    return new[0, :, :used].copy(), new[1, :, :used].copy()


def send(
    first: Sample,
    own: tuple[int, int],
    number: int,
    tile: int,
    counts: Array,
    begin: Array,
    end: Array,
    of_u: Array,
    of_s: Array,
) -> None:
    """See ``send_numpy``."""
    nothing = np.empty(0, np.float32)
    _sent(first, own, number, tile, counts, begin, end, of_u, of_s, (np.uint64(0), nothing, nothing, nothing))


def send_gathered(
    first: Sample,
    own: tuple[int, int],
    number: int,
    counts: Array,
    begin: Array,
    end: Array,
    of_u: Array,
    of_s: Array,
    vector: Array,
    values_u: Array,
    values_s: Array,
) -> None:
    """See ``send_gathered_numpy``."""
    vector = np.require(vector, requirements=("C", "A"))
    (address,), like = _addresses([vector], first.dim)
    _sent(first, own, number, 0, counts, begin, end, of_u, of_s, (address, like, values_u, values_s))


def _sent(
    first: Sample,
    own: tuple[int, int],
    number: int,
    tile: int,
    counts: Array,
    begin: Array,
    end: Array,
    of_u: Array,
    of_s: Array,
    gathered: Any,
) -> None:
    stream = np.uint64(own[0]), np.uint64(own[1])
    room, hands = _room(first), first.size // first.hand if first.hand else 0
    more = np.empty_like(room[0]), np.empty((2, hands), np.uint32), np.empty(hands, np.uint32)
    _send(tuple(first), stream, number, tile, counts, begin, end, of_u, of_s, gathered, room, more)


@_entry
def _schedule(a: Any, b: Any, number: int, tile: int, left: Array, begin: Array, end: Array, new: Array) -> int:
    """The new gaps of all tiles; returns how many columns of ``new`` are used."""
    most = 0
    for t in range(begin.shape[0]):
        low, high, m = new[0, t], new[1, t], begin[t, -1]
        gaps = 0
        while begin[t, gaps] < m:
            low[gaps], high[gaps] = begin[t, gaps], end[t, gaps]
            gaps += 1
        for j in range(left.shape[0] - 1):
            u, count = left[j, t], left[j, t] - left[j + 1, t]
            if count:
                o = _rotation(u, a, b, number + j, tile + t, 0)
                over = max(o + count - u, 0)
                gaps = _cut(low, high, gaps, o, count - over)
                gaps = _cut(low, high, gaps, 0, over)
        low[gaps:], high[gaps:] = m, m
        most = max(most, gaps)
    return most + 1


@_inlined
def _cut(low: Array, high: Array, gaps: int, o: int, count: int) -> int:
    """Take ``count`` places out of the gaps, from number o on; returns how many gaps there are then."""
    if count == 0:
        return gaps
    i = 0
    while o >= _span(low, high, i):
        o -= _span(low, high, i)
        i += 1
    keep, rest = i, _span(low, high, i) - o
    if o and count < rest:  # out of the middle of a gap
        for g in range(gaps, i, -1):
            low[g], high[g] = low[g - 1], high[g - 1]
        high[i] = low[i] + o
        low[i + 1] += o + count
        return gaps + 1
    if o:
        high[i] = low[i] + o
        count -= rest
        keep = i = i + 1
    while i < gaps and count >= _span(low, high, i):
        count -= _span(low, high, i)
        i += 1
    if count:
        low[i] += count
    if i > keep:
        for g in range(i, gaps):
            low[keep + g - i], high[keep + g - i] = low[g], high[g]
    return gaps - i + keep


@_inner
def _span(low: Array, high: Array, i: int) -> Any:
    """How many places a gap has; unsigned numbers less one another would be uint64."""
    return np.int64(high[i]) - np.int64(low[i])


@_entry
def _send(
    drawn: Any,
    own: Any,
    number: int,
    tile: int,
    counts: Array,
    begin: Array,
    end: Array,
    of_u: Array,
    of_s: Array,
    gathered: Any,
    room: Any,
    more: Any,
) -> None:
    """Within ``room`` lie the places of U, then those of S: first the others, then those of the epoch's first round.

    ``gathered`` is the address and type of the vector whose values there are wanted, and where they go; 0: none are.
    """
    prepared, (x, draws, hands), (vector, like, values_u, values_s) = _prepared(drawn), room, gathered
    at_u, at_s = 0, 0
    for t in range(begin.shape[0]):
        left, c, f = counts[0, t], counts[1, t], counts[2, t]
        if c + f == 0:
            continue
        start = (tile + t) * prepared.size
        m = min(prepared.size, prepared.dim - start)
        taken = _place(prepared, tile + t + 1) - _place(prepared, tile + t)
        here = _view(vector, like, start, m if vector else 0)
        wanted = here[: here.size if (c + f) * 16 >= m else 0]
        _fetch(wanted, 0)
        if c:
            o = _rotation(left, own[0], own[1], number, tile + t, 0)
            over = max(o + c - left, 0)
            _write_gaps(x, begin[t], end[t], o, c - over, taken)
            _write_gaps(x[c - over :], begin[t], end[t], 0, over, taken)
        mine, spacing = 0, _spacing(0, 1, 1)
        if f:
            s = m - left
            spacing = _spacing(_rotation(s, own[0], own[1], number, tile + t, 1), s, f)
            mine = min(_spaced_before(spacing, taken), f)
            _write_scheduled(x[c:], begin[t], end[t], spacing, mine, taken)
        others = c + f - mine
        _fetch(wanted, 1)
        _turn_columns(x, others, m - taken, m, _drawn_word(own[0], own[1], np.uint64(tile + t + 1)))
        _write_spaced(x[others:], spacing, 0, mine, 0)
        _fetch(wanted, 2)
        _place_in_hands(x, hands, more, prepared, tile + t, m, taken, others, c + f)
        _fetch(wanted, 3)
        w = prepared.w if m == prepared.size else _bits(m - 1)
        words = _shuffle_words(m, w)
        for r in range(words):
            draws[r] = _word(prepared, np.uint64(STRIDE * (tile + t) + r))
        _walk(x, draws, words, m, w, c + f)
        _copy(of_u[at_u:], x, c)
        _copy(of_s[at_s:], x[others:], mine)
        _copy(of_s[at_s + mine :], x[c:], f - mine)
        if vector:
            _look_up_in(values_u[at_u:], here, of_u[at_u : at_u + c])
            _look_up_in(values_s[at_s:], here, of_s[at_s : at_s + f])
        at_u, at_s = at_u + c, at_s + f


@_inlined
def _fetch(array: Array, quarter: int) -> None:
    """Begin to read a quarter of a tile into the second-level cache, while its coordinates are still being drawn."""
    line = 64 // array.itemsize
    size = array.size // 4 // line * line
    for j in range(quarter * size, array.size if quarter == 3 else quarter * size + size, line):
        _prefetch(array, j)


@_inlined
def _look_up_in(out: Array, array: Array, places: Array) -> None:
    """out[i] = array[places[i]]."""
    for i in range(places.size):
        out[i] = array[places[i]]


@_inlined
def _copy(out: Array, x: Array, count: int) -> None:
    """out[i] = x[i] for i < count."""
    for i in range(count):
        out[i] = x[i]


@_inlined
def _write_gaps(x: Array, begin: Array, end: Array, o: int, count: int, taken: int) -> None:
    """``count`` of the unscheduled places from number o on, less ``taken``; what follows in x may be written over."""
    lane = x.dtype.type
    i, at, whole = 0, 0, lane(-1)
    while at < count:
        span = _span(begin, end, i)
        if o < span:
            some, place, t = min(span - o, count - at), begin[i] + o - taken, 0
            while t < some:
                _write_run(x, at + t, lane(0), lane(place + t), whole)
                t += _RUN
            at += some
            o = 0
        else:
            o -= span
        i += 1


class _Spacing(NamedTuple):
    """The numbers ⌊(o + i·s)/f⌋ for i < f.

    Attributes
    ----------
    o, s, f
        As above: o < s, and f ≤ s.
    by_s, by_f
        ⌊2⁴⁸/s⌋ + 1 and ⌊2⁴⁸/f⌋ + 1, which divide numbers below 2⁴⁸/s and 2⁴⁸/f by a multiplication; 0 if s > 2¹⁵.
    """

    o: int
    s: int
    f: int
    by_s: Any
    by_f: Any


@_inner
def _spacing(o: int, s: int, f: int) -> _Spacing:
    """With the factors, where they are exact."""
    small = s <= 1 << 15
    by_s, by_f = np.uint64((1 << 48) // s + 1), np.uint64((1 << 48) // f + 1)
    return _Spacing(o, s, f, by_s if small else np.uint64(0), by_f if small else np.uint64(0))


@_inner
def _spaced(spacing: _Spacing, i: int) -> Any:
    """Number i."""
    if spacing.by_f:
        return np.int64((np.uint64(spacing.o + i * spacing.s) * spacing.by_f) >> np.uint64(48))
    return (spacing.o + i * spacing.s) // spacing.f


@_inner
def _spaced_before(spacing: _Spacing, number: int) -> Any:
    """How many of them, if there were no end to i, are below a number up to s."""
    above = max(number * spacing.f - spacing.o + spacing.s - 1, 0)
    if spacing.by_s:
        return np.int64((np.uint64(above) * spacing.by_s) >> np.uint64(48))
    return above // spacing.s


@_inlined
def _write_spaced(x: Array, spacing: _Spacing, first: int, last: int, more: int) -> None:
    """Those of first ≤ i < last, and ``more`` added to each; what follows in x may be written over."""
    if spacing.by_f:
        start, step = np.uint64(spacing.o + first * spacing.s) * spacing.by_f, np.uint64(spacing.s) * spacing.by_f
        add = np.uint64(more)
        for i in range(_padded(last - first, _RUN)):
            x[i] = ((start + np.uint64(i) * step) >> np.uint64(48)) + add
    else:
        for i in range(first, last):
            x[i - first] = _spaced(spacing, i) + more


@_inlined
def _write_scheduled(x: Array, begin: Array, end: Array, spacing: _Spacing, i: int, taken: int) -> None:
    """The scheduled places of these numbers from i on, less ``taken``."""
    gap, z, at = 0, 0, 0  # z unscheduled places lie before the gap
    while i < spacing.f:
        number = _spaced(spacing, i)
        while number >= begin[gap] - z:
            z += _span(begin, end, gap)
            gap += 1
        last = min(_spaced_before(spacing, begin[gap] - z), spacing.f)
        _write_spaced(x[at:], spacing, i, last, z - taken)
        at, i = at + last - i, last


@_inlined
def _turn_columns(x: Array, count: int, u: int, m: int, word: Any) -> None:
    """See ``epochs.turned``."""
    lane, w = x.dtype.type, _bits(m - 1) // 2
    full, rest, turn = lane(u >> w), lane(u - (u >> w << w)), lane(word & np.uint64(0xFFFF))
    for i in range(_padded(count, _LANES)):
        x[i] = _turned(x[i], turn, full, rest, lane(w))


@_inlined
def _place_in_hands(
    x: Array, hands: Array, more: Any, prepared: _Prepared, tile: int, m: int, taken: int, others: int, count: int
) -> None:
    """A node's places as places of the tile's walk; see ``epochs.tile_places``."""
    if not prepared.hand:
        o = _tile_turn(prepared, tile, m)
        _add_modulo(x[:others], (o + taken) % m, m)
        _add_modulo(x[others:count], o, m)
        return
    every, rest, ends = more
    starts, counts, all_hands = hands[0], hands[1], (m + prepared.hand - 1) >> prepared.v
    _run_starts(hands, prepared, tile, m)
    for h in range(all_hands):  # the others of a hand follow its run
        rest[0, h] = starts[h] + counts[h]
        rest[1, h] = min(prepared.hand, m - h * prepared.hand) - counts[h]
    if count > m >> _LISTED:  # then it takes less time to list all places
        _write_hands(every, starts, counts, prepared, m)
        _write_hands(every[taken:], rest[0], rest[1], prepared, m)
        _look_up(x[:others], every[taken:])
        _look_up(x[others:count], every)
    else:
        left = (prepared.own + tile * prepared.r) % prepared.dim
        _find(x[:others], rest, ends, prepared, m, left, prepared.hand * (prepared.dim - prepared.k))
        _find(x[others:count], hands, ends, prepared, m, prepared.dim - 1 - left, prepared.hand * prepared.k)


@_inlined
def _look_up(x: Array, table: Array) -> None:
    """x[i] = table[x[i]]."""
    for i in range(x.size):
        x[i] = table[x[i]]


@_inner
def _find(x: Array, runs: Array, ends: Array, prepared: _Prepared, m: int, b: int, c: int) -> None:
    """Numbers within the runs of all hands, as places. Number y is in hand ⌊(dim·y + b)/c⌋."""
    if x.size == 0:
        return
    end, hand, short = 0, prepared.hand, m & (prepared.hand - 1)
    for j in range((m + hand - 1) >> prepared.v):
        end += int(runs[1, j])
        ends[j] = end
    factor, summand = np.uint64((prepared.dim << 22) // c), np.uint64((b << 22) // c)
    for i in range(x.size):
        y = np.uint64(x[i])
        h = (y * factor + summand) >> np.uint64(22)  # one too low at most, as y < 2²⁰
        h += np.uint64(y >= ends[h])
        number = np.int64(y) - np.int64(ends[h]) + np.int64(runs[1, h]) + np.int64(runs[0, h])
        full = not short or h < np.uint64(m >> prepared.v)
        x[i] = np.int64(h) * hand + (number & (hand - 1) if full else number % short)


@_inlined
def _add_modulo(x: Array, o: int, m: int) -> None:
    """x[i] = (x[i] + o) mod m."""
    lane = x.dtype.type
    if m & (m - 1) == 0:
        for i in range(x.size):
            x[i] = _plus(x[i], lane(o)) & lane(m - 1)
    else:
        for i in range(x.size):
            x[i] = (o + x[i]) % m


@_inner
def _rotation(bound: int, a: Any, b: Any, number: int, tile: int, of_s: int) -> Any:
    """See ``epochs.rotation``."""
    index, top = np.uint64((number << ROUND) + 2 * tile + of_s + 1), np.uint64(bound)
    while True:
        word = _drawn_word(a, b, index)
        low = word % top
        if word - low <= np.uint64(0) - top:
            return np.int64(low)
        index += np.uint64(1 << RETRY)


@_inner
def _tile_turn(prepared: _Prepared, tile: int, m: int) -> Any:
    """By how many places a tile of m is turned in a sample that stands alone."""
    w = prepared.w if m == prepared.size else _bits(m - 1)
    return _below(m, w, prepared, np.uint64(STRIDE * tile + _shuffle_words(m, w)))


def _build_turned(context: Any, x: Any, turn: Any, full: Any, rest: Any, w: Any) -> Any:
    """``epochs.turned`` in the type of x, 16 or 32 bits: columns of ``full`` rows, the first ``rest`` of one more."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, turn, full, rest, w = arguments
        lane, wide = x.type, ir.IntType(64)
        column = builder.sub(x, builder.shl(builder.lshr(x, w), w))
        height = builder.add(full, builder.zext(builder.icmp_unsigned("<", column, rest), lane))
        share = builder.and_(builder.mul(column, turn), lane((1 << TURN) - 1))
        turns = builder.mul(builder.zext(share, wide), builder.zext(height, wide))
        row = builder.add(builder.lshr(x, w), builder.trunc(builder.lshr(turns, wide(TURN)), lane))
        less = builder.sub(row, height)
        row = builder.select(builder.icmp_unsigned("<", row, height), row, less)
        return builder.add(builder.shl(row, w), column)

    return x(x, x, x, x, x), build


def _build_prefetch(context: Any, array: Any, j: Any) -> Any:
    """Begin to read the cache line of array[j], to be kept in the second-level cache."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(fetch, [address, number(0), number(2), number(1)])  # to be read; locality of 0 to 3; data
        return context.get_dummy_value()

    return nb.types.void(array, j), build


_turned, _prefetch = (nb.extending.intrinsic(build) for build in (_build_turned, _build_prefetch))
