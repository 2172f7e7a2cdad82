"""Gradient descent on the paper's quadratic case study with the Rand-k-Temporal estimator (Theorem 4)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import energy, finite, node_count, unit_share


def learning_rate_limit(n: int, share: float) -> float:
    """min{1/(1 + (8/n)(1/p − 1)), p/2}: the largest rate for which Theorem 4 is proved.

    >>> learning_rate_limit(15, 0.1)
    0.05
    """
    n, p = node_count(n), unit_share(share)
    return min(1.0 / (1.0 + 8.0 / n * ((1.0 - p) / p)), p / 2.0)


def distance_bound(
    rate: float, rounds: npt.ArrayLike, start_distance: float, gradient_energy: float
) -> npt.NDArray[np.float64]:
    """E‖w_t − w*‖² ≤ (1 − η)ᵗ [‖w_0 − w*‖² + (1/n) Σ_i ‖∇F_i(w*)‖²] (Theorem 4).

    F_i(w) = ‖w − e_i‖²/2, so the optimum w* is the mean of the e_i (the paper prints half of it) and
    ∇F_i(w*) = w* − e_i. ``start_distance`` and ``gradient_energy`` are the two terms of the bracket, ``rounds`` is
    one t or an array of them. For a rate above ``learning_rate_limit`` the bound need not hold.

    >>> distance_bound(0.5, [0, 1, 2], 3.0, 1.0).tolist()
    [4.0, 2.0, 1.0]
    """
    eta = finite(rate, "rate")
    if not 0.0 < eta <= 1.0:
        raise InvalidInput(f"rate must lie in (0, 1], not {eta!r}; learning_rate_limit gives the largest proved one")
    t = np.asarray(rounds, dtype=np.float64)
    if not np.all(t >= 0.0):
        raise InvalidInput("rounds must be 0 or more")
    start = energy(start_distance, "start_distance") + energy(gradient_energy, "gradient_energy")
    with np.errstate(under="ignore"):
        return np.asarray((1.0 - eta) ** t * start)
