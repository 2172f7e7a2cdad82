"""Slots: the places of a balanced draw, dealt anew every round (docs/sampling.md)."""

from __future__ import annotations

from functools import lru_cache

from sparsemean.kernels.sample import shuffle, walked
from sparsemean.sampling.keys import Key, integer, stream_of
from sparsemean.sampling.plan import MAX_SLOTS


def slot_order(key: Key, k: int, slots: int, slot: int) -> int:
    """The position of a slot in this round: a keyed bijection of [0, slots), each position equally likely.

    Parameters
    ----------
    key
        Its seed, round and part count; the node does not, since all nodes go by one order.
    k
        How many coordinates are drawn: nodes that draw another number of them have another order.
    slots
        How many slots there are, up to 2**20.
    slot
        From 0 to slots − 1.

    >>> [slot_order(Key(7, 0, None), 2, 5, slot) for slot in range(5)]
    [0, 2, 4, 3, 1]
    """
    slots = integer("slots", slots, 1, MAX_SLOTS)
    slot = integer("slot", slot, 0, slots - 1)
    draws, o = _shuffle(key.seed, key.round, key.part, integer("k", k, 1, (1 << 64) - 1), slots)
    return walked((slot + o) % slots, draws, slots)


@lru_cache(maxsize=64)  # the same for all nodes of a round
def _shuffle(seed: int, round: int, part: int, k: int, slots: int) -> tuple[tuple[int, ...], int]:
    label = b"slots" + k.to_bytes(8, "little")
    draws, o = shuffle(stream_of(Key(seed, round, None, part), label), 0, slots)
    return tuple(draws.tolist()), o
