"""Which coordinates a node sends: (key, dim, k) → k distinct integers, the same everywhere.

Every coordinate is chosen with probability exactly k/dim, any 1 ≤ k ≤ dim ≤ 2**40. Ints only, random access by
tiles. The specification is docs/sampling.md; whatever changes a result is a new ``VERSION``.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from sparsemean._types import Ints
from sparsemean.errors import InvalidInput
from sparsemean.kernels.hands import hand_size
from sparsemean.kernels.sample import Sample, draw, drawn, places
from sparsemean.sampling.keys import Key, integer
from sparsemean.sampling.slots import slot_order

MAX_DIM = 1 << 40

_LABEL = b"coordinates"


@lru_cache(maxsize=256, typed=True)
def tile_size(dim: int) -> int:
    """Coordinates per tile: 4096, or more where that would make over 2**20 tiles.

    >>> tile_size(784), tile_size(2**32), tile_size(2**40)
    (4096, 4096, 1048576)
    """
    dim = integer("dim", dim, 1, MAX_DIM)
    return 1 << max(12, (dim - 1).bit_length() - 20)


def tile_counts(key: Key, dim: int, k: int) -> Ints:
    """How many coordinates each tile gives; they sum to k.

    >>> tile_counts(Key(7, 0, "station-12"), 10_000, 999)
    array([409, 409, 181])
    """
    sample = sample_of(key, dim, k)
    return np.diff(places(sample, 0, sample.tiles))


def sample_of(key: Key, dim: int, k: int) -> Sample:
    """What the kernels need to draw k of dim coordinates."""
    dim, k = _sizes(dim, k)
    return Sample.keyed(key.digest(_LABEL), dim, k, tile_size(dim))


def balanced_sample_of(key: Key, dim: int, k: int, slot: int, slots: int) -> Sample:
    """What the kernels need to draw k of dim coordinates in one slot of a draw that is balanced over nodes.

    Each coordinate is in ⌊slots·k/dim⌋ or ⌈slots·k/dim⌉ of the samples of all slots, and in that of a node with
    probability exactly k/dim.

    Parameters
    ----------
    key
        Its seed, round and part count; the node does not, since all slots go by one random order.
    dim, k
        As for ``sample_of``. Only slots of the same dim and k balance one another.
    slot
        From 0 to slots − 1, another one for each node of a round.
    slots
        How many there are, up to 2**20.

    >>> [drawn(balanced_sample_of(Key(7, 0, None), 6, 2, slot, slots=3)).tolist() for slot in range(3)]
    [[2, 0], [3, 1], [4, 5]]
    """
    dim, k = _sizes(dim, k)
    position = slot_order(key, k, slots, slot)
    return _first_slot(key.seed, key.round, key.part, dim, k)._replace(slot=position, slots=int(slots))


def coordinates(key: Key, dim: int, k: int) -> Ints:
    """The k chosen coordinates, in tile order: the order of the values on the wire.

    >>> coordinates(Key(7, 0, "station-12"), 784, 5)
    array([ 39, 326,  17, 548,  62])
    """
    return drawn(sample_of(key, dim, k))


def coordinates_between(key: Key, dim: int, k: int, lo: int, hi: int) -> tuple[Ints, int]:
    """The chosen coordinates in [lo, hi), and the place of the first in the whole list.

    lo and hi are multiples of ``tile_size(dim)``, or dim itself.

    >>> coordinates_between(Key(7, 0, "station-12"), 10_000, 8, 4096, 8192)
    (array([6683, 5586, 6810]), 3)
    """
    return sample_between(sample_of(key, dim, k), lo, hi)


def sample_between(sample: Sample, lo: int, hi: int) -> tuple[Ints, int]:
    """The coordinates of a sample in [lo, hi), and the place of the first in the whole list.

    lo and hi are multiples of the sample's tile size, or its dim.

    >>> sample_between(sample_of(Key(7, 0, "station-12"), 10_000, 8), 8192, 10_000)
    (array([8842, 9147]), 6)
    """
    first, last = tile_range(sample, lo, hi)
    place, end = places(sample, first, last)[[0, -1]].tolist()
    found = np.empty(end - place, np.int64)
    draw(sample, first, last, found)
    return found, place


def tile_range(sample: Sample, lo: int, hi: int) -> tuple[int, int]:
    """The tiles [first, last) of which the coordinates [lo, hi) are."""
    dim, size = sample.dim, sample.size
    lo, hi = integer("lo", lo, 0, dim), integer("hi", hi, 0, dim)
    if lo > hi or any(end % size and end != dim for end in (lo, hi)):
        raise InvalidInput(
            f"[{lo}, {hi}) is not a range of tiles; give lo ≤ hi, each dim = {dim} or a multiple of {size}"
        )
    return -(-lo // size), -(-hi // size)


@lru_cache(maxsize=64)  # the same for all nodes of a round
def _first_slot(seed: int, round: int, part: int, dim: int, k: int) -> Sample:
    key, of_k, size = Key(seed, round, None, part), k.to_bytes(8, "little"), tile_size(dim)
    sample = Sample.keyed(key.digest(b"balanced" + of_k), dim, k, size)
    return sample.balanced(key.digest(b"hands" + of_k), hand_size(dim, k, size), 0, 1)


@lru_cache(maxsize=256, typed=True)  # the same few, for every payload
def _sizes(dim: int, k: int) -> tuple[int, int]:
    dim = integer("dim", dim, 1, MAX_DIM)
    return dim, integer("k", k, 1, dim)
