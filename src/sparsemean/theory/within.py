"""The server's own error from the spread within coordinates, which stays sharp where nodes are alike."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .binomial import TINY
from .counts import CountLaw
from .forms import CoordinateError, within_form
from .scaling import inverse_weights, relative_deviations
from .weighting import Weighting


class Decoding(NamedTuple):
    """What T makes of a coordinate: the estimate is h(M) S/M, h(m) = g(m) m/(np), h(0) = 0.

    Attributes
    ----------
    excess : (n + 1,) array
        h(m) − 1, m = 0..n; 0 where m cannot happen.
    error : CoordinateError
        The expected error that this leaves.
    """

    excess: npt.NDArray[np.float64]
    error: CoordinateError


@np.errstate(under="ignore", over="ignore")
def decoding(T: Weighting, law: CountLaw) -> Decoding:
    """h and the expected error of a coordinate under a law of the counts.

    Given M_j = m the senders are a uniform m-subset of the n nodes. With X_j the mean and Y_j the variance (divisor
    n − 1) of all n values, E(h S_j/m − X_j)² = h²(1/m − 1/n) Y_j + (h − 1)² X_j², so that the error is A ΣY + F ΣX²,
    A = E[h²(1/M − 1/n); M ≥ 1] and F = E[(h − 1)²], the ``feedback_factor``. It holds for every law that treats nodes
    alike. (∞, ∞) where ρ = −1 and all nodes hardly ever send together.

    Parameters
    ----------
    T : Weighting
        As in ``weights``, fixed before the round.
    law : CountLaw
        Of the nodes that came.

    >>> decoding("one", CountLaw(2, 0.5)).error
    CoordinateError(on_spread=0.25, on_mean=0.5)
    """
    m = np.arange(1.0, law.n + 1.0)
    mean, excess = relative_deviations(inverse_weights(T, law, m)[0], law.count)
    if mean == 0.0:
        return Decoding(excess, CoordinateError(math.inf, math.inf))
    left_out = law.count[1:] * (law.n - m) / (law.n * m)  # P(M = m)(1/m − 1/n)
    on_spread, on_mean = np.sum(left_out * (1.0 + excess[1:]) ** 2), np.sum(law.count * excess * excess)
    return Decoding(excess, CoordinateError(float(on_spread), float(on_mean)))


def within_coefficients(T: Weighting, law: CountLaw) -> tuple[float, float] | None:
    """(on_w, on_z) with E‖estimate − mean‖² = E[on_w W + on_z Z]; None where no two nodes ever send a coordinate.

    W = Σ_j (Q_j − S_j²/M_j) and Z = Σ_j (S_j/M_j)² over the coordinates with M_j ≥ 1, where S_j and Q_j are the sums of
    v and v² over the nodes that sent j, v the raw values times n w_i/Σw (not divided by p).

    *Derivation.* E[Q_j − S_j²/m] = (m − 1)Y_j and E[(S_j/m)²] = X_j² + (1/m − 1/n)Y_j, with Y and X as in ``decoding``.
    So W/E[(M − 1)₊] is unbiased for ΣY and (Z − ΣY·E[1/M − 1/n; M ≥ 1])/P(M ≥ 1) for ΣX².

    Values with independent noise of variance σ²_ij add Σσ²/n², the sum over all nodes and coordinates, and nothing
    else. (∞, ∞) where ρ = −1 and all nodes hardly ever send together.

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
    if float(np.sum(law.count[1:] * (m[1:] - 1.0))) < TINY:
        return None
    error = decoding(T, law).error
    if math.isinf(error.on_mean):
        return math.inf, math.inf
    form = within_form(error, law.n, m, law.count)
    return float(form.on_spread), float(form.on_means[-1])
