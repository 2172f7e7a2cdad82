"""Epochs: draws without replacement over rounds. Every node goes through all coordinates, in an order of its own.

The first round of an epoch is a balanced draw. In every later round a node sends r_u coordinates of U, which its order
has not reached yet, and r_s of S, the others, so many as the ``clock`` says. Given all that all nodes drew before, each
coordinate of U is sent with probability exactly r_u/|U|, each of S with r_s/|S|, and nodes draw independently: the
counts of the tiles and what is taken of each come from words of this round alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from sparsemean._types import Ints
from sparsemean.errors import InvalidInput
from sparsemean.kernels.sample import KEPT, Sample, drawn, places, stream_index, stream_word
from sparsemean.sampling.clock import COIN, LEAST_RATIO, MOST_RATIO, SIXTEENTHS, Clock, clock
from sparsemean.sampling.draws import Draw, Drawn
from sparsemean.sampling.keys import Key
from sparsemean.sampling.plan import Plan
from sparsemean.sampling.samples import balanced_sample_of, sample_of

RETRY, ROUND, COINS = 48, 24, 1 << 40  # bits: the next try, the next round; where coins begin
RECENT = 1 << 14  # orders of vectors up to this length are kept for the next rounds


@dataclass(frozen=True)
class Epochs(Draw):
    """Without replacement: in an epoch each node sends every coordinate before it sends one again for its own sake.

    A node sends what has waited longest with λ times the probability of the rest. With a memory and vectors that change
    slowly that is what the server knows least of: the error given the past is (1/n²) Σ_i Σ_c (1/π_c − 1)‖x_i − b_i‖²_c
    over the classes c = U, S. The estimate is unbiased given the past of all nodes, whatever the memory. Nodes follow
    the server's plans; without one, where the run lists its ``nodes``, every round begins an epoch.

    Parameters
    ----------
    ratio : float, optional
        λ, from 1 to 10; told in sixteenths. By default the server takes, after every round, the root mean square
        residual of U over that of S.
    restart : bool, default True
        Whether the server begins a new epoch early where the last round says that a fresh balanced draw would err less:
        where the residuals of nodes are alike. Else an epoch ends when every coordinate was scheduled.
    """

    ratio: float | None = None
    restart: bool = True

    def __post_init__(self) -> None:
        least, most = LEAST_RATIO / SIXTEENTHS, MOST_RATIO / SIXTEENTHS
        given = self.ratio
        number = isinstance(given, int | float) and not isinstance(given, bool)
        if given is not None and not (number and least <= given <= most):
            raise InvalidInput(f"ratio is a number from {least:g} to {most:g}, or None to learn it; got {given!r}")
        if not isinstance(self.restart, bool):
            raise InvalidInput(f"restart is True or False, got {self.restart!r}")

    @property
    def planned(self) -> bool:
        return True

    @property
    def uniform(self) -> bool:
        return False

    def drawn(self, key: Key, dim: int, k: int) -> tuple[Drawn, ...]:
        plan = key.plan
        told = plan is not None and plan.epoch is not None and plan.epoch + len(plan.ratios) <= key.round
        if plan is None or not told or (not plan.ratios and plan.epoch != key.round):
            raise InvalidInput(f"epochs need the plan of round {key.round}, as server.plan(node) gives it; got {plan}")
        return (_recent if k <= KEPT else epoch_samples)(key, dim, k, plan)


def epoch_samples(key: Key, dim: int, k: int, plan: Plan, lo: int = 0, hi: int | None = None) -> tuple[Drawn, ...]:
    """What a node sends: in the first round of an epoch one balanced sample, then coordinates of U and of S.

    Parameters
    ----------
    key
        Its seed, node and part count; the round is that of the plan's epoch.
    dim, k
        As for ``sample_of``.
    plan
        The node's, with its ``epoch``. A node without a slot is a balanced draw of its own: its independent sample.
    lo, hi
        The range of which coordinates are asked for, by default all; a first sample is always whole.
    """
    now, slot = clock(dim, k, plan.ratios), plan.slot
    began = replace(key, round=plan.epoch + now.began, plan=None)  # type: ignore[operator]  # an epoch's plan has one
    first = sample_of(began, dim, k) if slot is None else balanced_sample_of(began, dim, k, slot, plan.slots)
    if not now.scheduled:
        return (Drawn(first, k, dim),)
    found = _later(began, first, now, lo, dim if hi is None else hi)
    return tuple(Drawn(at, *share) for at, share in zip(found, now.probabilities, strict=True))


@lru_cache(maxsize=256)
def _recent(key: Key, dim: int, k: int, plan: Plan) -> tuple[Drawn, ...]:
    """Small samples are kept: in one process the server draws what a node has just drawn."""
    return epoch_samples(key, dim, k, plan)


def _later(key: Key, first: Sample, now: Clock, lo: int, hi: int) -> list[Ints]:
    """The coordinates of U and of S in [lo, hi), tile by tile, in a round after the first."""
    dim, k, size = first.dim, first.k, first.size
    words = [int(word) for word in np.frombuffer(key.digest(b"epoch" + k.to_bytes(8, "little")), "<u8")]
    own, offsets = words[:2], words[2:]
    tiles, r = np.arange(first.tiles + 1), now.scheduled
    ends = np.minimum(tiles * size, dim)

    # How many coordinates below the end of each tile are unscheduled before each round; a new offset every round.
    waiting, left = [ends - places(first, 0, first.tiles)], dim - k
    for j, r_j in enumerate(r):
        waiting.append(waiting[-1] - _share(fair(left, offsets, 2 * j), r_j, left, waiting[-1]))
        left -= r_j
    done, r_s = ends - waiting[-2], max(k - r[-1], 1)
    fresh = np.diff(_share(fair(dim - now.unscheduled, offsets, 2 * len(r) - 1), r_s, dim - now.unscheduled, done))
    taken = [np.diff(before - after) for before, after in pairwise(waiting)]
    u_first, c = np.diff(waiting[0]), [each.tolist() for each in taken]

    found: list[list[Ints]] = [[np.empty(0, np.int64)], [np.empty(0, np.int64)]]
    order = (_kept_order if dim <= RECENT else _order)(key, first)
    for tile in range(lo // size, -(-hi // size)):
        start, m = tile * size, int(ends[tile + 1] - ends[tile])
        place = np.ones(m, bool)  # by place: whether it is unscheduled; the coordinates of the first draw come first
        place[: m - int(u_first[tile])] = False
        for j in range(len(r)):
            wait = np.flatnonzero(place)
            next_ = _run(wait, c[j][tile], own, ((j + 1) << ROUND) + 2 * tile)
            if j < len(r) - 1:
                place[next_] = False
        scheduled = np.flatnonzero(~place)
        again = _spaced(scheduled, int(fresh[tile]), own, (len(r) << ROUND) + 2 * tile + 1)
        for each, chosen in zip(found, (next_, again), strict=True):
            each.append(order[start + chosen])
    of_u, of_s = (np.concatenate(each) for each in found)
    if k == 1:  # one is scheduled in every round; a coin of the node's decides whether it is sent
        heads = fair(COIN, offsets, COINS + len(r) - 1) < now.heads
        of_u, of_s = of_u[: int(heads)], of_s[: int(not heads)]
    classes = [at[(lo <= at) & (at < hi)] for at in (of_u, of_s)]
    for at in classes:
        at.flags.writeable = False
    return classes


def _run(wait: Ints, count: int, own: Sequence[int], word: int) -> Ints:
    """``count`` of these places, one after another, from a random one on and round the end."""
    if not count:
        return wait[:0]
    return wait[(fair(wait.size, own, word) + np.arange(count)) % wait.size]


def _spaced(done: Ints, count: int, own: Sequence[int], word: int) -> Ints:
    """``count`` of these places at equal distances, from a random one on: each with probability count/size."""
    if not count:
        return done[:0]
    return done[(fair(done.size, own, word) + np.arange(count) * done.size) // count]


def _order(key: Key, first: Sample) -> Ints:
    """The coordinates by place, tile by tile: those of the first draw, then the others in a random order of the node's.

    Any order is exact; a random one spreads over the tile what two nodes send.
    """
    dim, size = first.dim, first.size
    words = [int(word) for word in np.frombuffer(key.digest(b"epoch order" + first.k.to_bytes(8, "little")), "<u8")]
    sent, at = drawn(first), places(first, 0, first.tiles).tolist()
    order = np.empty(dim, np.int64)
    for tile in range(first.tiles):
        start, end = tile * size, min((tile + 1) * size, dim)
        mine = sent[at[tile] : at[tile + 1]]
        others = np.ones(end - start, bool)
        others[mine - start] = False
        rest = start + np.flatnonzero(others)
        order[start : start + mine.size] = mine
        order[start + mine.size : end] = rest[np.argsort(stream_word(words, stream_index(start, rest.size)))]
    order.flags.writeable = False
    return order


_kept_order = lru_cache(maxsize=256)(_order)


def _share(off: int, r: int, total: int, before: Ints) -> Ints:
    """floor((off + r·before)/total) in int64, off < total; r, before and total up to 2^40."""
    if (r + 1) * total < 1 << 62:
        return (off + r * before) // total
    high, low = before >> 20, before & 0xFFFFF
    whole, rest = np.divmod(r * high, total)
    found: Ints = (whole << 20) + (off + (rest << 20) + r * low) // total
    return found


def fair(bound: int, stream: Sequence[int], index: int) -> int:
    """Uniform in [0, bound), by rejection; the next try is 2^48 words further on."""
    while (word := int(stream_word(stream, index))) >= (1 << 64) - (1 << 64) % bound:
        index += 1 << RETRY
    return word % bound
