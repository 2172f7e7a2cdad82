"""Rounds of an epoch after its first: which places of a tile are unscheduled, and which are sent (docs/sampling.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from sparsemean._types import Floats, Ints, Words
from sparsemean.kernels.hands import runs, tile_hands
from sparsemean.kernels.sample import STRIDE, AnyInts, Sample, from_tile, permuted, places, places_of, shuffle_words
from sparsemean.kernels.stream import below as uniform
from sparsemean.kernels.stream import stream_index, stream_word
from sparsemean.kernels.tiled import Tiled
from sparsemean.kernels.twin import EPOCHS, twin

RETRY, ROUND = 48, 24  # bits: where in a stream the next try begins, and where the words of the next round
TURN = 16  # bits of the word that turns the columns of a tile
_AT_ONCE = 64  # rounds that are gone through together, so that the memory they take does not grow with their number
_CHUNK = 1 << 16  # coordinates drawn at a time, so that temporaries stay in the cache


class Epoch(NamedTuple):
    """What determines the draws of a node in an epoch.

    Attributes
    ----------
    first
        The sample of its first round.
    own
        Two words, which determine the node's stream of rotations.
    offsets
        The same for the stream of offsets, by which counts are rounded up or down.
    """

    first: Sample
    own: tuple[int, int]
    offsets: tuple[int, int]

    @staticmethod
    def keyed(digest: bytes, first: Sample) -> Epoch:
        """The epoch of a key with this digest."""
        a, b, c, d = np.frombuffer(digest, "<u8").tolist()
        return Epoch(first, (a, b), (c, d))


class Gaps(NamedTuple):
    """The unscheduled places of some tiles, one after another.

    Attributes
    ----------
    tile
        Number of the first of them.
    rounds
        How many rounds after the epoch's first have been scheduled.
    below
        How many coordinates of the vector are unscheduled before each tile, and before the end of the last.
    begin, end
        A row for each tile: its unscheduled places are [begin[i], end[i]) for all i, ascending. Rows are filled up with
        empty ones that stand at the end of the tile; there is at least one.
    """

    tile: int
    rounds: int
    below: Ints
    begin: AnyInts
    end: AnyInts

    @property
    def nbytes(self) -> int:
        """Memory of the arrays."""
        return self.below.nbytes + self.begin.nbytes + self.end.nbytes


def first_gaps(first: Sample, tile: int, last: int) -> Gaps:
    """The tiles [tile, last) after the first round: the places of the node's own coordinates come first."""
    ends, at = tile_ends(first, tile, last), places(first, tile, last)
    m = np.diff(ends)
    rows = np.array([[np.diff(at), m], [m, m]], np.uint16 if first.size < 1 << 16 else np.int32)
    begin, end = np.ascontiguousarray(rows.transpose(0, 2, 1))
    return Gaps(tile, 0, ends - at, begin, end)


def later_gaps(epoch: Epoch, gaps: Gaps, scheduled: Sequence[int]) -> Gaps:
    """The gaps after all these rounds, of which the first ``gaps.rounds`` are behind; so many places each."""
    while gaps.rounds < len(scheduled):
        some = np.array(scheduled[gaps.rounds : gaps.rounds + _AT_ONCE], np.int64)
        totals = epoch.first.dim - epoch.first.k - sum(scheduled[: gaps.rounds]) - np.cumsum(some) + some
        offs = fair(totals, epoch.offsets, stream_index(0, 2 * some.size)[::2] + np.uint64(2 * gaps.rounds))
        below = np.empty((some.size + 1, gaps.below.size), np.int64)
        below[0] = gaps.below
        for j, (off, r, total) in enumerate(zip(offs.tolist(), some.tolist(), totals.tolist(), strict=True)):
            below[j + 1] = below[j] - share(off, r, total, below[j])
        begin, end = schedule(epoch.own, gaps.rounds + 1, gaps.tile, np.diff(below), gaps.begin, gaps.end)
        gaps = Gaps(gaps.tile, gaps.rounds + some.size, below[-1].copy(), begin, end)
    return gaps


def next_sent(epoch: Epoch, gaps: Gaps, unscheduled: int, r_u: int, r_s: int) -> tuple[Tiled, Tiled]:
    """The coordinates of the next round in these tiles, from the first tile on: those of U and those of S.

    Of the whole vector it sends r_u of U and r_s of S; ``unscheduled`` is |U|.
    """
    counts, found_u, found_s = _next_counts(epoch, gaps, unscheduled, r_u, r_s)
    at = gaps.rounds + 1, gaps.tile, counts, gaps.begin, gaps.end
    send(epoch.first, epoch.own, *at, found_u.places, found_s.places)
    return found_u, found_s


