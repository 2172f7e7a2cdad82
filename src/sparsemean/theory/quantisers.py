"""What the quantisers of other papers add at worst: ω with E‖x̂ − x‖² ≤ ω‖x‖² for every x of d entries."""

from __future__ import annotations

import math

from sparsemean.theory.arguments import whole

NATURAL_BOUND = 1.0 / 8.0
"""Natural compression (Horváth et al. 2019, Theorem 1); attained where all entries are ±4/3 times powers of two."""


def qsgd_bound(levels: int, count: int) -> float:
    """min(d/s², √d/s) of QSGD with s levels of the norm (Alistarh et al. 2017, Lemma 3.1).

    Parameters
    ----------
    levels
        s: multiples of ‖x‖₂/s that magnitudes are rounded to, 0 apart.
    count
        d: entries that share a norm.

    >>> round(qsgd_bound(1, 512), 3), round(qsgd_bound(127, 512), 4)
    (22.627, 0.0317)
    """
    s, d = whole(levels, "levels", 1), whole(count, "count", 1)
    return min(d / s**2, math.sqrt(d) / s)


def terngrad_bound(count: int) -> float:
    """(√d − 1)/2 of TernGrad, whose error is max|x|·‖x‖₁ − ‖x‖₂² (Wen et al. 2017).

    The worst vector has one large entry, and √d + 1 times smaller ones.

    >>> terngrad_bound(1), terngrad_bound(4)
    (0.0, 0.5)
    """
    return (math.sqrt(whole(count, "count", 1)) - 1.0) / 2.0


def rotated_bound(levels: int, count: int) -> float:
    """(2 ln 2d + 2)/(L − 1)² of random rounding to L levels after a random rotation (Suresh et al. 2017, Theorem 3).

    With levels from −A to A the error is at most d·(2A/(L − 1))²/4, and A, the largest of d rotated entries, has
    E A² ≤ (2 ln 2d + 2)·‖x‖²/d, since each is subgaussian with variance ‖x‖²/d.

    Parameters
    ----------
    levels
        L, 2 or more.
    count
        d: entries that are rotated together.

    >>> round(rotated_bound(16, 4096), 4)
    0.089
    """
    return (2.0 * math.log(2.0 * whole(count, "count", 1)) + 2.0) / (whole(levels, "levels", 2) - 1) ** 2
