"""The factor a Spatial decoder applies to a coordinate that M nodes sent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import unit_share
from .binomial import count_given_sent, relative_deviations
from .weighting import Weighting, weights


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
    likeliest = float(values[min(len(values) - 1, int(n * unit_share(share)))])
    return np.concatenate(([0.0], top * likeliest / values)), likeliest


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