def next_gathered(
    epoch: Epoch, gaps: Gaps, unscheduled: int, r_u: int, r_s: int, vector: Floats
) -> tuple[tuple[Tiled, Floats], tuple[Tiled, Floats]]:
    """The same of all tiles, with the values of a vector at these coordinates."""
    counts, found_u, found_s = _next_counts(epoch, gaps, unscheduled, r_u, r_s)
    of_u, of_s = np.empty(found_u.k, vector.dtype), np.empty(found_s.k, vector.dtype)
    at = gaps.rounds + 1, counts, gaps.begin, gaps.end
    send_gathered(epoch.first, epoch.own, *at, found_u.places, found_s.places, vector, of_u, of_s)
    return (found_u, of_u), (found_s, of_s)


def _next_counts(epoch: Epoch, gaps: Gaps, unscheduled: int, r_u: int, r_s: int) -> tuple[Ints, Tiled, Tiled]:
    """``counts`` of ``send_numpy``, and room for the coordinates."""
    dim, j = epoch.first.dim, gaps.rounds
    both = np.array([unscheduled, dim - unscheduled])
    off_u, off_s = fair(both, epoch.offsets, stream_index(2 * j, 2)).tolist()
    done = tile_ends(epoch.first, gaps.tile, gaps.tile + len(gaps.begin)) - gaps.below
    of_u, of_s = share(off_u, r_u, unscheduled, gaps.below), share(off_s, r_s, dim - unscheduled, done)
    counts = np.diff(np.array([gaps.below, of_u, of_s]))
    _, u, s = counts
    return counts, Tiled.empty(epoch.first.size, u), Tiled.empty(epoch.first.size, s)


def schedule_numpy(
    own: tuple[int, int], number: int, tile: int, left: Ints, begin: AnyInts, end: AnyInts
) -> tuple[AnyInts, AnyInts]:
    """``begin`` and ``end`` of ``Gaps`` after some rounds more.

    Parameters
    ----------
    own
        The node's stream of rotations.
    number
        Of the first of these rounds, from 1 on.
    tile
        Number of the first tile.
    left
        How many places of each tile are unscheduled before each of these rounds, and after the last.
    begin, end
        Before them.
    """
    # Scheduled places are arcs, one before each gap. The run of a round is one more; what goes round the end of the
    # tile is added to the first. z is how many unscheduled places come before an arc.
    rounds, (tiles, width) = len(left) - 1, begin.shape
    z, length = np.zeros((2, width + rounds, tiles), np.int32)
    np.cumsum((end - begin)[:, :-1].T, axis=0, dtype=np.int32, out=z[1:width])
    length[:width] = begin.T
    length[1:width] -= end[:, :-1].T
    all_tiles = np.arange(tile, tile + tiles)
    for j in range(rounds):
        u, c = left[j].astype(np.int32), (left[j] - left[j + 1]).astype(np.int32)
        o = np.where(c > 0, rotation(left[j], own, number + j, all_tiles), 0).astype(np.int32)
        over = np.maximum(o + c - u, 0)
        arcs = z[: width + j]
        arcs -= np.clip(arcs - o, 0, c - over) + over
        np.maximum(arcs, 0, out=arcs)
        z[width + j], length[width + j] = o - over, c - over
        length[0] += over
    order = np.argsort(z, axis=0, kind="stable")
    z = np.take_along_axis(z, order, 0).T
    done = np.cumsum(np.take_along_axis(length, order, 0), axis=0, dtype=np.int32).T
    last = np.diff(z, append=-1) != 0  # of the arcs that touch each other
    m = begin[:, -1:].astype(np.int32)
    both = np.array([z + done, np.append(z[:, 1:] + done[:, :-1], m, axis=1)])
    both = np.sort(np.where(last, both, m)).astype(begin.dtype)
    wide = int(last.sum(axis=1).max(initial=1))
    return np.ascontiguousarray(both[0, :, :wide]), np.ascontiguousarray(both[1, :, :wide])


schedule = twin(schedule_numpy, "schedule", EPOCHS, values=lambda own, number, tile, left, begin, end: left.size)


