"""Seeded samples: the coordinates that a key determines, tile by tile (docs/sampling.md), and the values there."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from sparsemean._types import Floats, Ints, Words
from sparsemean.kernels.hands import dealt
from sparsemean.kernels.stream import below, stream_index, stream_word
from sparsemean.kernels.twin import SMALL, twin

STRIDE = 8  # words of the stream set aside for a tile; only the last, short one may need more
RANKED = 64  # a tile up to this size is shuffled by ranking words, not by rounds
KEPT = 1 << 12  # a sample of up to this many coordinates is kept for the next call
TOGETHER = 16  # tiles that are drawn at a time, where only some of their coordinates are asked for
_CHUNK = 1 << 16  # coordinates drawn at a time, so that temporaries stay in the cache

AnyInts: TypeAlias = npt.NDArray[np.integer[Any]]


class Sample(NamedTuple):
    """All that determines a sample.

    Attributes
    ----------
    a, b
        The key's two words, which determine the stream of words that shuffles the tiles.
    off
        Offset in [0, dim), which decides where k/dim · size is rounded up and where down.
    dim
        Length of the vector.
    k
        How many coordinates are drawn.
    size
        Coordinates per tile, a power of two.
    slot, slots
        Position in a balanced draw, and of how many: samples that differ only in ``slot`` share the coordinates out
        evenly. By default a sample stands alone.
    hand
        Places per hand of a balanced draw, a power of two that divides ``size``; 0 of a sample that stands alone.
    hand_a, hand_b
        Two words, which determine the stream of words that deals the hands.
    hand_o
        By how many places the last hand is turned, if it is short.
    """

    a: np.uint64
    b: np.uint64
    off: int
    dim: int
    k: int
    size: int
    slot: int = 0
    slots: int = 1
    hand: int = 0
    hand_a: np.uint64 = np.uint64(0)
    hand_b: np.uint64 = np.uint64(0)
    hand_o: int = 0

    @staticmethod
    def keyed(digest: bytes, dim: int, k: int, size: int) -> Sample:
        """The sample of a key with this digest: two words for the tiles, two for the offset."""
        a, b, *offset = np.frombuffer(digest, "<u8").astype(np.uint64)
        return Sample(a, b, below(dim, offset, 0), dim, k, size)

    def balanced(self, digest: bytes, hand: int, slot: int, slots: int) -> Sample:
        """The sample at a position of a balanced draw: two words of this digest for its hands, two for the last one."""
        a, b, *last = np.frombuffer(digest, "<u8").astype(np.uint64)
        short = self.dim % hand
        o = below(short, last, 0) if short else 0
        return self._replace(slot=slot, slots=slots, hand=hand, hand_a=a, hand_b=b, hand_o=o)

    @property
    def own(self) -> int:
        """The offset that counts for this slot's tiles as ``off`` does for a sample that stands alone."""
        return (self.off + self.slot * self.dim) // self.slots

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """What the samples of a batch have in common: dim, k, size, slots and hand."""
        return self.dim, self.k, self.size, self.slots, self.hand

    @property
    def tiles(self) -> int:
        """How many tiles there are; the last may be short."""
        return -(-self.dim // self.size)


def sample_numpy(sample: Sample, first: int, last: int, out: AnyInts) -> None:
    """Write the coordinates in the tiles [first, last) to ``out``, in the order of the values on the wire.

    ``out`` has exactly their size: the last of ``places(sample, first, last)`` less the first.
    """
    size, full = sample.size, sample.dim // sample.size
    at = places(sample, first, last)
    at -= at[0]
    counts = np.diff(at)
    busy = np.flatnonzero(counts[: max(full - first, 0)])
    rows = max(1, _CHUNK // (size * sample.k // sample.dim + 1))
    for some in (busy[i : i + rows] for i in range(0, busy.size, rows)):
        span = slice(at[some[0]], at[some[-1] + 1])
        out[span] = _from_full_tiles(sample, first + some, counts[some])
    if first <= full < last and counts[-1]:
        m = sample.dim - full * size
        draws, o = shuffle(sample, full * STRIDE, m)
        x = dealt(sample, np.array([full]), m) if sample.hand else (np.arange(counts[-1]) + o) % m
        out[at[-2] :] = from_tile(draws, x, m) + full * size


draw = twin(sample_numpy, "sample", values=lambda sample, first, last, out: out.size)


def gather_numpy(sample: Sample, vector: Floats, out: Floats) -> None:
    """out[i] = vector[coordinate i], rounded to the type of ``out``; the caller checks the sizes dim and k."""
    coordinates = np.empty(sample.k, np.int64)
    sample_numpy(sample, 0, sample.tiles, coordinates)
    out[:] = vector[coordinates]


gather = twin(gather_numpy, "gather")


def gathered(sample: Sample, vector: Floats) -> Floats:
    """What a node sends: the values of its vector at the coordinates of the sample, in the order of the wire."""
    if sample.k <= SMALL:  # not worth loading numba, and ``drawn`` keeps the coordinates for who needs them next
        return vector[drawn(sample)]
    out = np.empty(sample.k, vector.dtype)
    gather(sample, vector, out)
    return out


def drawn(sample: Sample) -> Ints:
    """All coordinates of a sample, in the order of the values on the wire; read-only."""
    return _recent(sample) if sample.k <= KEPT else _all(sample)


@functools.lru_cache(maxsize=256)
def _recent(sample: Sample) -> Ints:
    """Small samples are kept, at most 8 MB: in one process the server draws what a node has just drawn."""
    return _all(sample)


def _all(sample: Sample) -> Ints:
    found = np.empty(sample.k, np.int64)
    draw(sample, 0, sample.tiles, found)
    found.flags.writeable = False
    return found


def drawn_at(sample: Sample, numbers: Ints) -> Ints:
    """Some of a sample's coordinates, by their ascending numbers on the wire, without making all of them at once."""
    if sample.k <= KEPT:
        return drawn(sample)[numbers]
    found, begin = np.empty(numbers.size, np.int64), places(sample, 0, sample.tiles)
    edges = np.append(begin[:-1:TOGETHER], begin[-1])
    cuts, room = np.searchsorted(numbers, edges).tolist(), np.empty(int(np.diff(edges).max()), np.int64)
    for i, (low, high) in enumerate(pairwise(cuts)):
        if low < high:
            out = room[: edges[i + 1] - edges[i]]
            draw(sample, i * TOGETHER, min((i + 1) * TOGETHER, sample.tiles), out)
            found[low:high] = out[numbers[low:high] - edges[i]]
    return found


def drawn_near(sample: Sample, at: Ints) -> tuple[Ints, Ints]:
    """The sample's coordinates in the tiles in which the coordinates ``at`` lie, and their places on the wire."""
    near, where = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for tile in np.unique(at // sample.size).tolist():
        first, last = places(sample, tile, tile + 1).tolist()
        near.append(np.empty(last - first, np.int64))
        draw(sample, tile, tile + 1, near[-1])
        where.append(np.arange(first, last))
    return np.concatenate(near), np.concatenate(where)


def places(sample: Sample, first: int, last: int) -> Ints:
    """Where each of the tiles first, …, last begins on the wire."""
    return places_of(sample, np.arange(first, last + 1, dtype=np.int64))


def places_of(sample: Sample, b: Ints) -> Ints:
    """floor((own + min(b·size, dim)·k) / dim), in int64: where tile b begins on the wire.

    As own = floor((off + slot·dim) / slots), it is floor((off + slot·dim + slots·min(b·size, dim)·k) / (slots·dim)).
    """
    q, r = divmod(sample.size * sample.k, sample.dim)
    return np.where(b * sample.size >= sample.dim, sample.k, b * q + (sample.own + b * r) // sample.dim)


def _from_full_tiles(sample: Sample, tiles: Ints, counts: Ints) -> Ints:
    """The counts[j] coordinates of every tiles[j], one tile after another."""
    size, widest, rounds = sample.size, int(counts.max()), shuffle_words(sample.size)
    starts = (tiles * STRIDE).astype(np.uint64)
    draws: Words = stream_word(sample, starts[:, None] + stream_index(0, rounds + 1))
    order: Literal["C", "F"] = "C" if widest > len(tiles) else "F"  # the longer axis is the inner loop
    x = np.empty((len(tiles), widest), np.uint32, order)
    some = np.arange(widest) < counts[:, None]
    if sample.hand:
        x[some] = dealt(sample, tiles, size)
    else:
        x[:] = np.arange(widest)
        x += draws[:, rounds:].astype(np.uint32)  # modulo 2**32, of which size is a divisor
        x &= np.uint32(size - 1)
    found = permuted(x, draws, size) + tiles[:, None] * size
    return found.ravel() if counts.min() == widest else found[some]


def from_tile(draws: Words, x: Ints, m: int) -> Ints:
    """walk(x) at these places x, in a tile of any size m."""
    if m <= RANKED:
        order: Ints = np.argsort(draws, kind="stable")
        return order[x]
    every = np.arange(1 << (m - 1).bit_length(), dtype=np.uint32)
    image = permuted(every[None], draws[None], m)[0].astype(np.int64)
    y: Ints = image[x]
    while (late := np.flatnonzero(y >= m)).size:
        y[late] = image[y[late]]
    return y


def permuted(x: npt.NDArray[np.uint32], draws: Words, m: int) -> npt.NDArray[np.uint32]:
    """x after the keyed bijection of [0, 2**w), in place; a row of draws for each row."""
    w = (m - 1).bit_length()
    mask = np.uint32((1 << w) - 1)
    a = draws.astype(np.uint32) & mask | np.uint32(1)
    c = (draws >> np.uint64(32)).astype(np.uint32) & mask
    for r in range(shuffle_words(m)):
        x *= a[:, r : r + 1]  # modulo 2**32, which is enough: only the low w ≤ 20 bits are kept
        x += c[:, r : r + 1]
        x &= mask
        x ^= x >> np.uint32((2 * w + 1) // 3 - r % 2)
    return x


def walked(x: int, draws: Sequence[int], m: int) -> int:
    """walk(x) in a tile of any size m: ``from_tile`` for a single place, in plain integers and without an image."""
    if m <= RANKED:
        return sorted(range(m), key=draws.__getitem__)[x]
    w = (m - 1).bit_length()
    mask = (1 << w) - 1
    while True:
        for r, z in enumerate(draws):
            x = (x * (z & mask | 1) + (z >> 32)) & mask
            x ^= x >> ((2 * w + 1) // 3 - r % 2)
        if x < m:
            return x


def shuffle(stream: Sequence[Any], start: int, m: int) -> tuple[Words, int]:
    """The words from ``start`` on that shuffle a tile of any size m, and o, which rotates it."""
    words = shuffle_words(m)
    return stream_word(stream, stream_index(start, words)), below(m, stream, start + words)


def shuffle_words(m: int) -> int:
    """Words that shuffle a tile of m: one for each member, or one for each round."""
    return m if m <= RANKED else 2 - (-48 // (m - 1).bit_length())
