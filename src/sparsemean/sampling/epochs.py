"""Epochs: draws without replacement over rounds. Every node goes through all coordinates, in an order of its own.

The first round of an epoch is a balanced draw. In every later round a node sends r_u coordinates of U, which its order
has not reached yet, and r_s of S, the others, so many as the ``clock`` says. Given all that all nodes drew before, each
coordinate of U is sent with probability exactly r_u/|U|, each of S with r_s/|S|, and nodes draw independently: the
counts of the tiles and what is taken of each come from words of this round alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from sparsemean._types import Floats, Ints
from sparsemean.errors import InvalidInput
from sparsemean.kernels.epochs import Epoch, Gaps, fair, first_gaps, later_gaps, next_gathered, next_sent
from sparsemean.kernels.sample import KEPT, Sample
from sparsemean.kernels.stream import stream_index
from sparsemean.kernels.tiled import Tiled
from sparsemean.sampling.clock import COIN, LEAST_RATIO, MOST_RATIO, SIXTEENTHS, Clock, clock
from sparsemean.sampling.draws import Draw, Drawn
from sparsemean.sampling.keys import Key
from sparsemean.sampling.plan import Plan
from sparsemean.sampling.recent import Recent
from sparsemean.sampling.samples import balanced_sample_of, sample_of, tile_range

COINS = 1 << 40  # where the words of coins begin in the stream of offsets
GAPS = 1 << 26  # bytes of gaps that are kept for the next round of their epoch


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
        return (_recent if k <= KEPT else epoch_lists)(key, dim, k, _told(key))

    def gathered(self, key: Key, k: int, vector: Floats) -> tuple[tuple[Drawn, Floats], ...]:
        plan = _told(key)
        now, began, first = _begun(key, vector.size, k, plan)
        if k <= KEPT or not now.scheduled:
            return super().gathered(key, k, vector)
        epoch, gaps, sent = _next(began, first, now, 0, vector.size)
        found = next_gathered(epoch, gaps, now.unscheduled, *sent, vector)
        shares = now.probabilities
        return tuple((Drawn(at, *share), values) for (at, values), share in zip(found, shares, strict=True))


def _told(key: Key) -> Plan:
    """The plan of the key's round, which says where the epoch is."""
    plan = key.plan
    told = plan is not None and plan.epoch is not None and plan.epoch + len(plan.ratios) <= key.round
    if plan is None or not told or (not plan.ratios and plan.epoch != key.round):
        raise InvalidInput(f"epochs need the plan of round {key.round}, as server.plan(node) gives it; got {plan}")
    return plan


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
        The range of which coordinates are asked for, by default all: multiples of ``tile_size(dim)``, or dim itself. A
        first sample is always whole.
    """
    return tuple(
        each._replace(where=_from(lo, each.where.coordinates)) if isinstance(each.where, Tiled) else each
        for each in epoch_lists(key, dim, k, plan, lo, hi)
    )


def epoch_lists(key: Key, dim: int, k: int, plan: Plan, lo: int = 0, hi: int | None = None) -> tuple[Drawn, ...]:
    """The same, with the coordinates of later rounds listed by tile, of which the first is that of ``lo``."""
    now, began, first = _begun(key, dim, k, plan)
    if not now.scheduled:
        return (Drawn(first, k, dim),)
    found = _later(began, first, now, lo, dim if hi is None else hi)
    return tuple(Drawn(at, *share) for at, share in zip(found, now.probabilities, strict=True))


def _from(lo: int, coordinates: Ints) -> Ints:
    """The coordinates, if they were counted from ``lo``; read-only."""
    found = coordinates + lo
    found.flags.writeable = False
    return found


def unscheduled(key: Key, dim: int, k: int, plan: Plan) -> Ints:
    """The coordinates of U in the round of this plan, all of them in the first round of an epoch. O(d).

    >>> unscheduled(Key(7, 6, "a"), 6, 2, Plan(0, 2, 5, bytes([16]))).size
    4
    """
    now, began, first = _begun(key, dim, k, plan)
    if not now.scheduled:
        return np.arange(dim)
    epoch = _epoch(began, first)
    gaps = _gaps(epoch, now.scheduled[:-1], 0, first.tiles)
    return next_sent(epoch, gaps, now.unscheduled, now.unscheduled, 0)[0].coordinates


def _begun(key: Key, dim: int, k: int, plan: Plan) -> tuple[Clock, Key, Sample]:
    """The clock, the node's key in the first round of its epoch, and its sample there."""
    now, slot = clock(dim, k, plan.ratios), plan.slot
    began = replace(key, round=plan.epoch + now.began, plan=None)  # type: ignore[operator]  # an epoch's plan has one
    first = sample_of(began, dim, k) if slot is None else balanced_sample_of(began, dim, k, slot, plan.slots)
    return now, began, first


def _epoch(began: Key, first: Sample) -> Epoch:
    return Epoch.keyed(began.digest(b"epoch" + first.k.to_bytes(8, "little")), first)


@lru_cache(maxsize=256)
def _recent(key: Key, dim: int, k: int, plan: Plan) -> tuple[Drawn, ...]:
    """Small samples are kept: in one process the server draws what a node has just drawn."""
    return epoch_lists(key, dim, k, plan)


def _later(key: Key, first: Sample, now: Clock, lo: int, hi: int) -> tuple[Tiled, Tiled]:
    """The coordinates of U and of S in [lo, hi), tile by tile, in a round after the first."""
    epoch, gaps, sent = _next(key, first, now, lo, hi)
    found = next_sent(epoch, gaps, now.unscheduled, *sent)
    for each in found:
        each.places.flags.writeable = False
    return found


def _next(key: Key, first: Sample, now: Clock, lo: int, hi: int) -> tuple[Epoch, Gaps, tuple[int, int]]:
    """The epoch, what is unscheduled of [lo, hi) before a round after the first, and how many it sends of U and S."""
    epoch = _epoch(key, first)
    sent = now.scheduled[-1], now.k - now.scheduled[-1]
    if now.k == 1:  # one is scheduled in every round; a coin of the node's decides whether it is sent
        heads = _coin(epoch, len(now.scheduled)) < now.heads
        sent = int(heads), int(not heads)
    return epoch, _gaps(epoch, now.scheduled[:-1], *tile_range(first, lo, hi)), sent


def _coin(epoch: Epoch, number: int) -> int:
    """The node's number in [0, 2^16) of a round after the first."""
    return int(fair(np.array([COIN]), epoch.offsets, stream_index(COINS + number - 1, 1))[0])


def _gaps(epoch: Epoch, scheduled: tuple[int, ...], tile: int, last: int) -> Gaps:
    """What these rounds left unscheduled of the tiles [tile, last): those of the last call, gone on with."""
    at = epoch, tile, last
    kept = _kept.get(at)
    if kept is None or kept[0] != scheduled[: len(kept[0])]:
        kept = (), first_gaps(epoch.first, tile, last)
    gaps = later_gaps(epoch, kept[1], scheduled)
    _kept.put(at, (scheduled, gaps), gaps.nbytes)
    return gaps


_kept = Recent[tuple[tuple[int, ...], Gaps]](GAPS)