def send_numpy(
    first: Sample,
    own: tuple[int, int],
    number: int,
    tile: int,
    counts: Ints,
    begin: AnyInts,
    end: AnyInts,
    of_u: AnyInts,
    of_s: AnyInts,
) -> None:
    """Write the coordinates of U and of S that a round sends, tile by tile, as numbers within their tiles.

    Parameters
    ----------
    first
        The sample of the epoch's first round.
    own, number, tile, begin, end
        As in ``schedule_numpy``, before this round.
    counts
        Of each tile, how many places are unscheduled, how many of them are sent, and how many of the others.
    of_u, of_s
        Of exactly so many coordinates.
    """
    size, full = first.size, max(first.dim // first.size - tile, 0)
    at_u, at_s = (np.append(0, np.cumsum(each)) for each in counts[1:])
    busy = np.flatnonzero(counts[1, :full] + counts[2, :full])
    rows = max(1, _CHUNK // (size * first.k // first.dim + 1))
    parts = [(busy[i : i + rows], size) for i in range(0, busy.size, rows)]
    if full < counts.shape[1] and counts[1:, full].any():
        parts.append((np.array([full]), first.dim % size))
    for some, m in parts:
        span_u, span_s = (slice(at[some[0]], at[some[-1] + 1]) for at in (at_u, at_s))
        chosen = chosen_places(own, number, tile + some, counts[:, some], begin[some], end[some])
        of_u[span_u], of_s[span_s] = _walked(first, own, tile + some, m, counts[1:, some], chosen)


send = twin(send_numpy, "send", EPOCHS, values=lambda *args: args[-1].size + args[-2].size)


def send_gathered_numpy(
    first: Sample,
    own: tuple[int, int],
    number: int,
    counts: Ints,
    begin: AnyInts,
    end: AnyInts,
    of_u: AnyInts,
    of_s: AnyInts,
    vector: Floats,
    values_u: Floats,
    values_s: Floats,
) -> None:
    """The same of all tiles, and the values of a vector at these coordinates."""
    send_numpy(first, own, number, 0, counts, begin, end, of_u, of_s)
    for each, within, values in zip(counts[1:], (of_u, of_s), (values_u, values_s), strict=True):
        values[:] = vector[np.repeat(np.arange(each.size) * first.size, each) + within]


send_gathered = twin(send_gathered_numpy, "send_gathered", EPOCHS, values=lambda *args: args[-1].size + args[-2].size)


def chosen_places(
    own: tuple[int, int], number: int, tiles: Ints, counts: Ints, begin: AnyInts, end: AnyInts
) -> tuple[Ints, Ints]:
    """The places of U and of S that a round sends of these tiles, one tile after another; arguments as above."""
    left, c, f = counts
    gaps = end.astype(np.int64) - begin
    z = np.cumsum(gaps, axis=1) - gaps
    done = begin - z  # scheduled places before each gap

    # U: of the unscheduled places numbers o, o + 1, … as far as there are any, and then from 0 on.
    o = rotation(left, own, number, tiles)
    over = np.maximum(o + c - left, 0)
    tail = _overlap(z, z + gaps, o[:, None], (o + c - over)[:, None])
    head = _overlap(z, z + gaps, np.zeros_like(z), over[:, None])
    ahead = (o - np.cumsum(c) + c)[:, None]  # from the number of a value in the list to that of an unscheduled place
    add = np.append(done + ahead, done + ahead - left[:, None], axis=1)
    of_u = np.repeat(add.ravel(), np.append(tail, head, axis=1).ravel())
    of_u += np.arange(of_u.size)

    # S: of the scheduled places numbers ⌊(o + i·s)/f⌋.
    s = begin[:, -1] - left
    o = rotation(s, own, number, tiles, 1)
    i = np.arange(int(f.sum())) - np.repeat(np.cumsum(f) - f, f)
    of_s: Ints = (np.repeat(o, f) + i * np.repeat(s, f)) // np.repeat(f, f)
    upto = np.clip(-((o[:, None] - done * f[:, None]) // np.maximum(s, 1)[:, None]), 0, f[:, None])
    of_s += np.repeat(z.ravel(), np.diff(upto, axis=1, prepend=0).ravel())
    return of_u, of_s


def _overlap(begin: Ints, end: Ints, low: Ints, high: Ints) -> Ints:
    """How much of [low, high) is in [begin, end)."""
    common: Ints = np.minimum(end, high) - np.maximum(begin, low)
    return np.maximum(common, 0)


def _walked(
    first: Sample, own: tuple[int, int], tiles: Ints, m: int, counts: Ints, chosen: tuple[Ints, Ints]
) -> list[Ints]:
    """What is at these places of these tiles of m, within the tile, of U and of S; counts are those of the places."""
    widths = counts.max(axis=1)
    used = np.concatenate([np.arange(w) < each[:, None] for w, each in zip(widths, counts, strict=True)], axis=1)
    p = np.zeros(used.shape, np.int32)
    halves = slice(widths[0]), slice(widths[0], None)
    for half, found in zip(halves, chosen, strict=True):
        p[:, half][used[:, half]] = found
    x = tile_places(first, own, tiles, m, p)
    words = stream_index(0, shuffle_words(m)) + (tiles * STRIDE).astype(np.uint64)[:, None]
    draws = stream_word(first, words)
    if m == first.size:
        y: Any = permuted(x.astype(np.uint32), draws, m)
    else:
        y = from_tile(draws[0], x[0], m)[None]
    return [y[:, half][used[:, half]] for half in halves]


def tile_places(first: Sample, own: tuple[int, int], tiles: Ints, m: int, p: npt.NDArray[np.int32]) -> Ints:
    """A node's places p, a row for each of these tiles of m, as places of the walk of the tile that all nodes share.

    Its places are those of its first draw, in their order, and then the others, turned and hand by hand.
    """
    taken = (places_of(first, tiles + 1) - places_of(first, tiles))[:, None]
    y = p - taken.astype(np.int32)
    mine = y < 0
    y = turned(y, m - taken.astype(np.int32), m, stream_word(own, tiles.astype(np.uint64))[:, None])
    if not first.hand:
        return (np.where(mine, p, y + taken) + tile_turns(first, tiles, m)[:, None]) % m
    hands = tile_hands(first, tiles, m)
    count, start = runs(hands, first.slot, first.slots)
    before = np.cumsum(count, axis=1) - count
    # left/dim of the next place has been taken up to the tile: before hand h lie ⌊(left + h·hand·k)/dim⌋ of the node's.
    dim, k, hand, each = first.dim, first.k, first.hand, y.astype(np.int64)
    left = ((first.own + tiles * (first.size * k % dim)) % dim)[:, None]
    h = np.where(mine, (p * np.int64(dim) + (dim - 1 - left)) // (hand * k), (each * dim + left) // (hand * (dim - k)))
    at = h + np.arange(len(tiles))[:, None] * count.shape[1]
    number = np.where(mine, p - before.ravel()[at], each - hand * h + (before + count).ravel()[at])
    found: Ints = hand * h + (start.ravel()[at] + number) % hands.width.ravel()[at]
    return found


def tile_turns(first: Sample, tiles: Ints, m: int) -> Ints:
    """By how many places tiles of m are turned in a sample that stands alone; a full one never rejects."""
    words = tiles * STRIDE + shuffle_words(m)
    if m < first.size:
        return np.array([uniform(m, first, index) for index in words.tolist()])
    return stream_word(first, words.astype(np.uint64)).astype(np.int64) & (m - 1)


def turned(y: npt.NDArray[np.int32], u: npt.NDArray[np.int32], m: int, words: Words) -> npt.NDArray[np.int32]:
    """A bijection of [0, u): in rows of about √m, every column is turned by another amount, by the bits of a word."""
    w = (m - 1).bit_length() // 2
    column = y & np.int32((1 << w) - 1)
    height = (u >> w) + (column < u - (u >> w << w))
    turn = column * (words & np.uint64((1 << TURN) - 1)).astype(np.int32) & np.int32((1 << TURN) - 1)
    row = (y >> w) + (turn * height >> TURN)
    row -= np.where(row >= height, height, 0)
    return (row << w) + column


def rotation(bound: Ints, own: tuple[int, int], number: int, tiles: Ints, of_s: int = 0) -> Ints:
    """Uniform in [0, bound) for each tile, in round ``number`` after the first; of U, or of S."""
    return fair(bound, own, ((number << ROUND) + 2 * tiles + of_s).astype(np.uint64))


def fair(bound: Ints, stream: Sequence[int], index: Words) -> Ints:
    """Uniform in [0, bound), by rejection; the next try is 2**48 words further on. 0 where the bound is."""
    top = np.maximum(bound, 1).astype(np.uint64)
    word = stream_word(stream, index)
    while (late := word - word % top > -top).any():  # beyond the last multiple of the bound
        index = index + (late.astype(np.uint64) << np.uint64(RETRY))
        word = stream_word(stream, index)
    return (word % top).astype(np.int64)


def share(off: int, r: int, total: int, below: Ints) -> Ints:
    """⌊(off + r·below)/total⌋ in int64, for off < total; r, below and total up to 2**40."""
    if (r + 1) * total < 1 << 62:
        return (off + r * below) // total
    high, low = below >> 20, below & 0xFFFFF
    whole, rest = np.divmod(r * high, total)
    found: Ints = (whole << 20) + (off + (rest << 20) + r * low) // total
    return found


def tile_ends(first: Sample, tile: int, last: int) -> Ints:
    """Where the tiles tile, …, last begin."""
    return np.minimum(np.arange(tile, last + 1) * first.size, first.dim)
