"""How many of those drawn without replacement are marked: hypergeometric weights, accurate without a gamma function."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .arguments import whole


@np.errstate(under="ignore")
def pmf(population: int, marked: int, drawn: int) -> npt.NDArray[np.float64]:
    """P(M = m) = C(s, m) C(N − s, n − m)/C(N, n) for m = 0..n: n are drawn from N, of which s are marked.

    Exactly 0 outside max(0, n + s − N) ≤ m ≤ min(n, s). Inside, ratios of neighbours, multiplied outward from the mode
    and normalised, as in ``binomial.pmf``: about 1e-13 relative in the bulk up to N = 10⁶.

    Parameters
    ----------
    population, marked, drawn : int
        N, s and n, with 0 ≤ s ≤ N and 0 ≤ n ≤ N.

    >>> (pmf(4, 2, 2) * 6).round(12).tolist()
    [1.0, 4.0, 1.0]
    >>> pmf(5, 4, 3).round(12).tolist()
    [0.0, 0.0, 0.6, 0.4]
    """
    total = whole(population, "population", 0)
    s = whole(marked, "marked", 0, total, "no more than the population")
    n = whole(drawn, "drawn", 0, total, "no more than the population")
    least, most = max(0, n + s - total), min(n, s)
    mode = min(max((n + 1) * (s + 1) // (total + 2), least), most)
    m = np.arange(n + 1, dtype=np.float64)
    weights = np.zeros(n + 1)
    weights[mode] = 1.0
    if mode < most:
        below, above = m[mode:most], m[mode + 1 : most + 1]
        np.cumprod((s - below) * (n - below) / (above * (total - s - n + above)), out=weights[mode + 1 : most + 1])
    if mode > least:
        below, above = m[least:mode][::-1], m[least + 1 : mode + 1][::-1]
        np.cumprod((above * (total - s - n + above)) / ((s - below) * (n - below)), out=weights[least:mode][::-1])
    normalised: npt.NDArray[np.float64] = weights / weights.sum()
    return normalised
