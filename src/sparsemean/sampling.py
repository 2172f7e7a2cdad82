"""Which coordinates a node sends: (key, dim, k) → k distinct integers, the same everywhere.

Every coordinate is chosen with probability exactly k/dim, any 1 ≤ k ≤ dim ≤ 2**40.
Integers only, random access by blocks. The specification is docs/sampling.md; whatever
changes a result is a new ``VERSION``.
"""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsemean.errors import InvalidInput

VERSION = 1
MAX_DIM = 1 << 40

_LABEL = b"coordinates"
_STRIDE = 8  # words set aside for a block; only the last, short one may need more
_RANKED = 64  # a block up to this size is shuffled by ranking words, not by rounds
_CHUNK = 1 << 16  # coordinates in hand at once, so that the work stays in the cache
_KEPT = 1 << 16  # a sample up to this size is kept for the next call
_GOLDEN, _ALL = 0x9E3779B97F4A7C15, (1 << 64) - 1

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
Stream = tuple[int, int]  # the two key words of a stream of 64-bit words
_Z = TypeVar("_Z", int, NDArray[Any])  # a number, or an array of them


@dataclass(frozen=True, slots=True)
class Key:
    """What a sample depends on. ``node=None``: shared by all nodes; ``part``: 0 to 255.

    >>> Key(7, 0, "station-12").child(1)
    Key(seed=7, round=0, node='station-12', part=1)
    """

    seed: int
    round: int
    node: str | None
    part: int = 0

    def __post_init__(self) -> None:
        for name, bits in (("seed", 64), ("round", 63), ("part", 8)):
            value = _integer(name, getattr(self, name), 0, (1 << bits) - 1)
            object.__setattr__(self, name, value)
        _utf8(self.node)

    def shared(self) -> Key:
        """The key whose coordinates all nodes have in common."""
        return replace(self, node=None)

    def child(self, part: int) -> Key:
        """The key of one random part of the same payload."""
        return replace(self, part=part)

    def digest(self, label: bytes) -> bytes:
        """32 bytes, different whenever label, seed, round, part or node is."""
        return hashlib.blake2b(
            b"sparsemean"
            + bytes([VERSION, _integer("length of label", len(label), 0, 255)])
            + label
            + self.seed.to_bytes(8, "little")
            + self.round.to_bytes(8, "little")
            + bytes([self.part, self.node is not None])
            + _utf8(self.node),
            digest_size=32,
        ).digest()


def words(key: Key, label: bytes, count: int, start: int = 0) -> Words:
    """``count`` uniform 64-bit words of the stream ``label``, from position ``start``.

    >>> [hex(word) for word in words(Key(7, 0, "station-12"), b"dither", 2)]
    ['0x5a8bbb9bec8d1b0b', '0xc9e6346a3af3b8ee']
    """
    start = _integer("start", start, 0, 1 << 62)
    count = _integer("count", count, 0, 1 << 62)
    return _word(_streams(key, label)[0], _index(start, count))


def block_size(dim: int) -> int:
    """Coordinates per block: 4096, or more where that would make over 2**20 blocks.

    >>> block_size(784), block_size(2**32), block_size(2**40)
    (4096, 4096, 1048576)
    """
    dim = _integer("dim", dim, 1, MAX_DIM)
    return 1 << max(12, (dim - 1).bit_length() - 20)


