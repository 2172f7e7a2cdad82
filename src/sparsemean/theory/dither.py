"""Subtractive dither that is shared out among the senders of a value: what is left of the noise in their mean.

Sender i of s planned ones has the value x_i and rounds by the step h with the dither frac(u + r_i/s), its rank r_i
being part of a random order. Its noise is uniform with variance h²/12, as with a dither of its own. Two senders whose
values and ranks differ by θ steps have noise of covariance h²·B₂({θ})/2, with B₂(t) = t² − t + 1/6.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.theory.arguments import whole


def rank_covariance(apart: npt.ArrayLike, senders: int) -> Doubles:
    """Covariance of the noise of two senders, in units of h², averaged over their ranks.

    The sum of B₂({θ + r/s}) over all r is B₂({sθ})/s; without r = 0, which is the sender itself, there are s − 1 left.

    Parameters
    ----------
    apart
        (x_i − x_l)/h.
    senders
        s, 2 or more.

    >>> float(rank_covariance(0.0, 2)), float(rank_covariance(0.5, 2))
    (-0.041666..., 0.083333...)
    """
    s, theta = whole(senders, "senders", 2), np.asarray(apart, np.float64)
    return (_bernoulli(s * theta) / s - _bernoulli(theta)) / (2.0 * (s - 1))


def shared_dither_variance(values: npt.ArrayLike, step: float = 1.0, senders: int | None = None) -> float:
    """Variance of the mean of these values as they come back, over the dither and the ranks.

    For m equal values of s planned ones it is h²/(12ms)·(s − m + 1), in place of h²/(12m).

    Parameters
    ----------
    values
        x of those who came.
    step
        h, common to all.
    senders
        s, how many were planned; by default as many as came.

    >>> 12 * 16 * shared_dither_variance([0.3] * 4)
    1.0...
    """
    x = np.asarray(values, np.float64) / step
    s = x.size if senders is None else senders
    if s < 2:
        return step**2 / 12.0
    covariance = rank_covariance(x[:, None] - x, s)
    np.fill_diagonal(covariance, 1.0 / 12.0)
    return float(step**2 * np.mean(covariance))


def shared_dither_bound(senders: int) -> float:
    """How many times the variance of independent dither it can be at most, whatever the values: 1 + 1/s + 1/(s − 1).

    Of two values half a step apart it is 2: with s = 2 both have the same noise.

    >>> shared_dither_bound(2), shared_dither_bound(100)
    (2.5, 1.020...)
    """
    s = whole(senders, "senders", 2)
    return 1.0 + 1.0 / s + 1.0 / (s - 1.0)


def _bernoulli(t: Doubles) -> Doubles:
    """B₂ of the fractional part."""
    t = t - np.floor(t)
    return t * t - t + 1.0 / 6.0
