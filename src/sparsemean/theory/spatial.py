"""The exact error of Rand-k-Spatial for any T, in forms that do not cancel."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .arguments import energy, finite, node_count, unit_share
from .binomial import count_given_sent, pmf
from .scaling import gains, inverse_weights, relative_deviations
from .weighting import A, Weighting, weights

ROUNDING = 4 * float(np.finfo(np.float64).eps)


@np.errstate(under="ignore", over="ignore")
def constants(T: Weighting, n: int, share: float) -> tuple[float, float]:
    """(c1, c2) of Theorem 1: what T adds to Rand-k's error on R1, and what it takes off on R2.

    With e(m) = g(m) − 1, which has mean 0 under b_m,

        c1 = (1/p) Σ_m b_m e(m)²,
        c2 = −Σ_m b_m e(m) [u(m) e(m) + 2(u(m) − 1)],  u(m) = (m − 1)/((n − 1)p).

    Both are 0 for constant T and for share = 1; in general c2 is good to 1e-12 or to what the rounding of T itself
    leaves, some 1e-16. (∞, −∞) where ρ = −1 and b_n is too small for a float.

    >>> constants("one", 10, 0.1)
    (0.0, 0.0)
    >>> c1, c2 = constants("max", 2, 0.5)
    >>> round(c1, 12), round(c2, 12)
    (0.222222222222, 0.555555555556)
    """
    n, p = node_count(n), unit_share(share)
    sent = count_given_sent(n, p)
    mean, excess = relative_deviations(inverse_weights(T, n, p)[0], sent)
    if mean == 0.0:
        return math.inf, -math.inf
    c1, c2 = constants_of(excess, sent, pair_ratios(n, p), p)
    return float(c1), float(c2)


def pair_ratios(n: int, share: float) -> npt.NDArray[np.float64]:
    """u(m) = (m − 1)/((n − 1)p) for m = 0..n: P(M = m | two given nodes sent) over P(M = m | one of them sent).

    >>> pair_ratios(3, 0.5).tolist()
    [-1.0, 0.0, 1.0, 2.0]
    """
    ratios: npt.NDArray[np.float64] = np.arange(-1.0, n) / (max(n - 1, 1) * share)
    return ratios


def constants_of(excess: A, sent: A, ratios: A, share: float) -> tuple[A, A]:
    """(c1, c2) of ``constants`` from its e(m), b_m and u(m), m = 0..n, as NumPy arrays or as torch tensors."""
    pull = sent * excess
    c1 = (pull * excess).sum() / share
    return c1, 0.0 - (pull * ratios * excess + 2.0 * pull * (ratios - 1.0)).sum()


def error_coefficients(T: Weighting, n: int, share: float) -> tuple[float, float]:
    """(A1, A2) with MSE = (A1 R1 + A2 R2)/n²: A1 = 1/p − 1 + c1 and A2 = −c2 (Theorem 1).

    >>> error_coefficients("one", 10, 0.25)
    (3.0, 0.0)
    """
    p = unit_share(share)
    return coefficients_of(*constants(T, n, p), p)


def coefficients_of(c1: A, c2: A, share: float) -> tuple[A, A]:
    """(A1, A2) of ``error_coefficients`` from the constants of Theorem 1, as numbers or as tensors."""
    return (1.0 - share) / share + c1, 0.0 - c2  # type: ignore[return-value]  # float + A is no float


@np.errstate(under="ignore", over="ignore")
def feedback_factor(T: Weighting, n: int, share: float) -> float:
    """f = E[(g(M) M/(np) − 1)²] = (A1 + (n − 1) A2)/n: the error of a mean of n equal vectors, relative.

    Also what a shared memory b = last estimate (Appendix D) multiplies its own error by each round: at 1 or above
    it diverges. (1/p − 1)/n for T = 1; least for "max".

    >>> round(feedback_factor("one", 10, 0.01), 12)
    9.9
    >>> feedback_factor("max", 2, 0.5) * 3
    1.0
    """
    n, p = node_count(n), unit_share(share)
    count = pmf(n, p)
    mean, excess = relative_deviations(inverse_weights(T, n, p, np.arange(1.0, n + 1.0))[0], count)
    return float(np.sum(count * excess * excess)) if mean > 0.0 else math.inf


@np.errstate(under="ignore", over="ignore")
def _opposed(T: Weighting, n: int, share: float) -> float:
    """A1 − A2 = (1/p) Σ_m b_m g(m)² (n − m)/(n − 1): the coefficient for vectors that sum to zero."""
    gain = gains(T, n, share)
    return float(np.sum(count_given_sent(n, share) * gain * gain * np.arange(n, -1.0, -1.0))) / (n - 1) / share


def spatial_mse(r1: float, r2: float, n: int, share: float, T: Weighting) -> float:
    """E‖estimate − mean‖² = (A1 R1 + A2 R2)/n² of Rand-k-Spatial (Theorem 1).

    Written as a sum of non-negative terms for every R2 in [−R1, (n − 1)R1]. For ρ = −1 it is 0 if the vectors
    sum to zero (to rounding), and may be infinite if they do not.

    >>> spatial_mse(1.0, 0.0, 10, 0.5, "one")
    0.01
    >>> spatial_mse(2.0, 2.0, 2, 0.5, "max") * 3
    1.0
    """
    n, p = node_count(n), unit_share(share)
    r1, r2 = energy(r1, "r1"), finite(r2, "r2")
    own, _ = error_coefficients(T, n, p)
    if n == 1:
        return own * r1
    if weights(T, n)[-1] == 0.0 and r1 + r2 <= ROUNDING * r1:
        return 0.0
    if math.isinf(own):
        return math.inf
    if r2 < 0.0:
        return (own * (r1 + r2) - _opposed(T, n, p) * r2) / n**2
    shared = r2 / (n - 1)
    return (own * max(r1 - shared, 0.0) + n * feedback_factor(T, n, p) * shared) / n**2


def rand_k_mse(r1: float, n: int, share: float) -> float:
    """(1/n²)(1/p − 1) R1 (Lemma 1).

    >>> rand_k_mse(1.0, 10, 0.5)
    0.01
    """
    n, p = node_count(n), unit_share(share)
    return (1.0 - p) / p * energy(r1, "r1") / n**2


def optimal_ratio(r1: float, r2: float, n: int) -> float:
    """ρ = R2/R1, the ratio whose T is best (Theorem 2), kept within [−1, n − 1]; 0 if R1 = 0 or n = 1.

    >>> optimal_ratio(2.0, 2.0, 2), optimal_ratio(0.0, 0.0, 5)
    (1.0, 0.0)
    """
    n, r1, r2 = node_count(n), energy(r1, "r1"), finite(r2, "r2")
    if n == 1 or r1 == 0.0:
        return 0.0
    return min(max(r2 / r1, -1.0), n - 1.0)
