"""The factor a Spatial decoder applies to a coordinate that M nodes sent."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import unit_share
from .binomial import TINY, count_given_sent
from .weighting import A, Weighting, weights


def inverse_weights(
    T: Weighting, n: int, share: float, top: npt.NDArray[np.float64] | float = 1.0
) -> tuple[npt.NDArray[np.float64], float]:
    """(top(m) T(c)/T(m) for m = 0..n, 0 at m = 0) and T(c), c the likeliest count: only ratios of T matter.

    Where T(n) = 0 the limit keeps m = n alone.

    >>> inverse_weights("max", 2, 0.1)[0].tolist(), inverse_weights(-1, 2, 0.1)[0].tolist()
    ([0.0, 1.0, 0.5], [0.0, 0.0, 1.0])
    """
    values = weights(T, n)
    if values[-1] == 0.0:
        return np.concatenate(([0.0], top * (values == 0.0))), 0.0
    likeliest = likeliest_count(n, share)
    return scaled_inverse(values, likeliest, top), float(values[likeliest - 1])


def likeliest_count(n: int, share: float) -> int:
    """A count near the mode of M, at least 1.

    >>> likeliest_count(10, 0.25), likeliest_count(10, 1.0)
    (3, 10)
    """
    return min(n, int(n * unit_share(share)) + 1)


def scaled_inverse(values: A, likeliest: int, top: float | A = 1.0, xp: ModuleType = np) -> A:
    """top(m) T(c)/T(m) for m = 0..n, 0 at m = 0.

    Parameters
    ----------
    values : array or tensor
        T(1), …, T(n), all positive.
    likeliest : int
        c; dividing by T(c) keeps the means of 1/T within the range of a float.
    top : float, array or tensor, default 1.0
        The numerator, one number or one per m = 1..n.
    xp : module, default numpy
        ``numpy`` or ``torch``, whichever made ``values``.

    >>> scaled_inverse(np.array([1.0, 2.0]), 1).tolist()
    [0.0, 1.0, 0.5]
    """
    inverse: A = top * values[likeliest - 1] / values
    return xp.concatenate([xp.zeros_like(inverse[:1]), inverse])  # type: ignore[no-any-return]


def relative_deviations(
    values: npt.NDArray[np.float64], probabilities: npt.NDArray[np.float64]
) -> tuple[float, npt.NDArray[np.float64]]:
    """E[v] and v/E[v] − 1 of ``mean_and_deviations``, for NumPy arrays.

    >>> mean, off = relative_deviations(np.array([1.0, 3.0]), np.array([0.5, 0.5]))
    >>> mean, off.tolist()
    (2.0, [-0.5, 0.5])
    """
    mean, off = mean_and_deviations(values, probabilities, int(probabilities.argmax()))
    return float(mean), off


@np.errstate(under="ignore", over="ignore")
def mean_and_deviations(values: A, probabilities: A, mode: int, xp: ModuleType = np) -> tuple[A, A]:
    """E[v] and v/E[v] − 1 for non-negative v, measured from the value at the mode so that nothing cancels.

    A constant v deviates by exactly 0, and so does what cannot happen. A mean too small for a normal number is returned
    as 0, with no deviations.

    Parameters
    ----------
    values, probabilities : array or tensor
        v(m) and P(M = m), m = 0..n.
    mode : int
        The m of largest probability. It is asked for, since finding it in a tensor would read from its device.
    xp : module, default numpy
        ``numpy`` or ``torch``, whichever made the arrays.
    """
    base = values[mode]
    step = values - base
    shift = (probabilities * step).sum()
    mean = base + shift
    vanishes = mean < TINY
    off = (step - shift) / xp.where(vanishes, 1.0, mean)
    return xp.where(vanishes, 0.0, mean), xp.where((probabilities > 0.0) & ~vanishes, off, 0.0)


def gains(T: Weighting, n: int, share: float) -> npt.NDArray[np.float64]:
    """g(m) = (1/T(m)) / Σ_m b_m/T(m) for m = 0..n: the factor on the plain estimate (1/n) Σ_i h_ij/p.

    It is p β̄/T(m) of the definition before Lemma 2; exactly 1 everywhere if T is constant, and E[g | sent] = 1 makes
    the estimate unbiased. For ρ = −1 the limit is g(n) = 1/b_n and 0 below, and 0 throughout when
    b_n is too small for a float.

    >>> gains("one", 3, 0.1).tolist()
    [0.0, 1.0, 1.0, 1.0]
    >>> gains("max", 2, 0.5).round(3).tolist()
    [0.0, 1.333, 0.667]
    """
    inverse, _ = inverse_weights(T, n, share)
    mean, _ = relative_deviations(inverse, count_given_sent(n, share))
    return inverse / mean if mean > 0.0 else np.zeros_like(inverse)


def fill_gains(T: Weighting, n: int) -> npt.NDArray[np.float64]:
    """g(m) = T(n)/T(m) for m = 0..n: for encoders without a uniform share, such as top-k (biased).

    What every node sent is averaged exactly.

    >>> fill_gains("max", 2).tolist()
    [0.0, 2.0, 1.0]
    """
    values = weights(T, n)
    if values[-1] == 0.0:
        raise InvalidInput("T(n) = 0 leaves nothing to fill with; use a ratio above -1")
    return np.concatenate(([0.0], values[-1] / values))


def beta_bar(T: Weighting, n: int, share: float) -> float:
    """β̄ = 1/(p Σ_m b_m/T(m)) (before Lemma 2, with b_m as in its proof); 0 in the limit ρ = −1.

    >>> round(beta_bar("one", 10, 0.25), 12)
    4.0
    """
    inverse, likeliest = inverse_weights(T, n, share)
    mean, _ = relative_deviations(inverse, count_given_sent(n, share))
    return likeliest / mean / unit_share(share) if likeliest > 0.0 else 0.0
