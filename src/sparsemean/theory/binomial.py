"""How many nodes send a coordinate: binomial weights, accurate without a gamma function."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import finite, node_count, unit_share

TINY = float(np.finfo(np.float64).tiny)
"""Smallest normal number: an event less likely than this is taken as impossible."""


@np.errstate(under="ignore")
def pmf(n: int, p: float) -> npt.NDArray[np.float64]:
    """P(M = m) = C(n, m) pᵐ (1 − p)ⁿ⁻ᵐ for m = 0..n (Section 3, "The Rand-k-Spatial family").

    Ratios of neighbours, multiplied outward from the mode and normalised: about 1e-13 relative in the bulk up to
    n = 10⁶, where differences of log-gammas lose nine digits.

    >>> pmf(2, 0.5).tolist()
    [0.25, 0.5, 0.25]
    """
    n = n if n == 0 else node_count(n)
    p = finite(p, "p")
    if not 0.0 <= p <= 1.0:
        raise InvalidInput(f"p must lie in [0, 1], not {p!r}; it is a probability")
    q = 1.0 - p
    mode = min(n, int((n + 1) * p))
    m = np.arange(n + 1, dtype=np.float64)
    weights = np.ones(n + 1)
    if mode < n:
        np.cumprod((n - m[mode:-1]) * p / (m[mode + 1 :] * q), out=weights[mode + 1 :])
    if mode > 0:
        np.cumprod((m[mode:0:-1] * q) / ((n - m[mode - 1 :: -1]) * p), out=weights[mode - 1 :: -1])
    # 1 − p is rounded once but enters |m − mode| times; p − (1 − q) is its exact rounding error.
    if 0.0 < p < 1.0:
        weights *= np.exp((m - mode) * ((p - (1.0 - q)) / q))
    normalised: npt.NDArray[np.float64] = weights / weights.sum()
    return normalised


def count_given_sent(n: int, share: float) -> npt.NDArray[np.float64]:
    """b_m = P(M = m | a given node sent) = P(1 + Binomial(n − 1, p) = m), m = 0..n (proof of Theorem 2).

    This, not a binomial conditioned on M ≥ 1, is the law under which the estimator is unbiased.

    >>> count_given_sent(3, 0.5).tolist()
    [0.0, 0.25, 0.5, 0.25]
    """
    return np.concatenate(([0.0], pmf(node_count(n) - 1, unit_share(share))))
