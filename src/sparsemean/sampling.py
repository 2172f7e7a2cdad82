"""Which coordinates a node sends: (key, dim, k) → k distinct integers, the same everywhere.

Every coordinate is chosen with probability exactly k/dim, any 1 ≤ k ≤ dim ≤ 2**40.
Integers only, random access by blocks. The specification is docs/sampling.md; whatever
changes a result is a new ``VERSION``.
"""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsemean.errors import InvalidInput
from sparsemean.kernels.choose import worth_loading
from sparsemean.kernels.sample import (
    Integers,
    Sample,
    Words,
    draw,
    drawn,
    places,
    sample_numpy,
    stream_index,
    stream_word,
)

VERSION = 1
MAX_DIM = 1 << 40

_LABEL = b"coordinates"


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
    return stream_word(stream_of(key, label), stream_index(start, count))


def stream_of(key: Key, label: bytes) -> list[int]:
    """The two words that a stream is drawn with."""
    return [int(word) for word in np.frombuffer(key.digest(label), "<u8")[:2]]


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
    sample = sample_of(key, dim, k)
    return np.diff(places(sample, 0, sample.blocks))


def sample_of(key: Key, dim: int, k: int) -> Sample:
    """What the kernels need to draw k of dim coordinates."""
    dim, k = _sizes(dim, k)
    return Sample.keyed(key.digest(_LABEL), dim, k, block_size(dim))


def coordinates(key: Key, dim: int, k: int) -> Integers:
    """The k chosen coordinates, in block order: the order of the values on the wire.

    >>> coordinates(Key(7, 0, "station-12"), 784, 5)
    array([ 39, 326,  17, 548,  62])
    """
    return drawn(sample_of(key, dim, k))


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
    sample, first, last = sample_of(key, dim, k), -(-lo // size), -(-hi // size)
    place, end = places(sample, first, last)[[0, -1]].tolist()
    found = np.empty(end - place, np.int64)
    # A small sample takes less time than to load numba.
    (draw() if worth_loading(found.size) else sample_numpy)(sample, first, last, found)
    return found, place


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
