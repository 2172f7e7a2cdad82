"""The server's own error estimate, from sums over what arrived."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import ModuleType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import node_count, unit_share
from .weighting import A

LEAST_RATIO = -0.5
"""Least estimate of R2/R1 that a decoder goes by. Towards −1 all weight goes to the few coordinates that everybody
sent: with two or three nodes, whose estimates are noisy, single rounds were 100 times as wrong as plain Rand-k."""

Sums: TypeAlias = float | npt.NDArray[np.float64]
"""One number, or one per block of coordinates; functions that take ``xp``, or need none, take torch tensors as well."""


@dataclass(frozen=True)
class Moments:
    """Sums over coordinates j of the power sums S, Q, P3, P4 = Σ_i y_ijʳ, r = 1..4, over the nodes i.

    y_ij = w_i (received value − what the server expected)/p where node i sent j, and 0 elsewhere. All are additive
    over coordinate ranges, not over nodes. ``noise`` is the part of Σ_j Q_j that the rounding of few-bit values adds:
    the sum of their variances.

    >>> Moments.of([[1.0, 0.0], [2.0, 3.0]])
    Moments(s2=18.0, q=14.0, p4=98.0, sp3=108.0, q2=106.0, qs2=126.0, noise=0.0)
    """

    s2: Sums
    q: Sums
    p4: Sums
    sp3: Sums
    q2: Sums
    qs2: Sums
    noise: Sums = 0.0

    @staticmethod
    def of(y: npt.ArrayLike) -> Moments:
        """The moments of a full (n, d) table, zeros where nothing arrived: the readable definition."""
        y = np.asarray(y, dtype=np.float64)
        s, q, p3, p4 = (np.sum(y**r, axis=0) for r in (1, 2, 3, 4))
        sums = ((s * s).sum(), q.sum(), p4.sum(), (s * p3).sum(), (q * q).sum(), (q * s * s).sum())
        return Moments(*map(float, sums))

    @property
    def r2(self) -> Sums:
        """Σ_j (S_j² − Q_j) = Σ_j Σ_{i ≠ l} y_ij y_lj: unbiased for κ R2, κ = 1 for independent draws."""
        return self.s2 - self.q

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    def where(self, blocks: npt.NDArray[np.bool_]) -> Moments:
        """The moments of the chosen blocks."""
        return Moments(*(np.asarray(sums, dtype=np.float64)[blocks] for sums in vars(self).values()))


def estimated_r1_r2(moments: Moments, share: float, pair_factor: Sums = 1.0) -> tuple[Sums, Sums]:
    """Unbiased (R1, R2) of the weighted residuals: p (Σ_j Q_j − noise) and Σ_j (S_j² − Q_j)/κ.

    Parameters
    ----------
    moments : Moments
        Of the received residuals.
    share : float
        p, the share of its coordinates that a node sends.
    pair_factor : float or array, default 1.0
        κ, ``CountLaw.pair_factor`` of a balanced draw. Where it is 0 no two nodes ever send the same coordinate: R2 is
        then unknown, NaN.

    >>> estimated_r1_r2(Moments.of([[2.0, 0.0], [2.0, 2.0]]), 0.5)
    (6.0, 8.0)
    """
    return unit_share(share) * (moments.q - moments.noise), moments.r2 * _inverse(pair_factor)


def _inverse(pair_factor: Sums) -> Sums:
    """1/κ, NaN where κ = 0."""
    factor = np.asarray(pair_factor, dtype=np.float64)
    if not np.all((factor >= 0.0) & np.isfinite(factor)):
        raise InvalidInput(f"pair_factor must be 0 or more, not {pair_factor!r}; it is CountLaw.pair_factor")
    return _plain(np.divide(1.0, factor, out=np.full(factor.shape, math.nan), where=factor > 0.0))


def _variance(moments: Moments, share: float, on_q: Sums, on_c: Sums, xp: ModuleType = np) -> Sums:
    """Unbiased Var(on_q ΣQ + on_c ΣC), C = S² − Q, if coordinates were sent independently of each other.

    Noise leaves less of the received energy certain, as a smaller share would: p (1 − noise/ΣQ), on average.
    """
    certain = share * (1.0 - _ratio(moments.noise, moments.q, xp))
    pairs = (moments.q2 - moments.p4) / 2.0
    triples = (moments.qs2 - moments.q2 - 2.0 * moments.sp3 + 2.0 * moments.p4) / 2.0
    of_c = 4.0 * ((1.0 + certain) * pairs + 2.0 * triples)
    both = 2.0 * (moments.sp3 - moments.p4)
    return (1.0 - certain) * (on_q * on_q * moments.p4 + 2.0 * on_q * on_c * both + on_c * on_c * of_c)


def r2_variance(moments: Moments, share: float, xp: ModuleType = np) -> Sums:
    """Estimated variance of the R2 of ``estimated_r1_r2``: what to shrink it by; not below 0.

    4(1 − p) Σ_j [(1 + p) m22 + 2 m211], m22 and m211 the sums of y_i² y_l² and y_i² y_l y_o over distinct nodes. For
    nodes that draw independently; of a balanced draw's R2 it is not the variance.

    Parameters
    ----------
    moments : Moments
        Of the received residuals.
    share : float
        p, the share of its coordinates that a node sends.
    xp : module, default numpy
        ``torch``, where the moments are torch tensors.

    >>> r2_variance(Moments.of([[2.0, 0.0], [2.0, 2.0]]), 0.5)
    48.0
    """
    return _plain(xp.clip(_variance(moments, unit_share(share), 0.0, 1.0, xp), 0.0, None))


def shrunk_correlation(
    moments: Moments, r1: Sums, n: Sums, share: float, xp: ModuleType = np, *, pair_factor: Sums = 1.0
) -> Sums:
    """ρ̂/(n − 1), ρ̂ = (R2/R1) · R2²/(R2² + V), V the variance of R2; ρ̂ in (−1, n − 1], 0 where nothing is known.

    The factor R2²/(R2² + V) is what a prior with variance R2² would give: a ρ̂ that is mostly noise is worse than none.
    V is that of independent draws (``r2_variance``).

    Parameters
    ----------
    moments : Moments
        Of the received residuals.
    r1 : float or array
        The energy p Σ_j Q_j with its noise, since it is the ratio to that which makes T best.
    n : int or array
        How many nodes sent; plain numbers also where the moments are tensors.
    share : float
        p, the share of its coordinates that a node sends.
    xp : module, default numpy
        ``torch``, where the moments are torch tensors.
    pair_factor : float or array, default 1.0
        κ, as in ``estimated_r1_r2``; where it is 0, nothing is known.

    >>> shrunk_correlation(Moments.of([[2.0, 0.0], [2.0, 2.0]]), 6.0, 2, 0.5) * 42
    32.0
    """
    r2, variance = moments.r2, r2_variance(moments, share, xp)
    ratio = _ratio(r2 * _inverse(pair_factor), r1, xp) * _ratio(r2 * r2, r2 * r2 + variance, xp)
    others = np.asarray(n) - 1.0
    return _plain(_ratio(xp.clip(ratio, LEAST_RATIO, np.maximum(others, 0.0)), others, xp))


def _plain(numbers: A) -> A | float:
    """A Python number for a single one of NumPy's. Tensors stay on their device."""
    return numbers if numbers.ndim or not isinstance(numbers, np.ndarray | np.generic) else float(numbers)


