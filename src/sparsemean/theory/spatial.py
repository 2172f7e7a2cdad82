"""The exact error of Rand-k-Spatial for any T, in forms that do not cancel."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from .arguments import energy, finite, node_count, unit_share
from .counts import CountLaw
from .scaling import attainable_weights, gains_of, inverse_weights, relative_deviations
from .weighting import A, Weighting

ROUNDING = 4 * float(np.finfo(np.float64).eps)


def constants(T: Weighting, n: int, share: float, *, slots: int | None = None) -> tuple[float, float]:
    """(c1, c2) of Theorem 1: what T adds to Rand-k's error on R1, and what it takes off on R2.

    With e(m) = g(m) − 1, which has mean 0 under b_m,

        c1 = (1/p) Σ_m b_m e(m)²,
        c2 = −Σ_m b_m e(m) [u(m) e(m) + 2(u(m) − κ)],  u(m) = (m − 1)/((n − 1)p),

    κ = Σ_m b_m u(m) the ``CountLaw.pair_factor``, 1 for independent draws. Both are 0 for constant T and for share = 1;
    in general c2 is good to 1e-12 or to what the rounding of T itself leaves, some 1e-16. (∞, −∞) where ρ = −1 and b_n
    is too small for a float. ``n``, ``share`` and ``slots`` are those of ``CountLaw``.

    >>> constants("one", 10, 0.1)
    (0.0, 0.0)
    >>> c1, c2 = constants("max", 2, 0.5)
    >>> round(c1, 12), round(c2, 12)
    (0.222222222222, 0.555555555556)
    """
    return _constants(T, CountLaw(n, share, slots))


@np.errstate(under="ignore", over="ignore")
def _constants(T: Weighting, law: CountLaw) -> tuple[float, float]:
    mean, excess = relative_deviations(inverse_weights(T, law)[0], law.given_sent)
    if mean == 0.0:
        return math.inf, -math.inf
    ratios = pair_ratios(law.n, law.share)
    c1, c2 = constants_of(excess, law.given_sent, ratios, law.share, law.pair_factor)
    return float(c1), float(c2)


def pair_ratios(n: int, share: float) -> npt.NDArray[np.float64]:
    """u(m) = (m − 1)/((n − 1)p) for m = 0..n: κ P(M = m | two given nodes sent) over P(M = m | one of them sent).

    >>> pair_ratios(3, 0.5).tolist()
    [-1.0, 0.0, 1.0, 2.0]
    """
    ratios: npt.NDArray[np.float64] = np.arange(-1.0, n) / (max(n - 1, 1) * share)
    return ratios


def constants_of(excess: A, sent: A, ratios: A, share: float, pair_factor: float = 1.0) -> tuple[A, A]:
    """(c1, c2) of ``constants`` from its e(m), b_m and u(m), m = 0..n, and κ, as NumPy arrays or as torch tensors."""
    pull = sent * excess
    c1 = (pull * excess).sum() / share
    return c1, 0.0 - (pull * ratios * excess + 2.0 * pull * (ratios - pair_factor)).sum()


def error_coefficients(T: Weighting, n: int, share: float, *, slots: int | None = None) -> tuple[float, float]:
    """(A1, A2) with MSE = (A1 R1 + A2 R2)/n²: A1 = 1/p − 1 + c1 and A2 = κ − 1 − c2 (Theorem 1, where κ = 1).

    That is A1 = (1/p) Σ_m b_m g(m)² − 1 and A2 = Σ_m b_m u(m) g(m)² − 1, for any law that treats nodes alike. In a
    balanced draw with np whole and all present, T = 1 has A2 = −A1/(n − 1); with Np ≤ 1, A2 = −1.

    Parameters
    ----------
    T : Weighting
        As in ``weights``.
    n, share, slots
        As in ``CountLaw``: nodes that came, p, and N of a balanced draw or None.

    >>> error_coefficients("one", 10, 0.25)
    (3.0, 0.0)
    >>> error_coefficients("one", 4, 0.25, slots=4)
    (3.0, -1.0)
    """
    return _coefficients(T, CountLaw(n, share, slots))


def _coefficients(T: Weighting, law: CountLaw) -> tuple[float, float]:
    return coefficients_of(*_constants(T, law), law.share, law.pair_excess)


def coefficients_of(c1: A, c2: A, share: float, pair_excess: float = 0.0) -> tuple[A, A]:
    """(A1, A2) of ``error_coefficients`` from the constants of Theorem 1 and κ − 1, as numbers or as tensors."""
    return (1.0 - share) / share + c1, pair_excess - c2  # type: ignore[return-value]  # float + A is no float


def feedback_factor(T: Weighting, n: int, share: float, *, slots: int | None = None) -> float:
    """f = E[(g(M) M/(np) − 1)²] = (A1 + (n − 1) A2)/n: the error of a mean of n equal vectors, relative.

    Also what a shared memory b = last estimate (Appendix D) multiplies its own error by each round: at 1 or above
    it diverges. (1/p − 1)/n for T = 1 and independent draws; least for "max". 0 where M cannot vary. ``n``, ``share``
    and ``slots`` are those of ``CountLaw``.

    >>> round(feedback_factor("one", 10, 0.01), 12)
    9.9
    >>> feedback_factor("max", 2, 0.5) * 3
    1.0
    >>> feedback_factor("one", 2, 0.5, slots=2)
    0.0
    """
    return feedback_of(T, CountLaw(n, share, slots))


@np.errstate(under="ignore", over="ignore")
def feedback_of(T: Weighting, law: CountLaw) -> float:
    """f of ``feedback_factor`` under a law of the counts."""
    mean, excess = relative_deviations(inverse_weights(T, law, np.arange(1.0, law.n + 1.0))[0], law.count)
    return float(np.sum(law.count * excess * excess)) if mean > 0.0 else math.inf


@np.errstate(under="ignore", over="ignore")
def _opposed(T: Weighting, law: CountLaw) -> float:
    """A1 − A2 = (1/p) Σ_m b_m g(m)² (n − m)/(n − 1): the coefficient for vectors that sum to zero."""
    gain = gains_of(T, law)
    return float(np.sum(law.given_sent * gain * gain * np.arange(law.n, -1.0, -1.0))) / (law.n - 1) / law.share


def spatial_mse(r1: float, r2: float, n: int, share: float, T: Weighting, *, slots: int | None = None) -> float:
    """E‖estimate − mean‖² = (A1 R1 + A2 R2)/n² of Rand-k-Spatial (Theorem 1).

    Written as a sum of non-negative terms for every R2 in [−R1, (n − 1)R1]. For ρ = −1 it is 0 if the vectors
    sum to zero (to rounding), and may be infinite if they do not; where a balanced draw never lets all n nodes send a
    coordinate, it is the plain formula.

    Parameters
    ----------
    r1, r2 : float
        As ``correlation`` returns them, of the nodes that came.
    n, share, slots
        As in ``CountLaw``: nodes that came, p, and N of a balanced draw or None.
    T : Weighting
        As in ``weights``.

    >>> spatial_mse(1.0, 0.0, 10, 0.5, "one")
    0.01
    >>> spatial_mse(2.0, 2.0, 2, 0.5, "max") * 3
    1.0
    >>> spatial_mse(2.0, 2.0, 2, 0.5, "one", slots=2)
    0.0
    """
    law = CountLaw(n, share, slots)
    n, r1, r2 = law.n, energy(r1, "r1"), finite(r2, "r2")
    own, _ = _coefficients(T, law)
    if n == 1:
        return own * r1
    if attainable_weights(T, n, law.everyone_may_send)[-1] == 0.0 and r1 + r2 <= ROUNDING * r1:
        return 0.0
    if math.isinf(own):
        return math.inf
    if r2 < 0.0:
        return (own * (r1 + r2) - _opposed(T, law) * r2) / n**2
    shared = r2 / (n - 1)
    return (own * max(r1 - shared, 0.0) + n * feedback_of(T, law) * shared) / n**2


def rand_k_mse(r1: float, n: int, share: float) -> float:
    """(1/n²)(1/p − 1) R1 (Lemma 1), of independent draws; of balanced ones it is ``spatial_mse`` with T = "one".

    >>> rand_k_mse(1.0, 10, 0.5)
    0.01
    """
    n, p = node_count(n), unit_share(share)
    return (1.0 - p) / p * energy(r1, "r1") / n**2


def first_ratio(n: int) -> float:
    """The ρ to go by before any round has shown one: n/2, the paper's Avg, from five nodes on, n/8 below.

    Where nodes are similar, as they mostly are, it gains the first round (2.4e-3 instead of 9.8e-2 of the energy on
    Fashion-MNIST with 100 nodes). Where they are not it loses 10 to 24 %; with two or three nodes Avg would lose
    74 % and 40 %, n/8 loses 5 %.

    >>> first_ratio(10), first_ratio(2)
    (5.0, 0.25)
    """
    n = node_count(n)
    return n / 2 if n >= 5 else n / 8


def optimal_ratio(r1: float, r2: float, n: int) -> float:
    """ρ = R2/R1, the ratio whose T is best (Theorem 2), kept within [−1, n − 1]; 0 if R1 = 0 or n = 1.

    It is best under every law that treats nodes alike: b_m g(m)² is weighted by R1 + R2 (m − 1)/(n − 1), whatever b_m.

    >>> optimal_ratio(2.0, 2.0, 2), optimal_ratio(0.0, 0.0, 5)
    (1.0, 0.0)
    """
    n, r1, r2 = node_count(n), energy(r1, "r1"), finite(r2, "r2")
    if n == 1 or r1 == 0.0:
        return 0.0
    return min(max(r2 / r1, -1.0), n - 1.0)
