"""The clock of an epoch: how many coordinates of either class all nodes of one k send, round by round.

In an epoch every node goes through all coordinates. U are those that its order has not reached yet, S the others; the
sets are each node's own, their sizes are common to all nodes of one k. A round after the first sends r_u of U, which
are scheduled with that, and r_s = k − r_u of S. Both follow from the ratios that the server's plan tells, by integers
alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

SIXTEENTHS = 16
LEAST_RATIO, MOST_RATIO = SIXTEENTHS, 10 * SIXTEENTHS
"""λ goes from 1 to 10 and is told in sixteenths, a byte each. Where λ turns out to be wrong, a round's error is up to
(λ + 1)²/(4λ) × that of plain sampling: 3 × for 10."""
MOST_RATIOS = (1 << 16) - 1
COIN = 1 << 16


class Clock(NamedTuple):
    """Where the nodes of one k are in their epoch, in one round.

    Attributes
    ----------
    dim, k : int
        Length of the vector, and how many of its coordinates a node sends.
    began : int
        Number of the round in which they began to go through the coordinates: 0 is the first of the server's epoch,
        more where U was empty since, so that they began again.
    scheduled : tuple of int
        r_u of each of their rounds after the first, the last being this round's; empty in the first.
    unscheduled : int
        |U| before this round: all coordinates before the first.
    heads : int
        For k = 1, of which every round schedules one: it is sent with probability heads/2^16, else one of S.
    """

    dim: int
    k: int
    began: int
    scheduled: tuple[int, ...]
    unscheduled: int
    heads: int = 0

    @property
    def left(self) -> int:
        """|U| after this round."""
        return self.unscheduled - (self.scheduled[-1] if self.scheduled else self.k)

    @property
    def probabilities(self) -> tuple[tuple[int, int], ...]:
        """(a, b) for a coordinate of U and for one of S: it is sent with probability a/b. One pair in a first round.

        >>> clock(10, 4, bytes([32])).probabilities
        ((3, 6), (1, 4))
        """
        if not self.scheduled:
            return ((self.k, self.dim),)
        u, s = self.unscheduled, self.dim - self.unscheduled
        if self.k == 1:
            return (self.heads, COIN * u), (COIN - self.heads, COIN * s)
        return (self.scheduled[-1], u), (self.k - self.scheduled[-1], s)


@lru_cache(maxsize=256)
def clock(dim: int, k: int, ratios: bytes) -> Clock:
    """The clock after these ratios, one for each round after the first; the last is this round's.

    Nodes of different k come to the end of their coordinates in different rounds. Those whose U is empty begin again in
    the next round, with a balanced draw, whatever its ratio; the others go on.

    >>> clock(100, 10, bytes([32, 32])).scheduled
    (9, 9)
    >>> clock(10, 5, bytes([16, 16])).scheduled, clock(10, 5, bytes(7 * [160])).began
    ((3, 1), 6)
    """
    scheduled: list[int] = []
    began, left, heads = 0, dim - k, 0
    for number, ratio in enumerate(ratios, 1):
        if left == 0:
            began, scheduled, left = number, [], dim - k
            continue
        r_u, heads = _shared_out(dim, k, left, ratio)
        scheduled.append(r_u)
        left -= r_u
    before = left + scheduled[-1] if scheduled else dim
    return Clock(dim, k, began, tuple(scheduled), before, heads if k == 1 and scheduled else 0)


def rest(now: Clock, ratio: int) -> Iterator[Clock]:
    """The clocks of the coming rounds, until U is empty, if they all go by this ratio.

    >>> [later.unscheduled for later in rest(clock(10, 4, b""), 16)]
    [6, 4, 2, 1]
    """
    left = now.left
    while left:
        r_u, heads = _shared_out(now.dim, now.k, left, ratio)
        yield now._replace(scheduled=(r_u,), unscheduled=left, heads=heads)
        left -= r_u


def _shared_out(dim: int, k: int, u: int, ratio: int) -> tuple[int, int]:
    """r_u = k·λu/(λu + s), and the same share of 2^16, rounded; both classes are sent.

    The last few of U are sent at once: a ratio alone would take as long for them as for all others.
    """
    of_u, both = ratio * u, ratio * u + SIXTEENTHS * (dim - u)
    if k == 1:
        return 1, min(max(_rounded(COIN * of_u, both), 1), COIN - 1)
    if 4 * u <= k:
        return u, 0
    return min(max(_rounded(k * of_u, both), 1), k - 1, u), 0


def _rounded(a: int, b: int) -> int:
    """a/b to the nearest integer, halves up."""
    return (2 * a + b) // (2 * b)


def largest_scale(dim: int, k: int) -> float:
    """At least 1/π of every coordinate, whatever the ratios: 20·d/k.

    π is k/d up to a factor of λ ≤ 10, but for rounding, which at most halves r_u or r_s.
    """
    return 2.0 * MOST_RATIO / SIXTEENTHS * dim / k