def _ratio(part: Sums, whole: Sums, xp: ModuleType) -> npt.NDArray[np.float64]:
    """part/whole, 0 where that is 0/0 or no number."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        quotient = xp.asarray(part, dtype=xp.float64) / whole
    found: npt.NDArray[np.float64] = xp.where(xp.isfinite(quotient), quotient, 0.0)
    return found


def estimated_error(
    moments: Moments,
    share: float,
    coefficients: tuple[Sums, Sums],
    total_weight: Sums,
    n: int,
    dim: int,
    *,
    pair_factor: Sums = 1.0,
) -> tuple[float, float]:
    """Estimate of E‖estimate − mean‖² and its standard error: Σ over blocks of (A1 R1 + A2 R2)/W².

    Unbiased for T and expectations fixed before the round, so it may be negative. Few-bit values add
    (A1 + 1) p · noise/W². The standard error takes off, for a sample of fixed size per node, only the part
    (1 − p)/p (Σ (A1 R1 + 2 A2 R2)/W²)²/(nd) that the sums reveal, and is therefore on the large side. It assumes that
    nodes draw independently, also where ``coefficients`` and ``pair_factor`` are those of a balanced draw.

    Parameters
    ----------
    moments : Moments
        Of the received residuals.
    share : float
        p, the share of its coordinates that a node sends.
    coefficients : pair of float or array
        A1 and A2 of ``error_coefficients``, for the draw that was used.
    total_weight : float or array
        W = Σ_i w_i; a block of weight 0 is left out.
    n : int
        How many nodes sent.
    dim : int
        The length of the whole vector.
    pair_factor : float or array, default 1.0
        κ, as in ``estimated_r1_r2``. Where it is 0 the error is unknown, (NaN, NaN), and ``error_bound`` bounds it.

    >>> y = Moments.of([[2.0, 0.0, 0.0, 6.0], [2.0, 2.0, 0.0, 0.0]])
    >>> error, se = estimated_error(y, 0.5, (1.0, 0.0), 2.0, n=2, dim=4)
    >>> error, round(se, 3)
    (6.0, 2.449)
    """
    p = unit_share(share)
    if p == 1.0 and not np.any(moments.noise):
        return 0.0, 0.0
    if dim < 1:
        raise InvalidInput(f"dim must be at least 1, not {dim!r}; it is the length of a vector")
    own, cross = coefficients
    own, cross, rounded = _per_weight(total_weight, own, cross * _inverse(pair_factor), own + 1.0)
    if np.isnan(cross).any():
        return math.nan, math.nan
    if not (np.isfinite(own).all() and np.isfinite(cross).all()):
        return math.inf, math.inf
    rounding = float(np.sum(rounding_terms(moments, p, rounded)))
    # Scaled to 1 before squaring: the coefficients of a ratio near -1 reach 1e300.
    scale = max(float(np.abs(own).max()), float(np.abs(cross).max()))
    if scale == 0.0:
        return rounding, 0.0
    own, cross = own / scale, cross / scale
    error = float(np.sum(error_terms(moments, p, own, cross)))
    independent = float(np.sum(_variance(moments, p, own * p, cross)))
    revealed = np.sum(error_terms(moments, p, own, 2.0 * cross))
    fixed_size = (1.0 - p) / p * float(np.square(revealed)) / (node_count(n) * dim)
    return scale * error + rounding, scale * math.sqrt(max(independent - fixed_size, 0.0))


def error_bound(moments: Moments, share: float, own: Sums, total_weight: Sums) -> float:
    """Unbiased estimate of (A1 + 1)(R1 + Σσ²)/W², summed over blocks: at least the error, where R2 cannot be known.

    A1 R1 + A2 R2 is at most (A1 − A2) R1 for −1 ≤ A2 ≤ 0, since R2 ≥ −R1. In a balanced draw with Np ≤ 1 it is
    (1/p) R1/n² for every T, which exceeds the error by ‖mean‖²: all of it if nodes are alike.

    Parameters
    ----------
    moments : Moments
        Of the received residuals.
    share : float
        p, the share of its coordinates that a node sends.
    own : float or array
        A1 of ``error_coefficients``.
    total_weight : float or array
        W = Σ_i w_i; a block of weight 0 is left out.

    >>> error_bound(Moments.of([[2.0, 0.0], [0.0, 4.0]]), 0.5, 1.0, 2.0)
    5.0
    """
    (rounded,) = _per_weight(total_weight, own + 1.0)
    return float(np.sum(rounded * (unit_share(share) * moments.q)))


def _per_weight(total_weight: Sums, *factors: Sums) -> list[npt.NDArray[np.float64]]:
    """Each factor over W², 0 where W is."""
    weight, *each = np.broadcast_arrays(np.asarray(total_weight, dtype=np.float64), *factors)
    return [np.divide(a, weight**2, out=np.zeros(weight.shape), where=weight > 0.0) for a in each]


def error_terms(moments: Moments, share: float, own: Sums, cross: Sums, pair_factor: Sums = 1.0) -> Sums:
    """A1 R1 + A2 R2 of each block, R1 and R2 estimated; ``own`` and ``cross`` are A1 and A2, here or over W².

    ``pair_factor`` is κ, as in ``estimated_r1_r2``.
    """
    return own * (share * (moments.q - moments.noise)) + cross * _inverse(pair_factor) * moments.r2


def rounding_terms(moments: Moments, share: float, rounded: Sums) -> Sums:
    """(A1 + 1) p · noise of each block: what few-bit values add; ``rounded`` is A1 + 1, here or over W²."""
    return rounded * share * moments.noise
