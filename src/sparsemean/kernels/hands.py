"""Hands: along a balanced draw the order of the slots is dealt anew every few places (docs/sampling.md)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparsemean._types import Ints
from sparsemean.kernels.stream import stream_word

if TYPE_CHECKING:
    from sparsemean.kernels.sample import Sample

LONG = 1 << 15  # a vector beyond this has longer hands, since the scatter of its error averages out
TURNED, HALVES = 20, 22  # bits of a hand's word: so many turn it, and each half of the others shuffles its slots
# A factor for each half of the word, in each round: the fractional parts of the cube roots of 2, 3, …, 19, made odd.
ROUNDS = (
    (0x428A2F99, 0x71374491),
    (0xB5C0FBCF, 0xE9B5DBA5),
    (0x3956C25B, 0x59F111F1),
    (0x923F82A5, 0xAB1C5ED5),
)


def hand_size(dim: int, k: int, size: int) -> int:
    """Places in a hand: a power of two that divides the tile size and gives a slot 1.5 to 3 of them, 12 to 24 if long.

    >>> hand_size(784, 78, 4096), hand_size(2**22, 2**22 // 10, 4096), hand_size(2**22, 100, 4096)
    (16, 128, 4096)
    """
    return min(size, (1 << (3 * dim // (2 * k)).bit_length()) * (8 if dim > LONG else 1))


class Hands(NamedTuple):
    """What all slots have in common of the hands of some tiles of one size: arrays with a row for each tile.

    Attributes
    ----------
    begin, width
        First place of the hand within its tile, and how many it has.
    taken
        How many places all slots together have taken up to the end of a hand, modulo the number of slots.
    each, extra
        How many places of a hand each slot takes, and how many of the slots take one more.
    low, high
        The halves of the word that shuffles the slots.
    o
        By how many places the hand is turned.
    """

    begin: Any
    width: Any
    taken: Any
    each: Any
    extra: Any
    low: Any
    high: Any
    o: Any


def hands_of(sample: Sample, tiles: Ints, m: int) -> Hands:
    """The hands of these tiles of m coordinates; m is the tile size, or that of the last tile."""
    dim, slots, hand = sample.dim, sample.slots, sample.hand
    ends = np.append(np.arange(0, m, hand), m)
    # Up to a tile all slots together have taken ``before`` places, modulo their number, and left/dim of the next.
    before, left = np.divmod(sample.off + slots * (tiles * (sample.size * sample.k % dim) % dim), dim)
    more, rest = np.divmod(ends * sample.k, dim)
    taken = slots * more + (left[:, None] + slots * rest) // dim
    each, extra = np.divmod(np.diff(taken), slots)
    numbers = (tiles * (sample.size // hand))[:, None] + np.arange(ends.size - 1)
    words = stream_word((sample.hand_a, sample.hand_b), numbers.astype(np.uint64))
    o = (words & np.uint64(hand - 1)).astype(np.int64)
    if m % hand:
        o[:, -1] = sample.hand_o
    return Hands(
        begin=np.broadcast_to(ends[:-1], o.shape),
        width=np.broadcast_to(np.diff(ends), o.shape),
        taken=(before[:, None] + taken[:, 1:]) % slots,
        each=each,
        extra=extra,
        low=(words >> np.uint64(TURNED)).astype(np.int64) & ((1 << HALVES) - 1),
        high=(words >> np.uint64(TURNED + HALVES)).astype(np.int64),
        o=o,
    )


def runs(hands: Hands, slot: Any, slots: int) -> tuple[Any, Any]:
    """How many places of each hand a slot takes, and at which it starts; on arrays of NumPy or tensors of torch."""
    turn = (hands.taken + slot) % slots
    more = turn < hands.extra  # one of those that take one more, which come first
    size = hands.extra * more + (slots - hands.extra) * ~more
    count = hands.each + more
    place = shuffled(turn - hands.extra * ~more, size, hands.low, hands.high)
    return count, count * place + (hands.each + 1) * hands.extra * ~more + hands.o


def shuffled(x: Any, size: Any, low: Any, high: Any) -> Any:
    """A keyed bijection of [0, size): swap-or-not (Hoang, Morris and Rogaway 2012), on numbers, arrays or tensors.

    A round pairs x with pivot − x, modulo size, and swaps the two if a bit says so that depends on the pair alone.
    """
    for a, b in ROUNDS:
        u = low * a & 0xFFFFFFFF
        pivot = (u + high * b & 0xFFFFFFFF) * size >> 32
        y = pivot - x
        y = y + size * (y < 0)
        larger = x + y + abs(x - y)  # twice the larger of the two
        x = x + ((u | 1) * (larger + 1) >> 31 & 1) * (y - x)
    return x


def dealt(sample: Sample, tiles: Ints, m: int) -> Ints:
    """The places within these tiles of m that a slot takes, hand after hand."""
    hands, counts, index = _index(sample, tiles, m)
    begin, width, o = (np.repeat(each.ravel(), counts) for each in (hands.begin, hands.width, hands.o))
    places: Ints = begin + (index + o) % width
    return places


def ranked(sample: Sample, tiles: Ints, m: int) -> tuple[Ints, Ints, Ints]:
    """The same places, with the rank of the slot among those that take each, from 0, and how many these are.

    The runs of all slots go round the hand without a gap: number t of all they take is place t mod width, round t div
    width.
    """
    hands, counts, index = _index(sample, tiles, m)
    total = sample.slots * hands.each + hands.extra
    begin, width, o, rounds, rest = (
        np.repeat(each.ravel(), counts)
        for each in (hands.begin, hands.width, hands.o, total // hands.width, total % hands.width)
    )
    places: Ints = begin + (index + o) % width
    senders: Ints = rounds + (index % width < rest)
    return places, index // width, senders


def _index(sample: Sample, tiles: Ints, m: int) -> tuple[Hands, Ints, Ints]:
    """The hands, how many places of each the slot takes, and which these are among all that slots take of the hand."""
    hands = tile_hands(sample, tiles, m)
    counts, starts = (each.ravel() for each in runs(hands, sample.slot, sample.slots))
    ends = np.cumsum(counts)
    first = np.repeat(starts - hands.o.ravel() - ends + counts, counts)
    return hands, counts, first + np.arange(ends[-1])


def tile_hands(sample: Sample, tiles: Ints, m: int) -> Hands:
    """``hands_of``, which are kept for short vectors."""
    if sample.dim <= LONG:
        return _kept(sample._replace(slot=0), tuple(tiles.tolist()), m)
    return hands_of(sample, tiles, m)


@lru_cache(maxsize=16)
def _kept(sample: Sample, tiles: tuple[int, ...], m: int) -> Hands:
    """Of short vectors they are kept, at most 16 MB: most often other slots of the same draw come next."""
    return hands_of(sample, np.array(tiles), m)