def block_counts(key: Key, dim: int, k: int) -> Integers:
    """How many coordinates each block gives; they sum to k.

    >>> block_counts(Key(7, 0, "station-12"), 10_000, 999)
    array([409, 409, 181])
    """
    dim, k = _sizes(dim, k)
    size = block_size(dim)
    off = _below(dim, _streams(key, _LABEL)[1], 0)
    return np.diff(_before(off, dim, k, size, 0, -(-dim // size)))


def coordinates(key: Key, dim: int, k: int) -> Integers:
    """The k chosen coordinates, in block order: the order of the values on the wire.

    >>> coordinates(Key(7, 0, "station-12"), 784, 5)
    array([ 39, 326,  17, 548,  62])
    """
    dim, k = _sizes(dim, k)
    return _recent(key, dim, k) if k <= _KEPT else coordinates_between(key, dim, k, 0, dim)[0]


@lru_cache(maxsize=4)
def _recent(key: Key, dim: int, k: int) -> Integers:
    """Where node and server share a process, one draws right after the other; the draw is kept for it."""
    drawn, _ = coordinates_between(key, dim, k, 0, dim)
    drawn.flags.writeable = False
    return drawn


def coordinates_between(key: Key, dim: int, k: int, lo: int, hi: int) -> tuple[Integers, int]:
    """The chosen coordinates in [lo, hi), and the place of the first in the whole list.

    lo and hi are multiples of ``block_size(dim)``, or dim itself.

    >>> coordinates_between(Key(7, 0, "station-12"), 10_000, 8, 4096, 8192)
    (array([6683, 5586, 6810]), 3)
    """
    dim, k = _sizes(dim, k)
    size = block_size(dim)
    lo, hi = _integer("lo", lo, 0, dim), _integer("hi", hi, 0, dim)
    if lo > hi or any(end % size and end != dim for end in (lo, hi)):
        raise InvalidInput(
            f"[{lo}, {hi}) is not a range of blocks; give lo ≤ hi, each dim = {dim} or a multiple of {size}"
        )
    inside, counting = _streams(key, _LABEL)
    first, last, full = -(-lo // size), -(-hi // size), dim // size
    before = _before(_below(dim, counting, 0), dim, k, size, first, last)
    place, before = int(before[0]), before - before[0]
    counts = np.diff(before)
    found = np.empty(before[-1], np.int64)
    busy = np.flatnonzero(counts[: max(full - first, 0)])
    rows = max(1, _CHUNK // (size * k // dim + 1))
    for some in (busy[at : at + rows] for at in range(0, busy.size, rows)):
        span = slice(before[some[0]], before[some[-1] + 1])
        found[span] = _from_full_blocks(inside, first + some, counts[some], size)
    if first <= full < last and counts[-1]:
        m, start = dim - full * size, full * _STRIDE
        draws = _word(inside, _index(start, _draws(m)))
        o = _below(m, inside, start + _draws(m))
        found[before[-2] :] = _from_block(draws, o, int(counts[-1]), m) + full * size
    return found, place


def _before(off: int, dim: int, k: int, size: int, first: int, last: int) -> Integers:
    """floor((off + min(b * size, dim) * k) / dim) for b = first..last, all in int64."""
    b = np.arange(first, last + 1, dtype=np.int64)
    q, r = divmod(size * k, dim)
    return np.where(b * size >= dim, k, b * q + (off + b * r) // dim)


def _from_full_blocks(inside: Stream, blocks: Integers, counts: Integers, size: int) -> Integers:
    """The first counts[j] coordinates of every blocks[j], one block after another."""
    widest, rounds = int(counts.max()), _draws(size)
    starts = (blocks * _STRIDE).astype(np.uint64)
    draws: Words = _word(inside, starts[:, None] + _index(0, rounds + 1))
    order: Literal["C", "F"] = "C" if widest > len(blocks) else "F"  # the longer axis is the inner loop
    x = np.empty((len(blocks), widest), np.uint32, order)
    x[:] = np.arange(widest)
    x += draws[:, rounds:].astype(np.uint32)
    x &= np.uint32(size - 1)
    found = _permuted(x, draws, size) + blocks[:, None] * size
    if counts.min() == widest:
        return found.ravel()
    return found[np.arange(widest) < counts[:, None]]


def _from_block(draws: Words, o: int, count: int, m: int) -> Integers:
    """walk((i + o) mod m) for i < count, in a block of any size m."""
    x = (np.arange(count) + o) % m
    if m <= _RANKED:
        order: Integers = np.argsort(draws, kind="stable")
        return order[x]
    every = np.arange(1 << (m - 1).bit_length(), dtype=np.uint32)
    image = _permuted(every[None], draws[None], m)[0].astype(np.int64)
    y: Integers = image[x]
    while (late := np.flatnonzero(y >= m)).size:
        y[late] = image[y[late]]
    return y


def _permuted(x: NDArray[np.uint32], draws: Words, m: int) -> NDArray[np.uint32]:
    """x after the keyed bijection of [0, 2**w), in place; a row of draws for each row."""
    w = (m - 1).bit_length()
    mask = np.uint32((1 << w) - 1)
    a = draws.astype(np.uint32) & mask | np.uint32(1)
    c = (draws >> np.uint64(32)).astype(np.uint32) & mask
    for r in range(_draws(m)):
        x *= a[:, r : r + 1]  # mod 2**32 will do, since w ≤ 20 bits are kept
        x += c[:, r : r + 1]
        x &= mask
        x ^= x >> np.uint32((2 * w + 1) // 3 - r % 2)
    return x


def _draws(m: int) -> int:
    """Words that shuffle a block of m: one for each member, or one for each round."""
    return m if m <= _RANKED else 2 - (-48 // (m - 1).bit_length())


def _below(bound: int, stream: Stream, start: int) -> int:
    """Uniform in [0, bound): the first word from ``start`` whose low bits are below it."""
    mask = (1 << (bound - 1).bit_length()) - 1
    while (low := _word(stream, start) & mask) >= bound:
        start += 1
    return low


def _streams(key: Key, label: bytes) -> tuple[Stream, Stream]:
    digest = key.digest(label)
    a, b, c, d = (int.from_bytes(digest[i : i + 8], "little") for i in (0, 8, 16, 24))
    return (a, b), (c, d)


def _index(start: int, count: int) -> Words:
    return np.arange(count, dtype=np.uint64) + np.uint64(start)


def _word(stream: Stream, index: _Z) -> _Z:
    z = ((index + 1) * _GOLDEN + stream[0]) & _ALL
    return _mixed(_mixed(z) ^ stream[1])


def _mixed(z: _Z) -> _Z:
    """A bijection of the 64-bit words: the finaliser of splitmix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ALL
    mixed: _Z = z ^ (z >> 31)
    return mixed


def _sizes(dim: int, k: int) -> tuple[int, int]:
    dim = _integer("dim", dim, 1, MAX_DIM)
    return dim, _integer("k", k, 1, dim)


def _integer(name: str, value: Any, low: int, high: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        raise InvalidInput(f"{name} is {value!r}; give an integer from {low} to {high}")
    return number


def _utf8(node: str | None) -> bytes:
    try:
        return b"" if node is None else str.encode(node)
    except (TypeError, UnicodeEncodeError):
        raise InvalidInput(f"node is {node!r}; give text, or None if shared") from None
