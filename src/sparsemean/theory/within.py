"""The server's own error from the spread within coordinates, which stays sharp where nodes are alike."""

from __future__ import annotations

import math

import numpy as np

from .binomial import TINY
from .counts import CountLaw
from .scaling import inverse_weights, relative_deviations
from .spatial import feedback_of
from .weighting import Weighting


@np.errstate(under="ignore", over="ignore")
def within_coefficients(T: Weighting, law: CountLaw) -> tuple[float, float] | None:
    """(on_w, on_z) with E‖estimate − mean‖² = E[on_w W + on_z Z]; None where no two nodes ever send a coordinate.

    W = Σ_j (Q_j − S_j²/M_j) and Z = Σ_j (S_j/M_j)² over the coordinates with M_j ≥ 1, where S_j and Q_j are the sums of
    v and v² over the nodes that sent j, v the raw values times n w_i/Σw (not divided by p).

    *Derivation.* Given M_j = m the senders are a uniform m-subset of the n nodes. With X_j the mean and Y_j the
    variance (divisor n − 1) of all n values, E[Q_j − S_j²/m] = (m − 1)Y_j and E[(S_j/m)²] = X_j² + (1/m − 1/n)Y_j. The
    estimate is h(M_j) S_j/M_j, h(m) = g(m) m/(np), h(0) = 0; so its error is ΣY·E[h²(1/M − 1/n); M ≥ 1] +
    ΣX²·E[(h − 1)²], where W/E[(M − 1)₊] is unbiased for ΣY and (Z − ΣY·E[1/M − 1/n; M ≥ 1])/P(M ≥ 1) for ΣX².

    It holds for every law that treats nodes alike. Values with independent noise of variance σ²_ij add Σσ²/n², the sum
    over all nodes and coordinates, and nothing else. (∞, ∞) where ρ = −1 and all nodes hardly ever send together.

    Parameters
    ----------
    T : Weighting
        As in ``weights``, fixed before the round.
    law : CountLaw
        Of the nodes that came.

    >>> within_coefficients("one", CountLaw(4, 0.5, slots=4))
    (0.25, 0.0)
    >>> within_coefficients("one", CountLaw(4, 0.25, slots=4)) is None
    True
    """
    m = np.arange(law.n + 1.0)
    pairs = float(np.sum(law.count[1:] * (m[1:] - 1.0)))
    if pairs < TINY:
        return None
    mean, off = relative_deviations(inverse_weights(T, law, m[1:])[0], law.count)
    if mean == 0.0:
        return math.inf, math.inf
    left_out = law.count[1:] * (law.n - m[1:]) / (law.n * m[1:])  # P(M = m)(1/m − 1/n)
    spread = float(np.sum(left_out * (1.0 + off[1:]) ** 2))
    on_z = feedback_of(T, law) / float(np.sum(law.count[1:]))
    return (spread - on_z * float(np.sum(left_out))) / pairs, on_z
