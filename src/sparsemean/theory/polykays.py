"""The fourth-order moments of the nodes' values at a coordinate, from the few of them that came.

K4, K31, K22, K211 and K1111 are means over coordinates of Tukey's polykays, whose expectation over samples of any size
is their value for all nodes: what κ4, κ3μ, σ⁴, σ²μ² and μ⁴ are for independent values. They determine the variance of
every quadratic form of what arrived. Arrays of them have the five in this order along the first axis.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .forms import PerBlock, Vector, inverse

FEW = 30.0
"""Coordinates with two senders up to which the moments are mixed with those of normal values."""

PRIOR = 9.0
"""Variance of K4/K22 that is taken for granted: an estimate with another variance V is shrunk by 9/(9 + V)."""

LEAST, MOST = -2.0, 1000.0
"""Bounds of K4/K22; −2 is that of two values, equally often."""

ROUNDING = 1e-12
"""A sum of squares of this much of a sum of fourth powers is mostly rounding, which central sums are left with."""


class SampleMoments(NamedTuple):
    """E[k2²], E[x̄²k2] and E[x̄⁴] of samples of m values, in terms of the five: (5, …) each, 0 where undefined."""

    kk: Vector
    xk: Vector
    xx: Vector

    @staticmethod
    def of(m: PerBlock) -> SampleMoments:
        """Of samples of so many values; exact for samples without replacement from any finite population.

        >>> SampleMoments.of(2.0).kk.tolist()
        [0.5, 0.0, 3.0, 0.0, 0.0]
        """
        size = np.asarray(m, dtype=np.float64)
        i, two, nothing = inverse(size), np.where(size > 1.0, 1.0, 0.0), np.zeros_like(size)
        one = np.where(size > 0.0, 1.0, 0.0)
        return SampleMoments(
            np.array([two * i, nothing, two * (size + 1.0) * inverse(size - 1.0), nothing, nothing]),
            np.array([two * i * i, two * 2.0 * i, two * i, two, nothing]),
            np.array([i**3, 4.0 * i * i, 3.0 * i * i, 6.0 * i, one]),
        )

    def product(self, a: PerBlock, b: PerBlock, c: PerBlock, d: PerBlock) -> Vector:
        """E[(a k2 + b x̄²)(c k2 + d x̄²)]."""
        found: Vector = a * c * self.kk + (a * d + b * c) * self.xk + b * d * self.xx
        return found


class FourthMoments(NamedTuple):
    """The five, and how many coordinates they rest on.

    Attributes
    ----------
    values : (5, blocks) array
        K4, K31, K22, K211, K1111.
    concentration : (2, blocks) array
        Σz²/(Σz)² over coordinates, of the squared variances z that K22 rests on and of the x̄⁴ that K1111 does: one over
        the number of coordinates, if all are alike.
    """

    values: Vector
    concentration: Vector


def triple_kurtosis(apart: float, neighbours: float, m: Vector, held: Vector) -> float:
    """K4/K22 where no coordinate has four senders, so that K4 and K22 cannot be told apart without an assumption.

    The smaller of two, since too small a one makes intervals too long. First: of k2² of three values, whose mean is
    2 K22 + K4/3, the part ``apart`` is due to K4. That is right for normal values, for single ones far from all others,
    and about right for skewed ones; for long tails on both sides it is too small, for two groups of nodes too large.
    Second: coordinates are like their neighbours, so that K22 is what four nodes at two of them show; where neighbours
    are unlike, that is at least the squared mean variance.

    Parameters
    ----------
    apart : float
        By how much two of three values are closer to each other than to the third: 0 for normal values, 1 if equal.
    neighbours : float
        K22 from neighbouring coordinates; NaN where no four nodes sent two.
    m, held
        As in ``fourth_moments``.
    """
    part = min(max(apart, 0.0), MOST / (MOST + 6.0))
    kurtosis = 6.0 * part / (1.0 - part)
    size = m[:, None]
    number, _, spread, *_ = held
    weights, unbiased, of_k4 = _of_spread(size)
    total = float(np.sum(weights * number))
    if total == 0.0 or not math.isfinite(neighbours):
        return min(kurtosis, 0.0)
    k22, k4 = float(np.sum(weights * unbiased * spread)), float(np.sum(weights * of_k4 * number))
    return min(kurtosis, _bounded((k22 - neighbours * total) / k4, neighbours))


def _of_spread(size: Vector) -> tuple[Vector, Vector, Vector]:
    """Weights of coordinates by count, nearly best for normal values; what makes K22 + K4 u of c2²; and u."""
    nu, two = size - 1.0, np.where(size > 1.0, 1.0, 0.0)
    return two * nu / (nu + 8.0), two * inverse(nu * (nu + 2.0)), nu / (nu + 2.0) * inverse(size)


def fourth_moments(
    m: Vector, held: Vector, fourths: Vector, correlation: Vector, kurtosis: float = 0.0
) -> FourthMoments:
    """The five of each block; the kurtosis K4/K22 is pooled over blocks.

    Parameters
    ----------
    m : (counts,) array
        The counts.
    held : (8, counts, blocks) array
        The last rows of ``kernels.power_sums``, by count.
    fourths : (blocks,) array
        The total of Σ_i y_ij⁴ over the same coordinates.
    correlation : (blocks,) array
        ρ/(n − 1), which stands in where hardly two nodes met.
    kurtosis : float, default 0
        K4/K22 where no coordinate has four senders.
    """
    size = m[:, None]
    number, x4, spread, both, skew, c4, spread2, x8 = held
    two, three, four = (np.where(size > least, 1.0, 0.0) for least in (1, 2, 3))
    i, nu = inverse(size), size - 1.0
    of_k2, unbiased, with_k4 = _of_spread(size)
    of_xk = two * nu / (nu + 2.0)
    of_k3 = three * (size - 2.0) / (size + 6.0)
    of_k4 = four * nu * (size - 2.0) * (size - 3.0) * i / (size + 1.0)  # for which the total of y⁴ is enough

    def total(weights: Vector, sums: Vector = number) -> Vector:
        found: Vector = np.sum(weights * sums, axis=0)
        return found

    known = np.ones_like(size) * (size > 0)
    pooled = total(of_k4).sum()
    ratio = kurtosis
    if pooled > 0.0:
        # Of fewer than four centred values the fourth powers add up to c2²/2.
        above = (fourths + c4.sum(axis=0) - total((two - four) / 2.0, spread)).sum()
        k4 = (above - total(four * 3.0 * nu * i / (size + 1.0), spread).sum()) / pooled
        k22 = (total(of_k4 * unbiased, spread) - k4 * total(of_k4 * with_k4)).sum() / pooled
        ratio = _ratio(float(k4), float(k22), 24.0 / float(pooled))
        if total(four, spread).sum() < ROUNDING * fourths.sum():
            ratio = 0.0
    squares = total(of_k2 * unbiased, spread)
    K22 = squares * inverse(total(of_k2) + ratio * total(of_k2 * with_k4))
    K4 = ratio * K22
    K31 = (total(of_k3 * size * inverse(nu * (size - 2.0)), skew) - K4 * total(of_k3 * i)) * inverse(total(of_k3))
    K211 = total(of_xk * inverse(nu), both) - (K22 + 2.0 * K31) * total(of_xk * i) - K4 * total(of_xk * i * i)
    K211 = K211 * inverse(total(of_xk))
    sent, fourth = total(known), total(known, x4)
    # Of normal values with this correlation and variance τ, E x̄⁴ is 3(r + (1 − r)/m)²τ².
    r = np.clip(correlation, 0.0, 1.0)
    normal = fourth * inverse(3.0 * (r * r * sent + 2.0 * r * (1.0 - r) * total(i) + (1.0 - r) ** 2 * total(i * i)))
    trust = np.minimum(total(two) / FEW, 1.0)
    K22 = trust * K22 + (1.0 - trust) * (1.0 - r) ** 2 * normal
    K211 = trust * K211 + (1.0 - trust) * r * (1.0 - r) * normal
    K4, K31 = trust * K4, trust * K31
    K1111 = fourth - 6.0 * K211 * total(i) - (3.0 * K22 + 4.0 * K31) * total(i * i) - K4 * total(i**3)
    K1111 = K1111 * inverse(sent)
    found = np.array([K4, K31, K22, K211, K1111])
    few = np.array([total((of_k2 * unbiased) ** 2, spread2), total(known, x8)])
    sums = inverse(np.array([squares, fourth]))
    return FourthMoments(found, few * sums * sums)


def _ratio(k4: float, k22: float, variance: float) -> float:
    """K4/K22, shrunk and kept in its bounds."""
    return _bounded(k4 * PRIOR / (PRIOR + variance), k22)


def _bounded(k4: float, k22: float) -> float:
    if k22 <= 0.0:
        return MOST if k4 > 0.0 else 0.0
    return min(max(k4 / k22, LEAST), MOST)


def normal_moments(correlation: float) -> tuple[Vector, float, float]:
    """The five of normal values with variance 1 and correlation r, and their variance 1 − r and squared mean r.

    >>> normal_moments(0.5)[0].tolist()
    [0.0, 0.0, 0.25, 0.25, 0.75]
    """
    r = correlation
    return np.array([0.0, 0.0, (1.0 - r) ** 2, r * (1.0 - r), 3.0 * r * r]), 1.0 - r, r
