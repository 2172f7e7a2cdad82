"""How much must be sent for a wanted error."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import sqrt

from sparsemean.errors import InvalidInput

from .arguments import energy, finite, node_count
from .binomial import TINY
from .counts import slot_count
from .spatial import spatial_mse
from .weighting import Weighting, weights


def share_for_error(
    error: float, r1: float, r2: float, n: int, T: Weighting = "one", *, slots: int | None = None
) -> float:
    """The smallest share p = k/d whose exact MSE (Theorem 1) is at most ``error``.

    Bisection on log p, to 1e-14; the share returned meets the error. With independent draws and the paper's families
    the error falls as p grows; with a T of your own that makes it rise again, a smaller share may do too. 1 if the
    error must be 0; 2**-512 stands for "any share will do".

    In a balanced draw the error rises again above every share that makes Np whole. The smallest such share that meets
    the error is found first, then the smallest between it and the one below. If all nodes come, T is "one" and R2 ≥ 0,
    no smaller share does; otherwise one may.

    Parameters
    ----------
    error : float
        The error wanted, at most.
    r1, r2 : float
        As ``correlation`` returns them; R2 in [−R1, (n − 1)R1].
    n : int
        How many nodes come.
    T : Weighting, default "one"
        As in ``weights``.
    slots : int, optional
        N of a balanced draw, at least n; None if nodes draw independently.

    >>> round(share_for_error(0.01, 1.0, 0.0, 10), 12)
    0.5
    >>> share_for_error(0.0, 4.0, 12.0, 4, slots=4)
    0.25
    """
    error, n = energy(error, "error"), node_count(n)
    r1, r2 = energy(r1, "r1"), finite(r2, "r2")
    weights(T, n)
    slots = None if slots is None else slot_count(slots, n)
    if not -1.000001 * r1 <= r2 <= (n - 0.999999) * r1:
        raise InvalidInput(f"r2 = {r2!r} lies outside [-r1, (n - 1) r1]; clip it, as optimal_ratio does")
    r2 = min(max(r2, -r1), (n - 1) * r1)
    if error == 0.0 and slots is None:
        return 1.0

    def enough(share: float) -> bool:
        return spatial_mse(r1, r2, n, share, T, slots=slots) <= error

    low, high = (0.5, 1.0) if slots is None else _around(enough, slots)
    while enough(low):
        low, high = low * low, low
        if low < TINY:
            return high
    while high / low > 1.0 + 1e-14:
        middle = low * sqrt(high / low)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _around(enough: Callable[[float], bool], slots: int) -> tuple[float, float]:
    """Shares between which that of a balanced draw lies: s/N, the smallest that is enough, and the one below."""
    senders = 1 + bisect_left(range(1, slots), True, key=lambda s: enough(s / slots))
    return max(senders - 1, 0.5) / slots, senders / slots
