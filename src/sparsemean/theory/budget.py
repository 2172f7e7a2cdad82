"""How much must be sent for a wanted error."""

from __future__ import annotations

from math import sqrt

from sparsemean.errors import InvalidInput

from .arguments import energy, finite, node_count
from .binomial import TINY
from .spatial import spatial_mse
from .weighting import Weighting, weights


def share_for_error(error: float, r1: float, r2: float, n: int, T: Weighting = "one") -> float:
    """The smallest share p = k/d whose exact MSE (Theorem 1) is at most ``error``.

    Bisection on log p, to 1e-14; the share returned meets the error. With the paper's families the error falls as p
    grows; with a T of your own that makes it rise again, a smaller share may do too. 1 if the error must be 0;
    2**-512 stands for "any share will do".

    >>> round(share_for_error(0.01, 1.0, 0.0, 10), 12)
    0.5
    """
    error, n = energy(error, "error"), node_count(n)
    r1, r2 = energy(r1, "r1"), finite(r2, "r2")
    weights(T, n)
    if not -1.000001 * r1 <= r2 <= (n - 0.999999) * r1:
        raise InvalidInput(f"r2 = {r2!r} lies outside [-r1, (n - 1) r1]; clip it, as optimal_ratio does")
    r2 = min(max(r2, -r1), (n - 1) * r1)
    if error == 0.0:
        return 1.0

    def enough(share: float) -> bool:
        return spatial_mse(r1, r2, n, share, T) <= error

    low, high = 0.5, 1.0
    while enough(low):
        low, high = low * low, low
        if low < TINY:
            return high
    while high / low > 1.0 + 1e-14:
        middle = low * sqrt(high / low)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
