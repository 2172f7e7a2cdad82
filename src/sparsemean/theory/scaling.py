"""The factor a Spatial decoder applies to a coordinate that M nodes sent."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .binomial import TINY
from .counts import CountLaw
from .weighting import A, Weighting, weights


def inverse_weights(
    T: Weighting, law: CountLaw, top: npt.NDArray[np.float64] | float = 1.0
) -> tuple[npt.NDArray[np.float64], float]:
    """(top(m) T(c)/T(m) for m = 0..n, 0 at m = 0) and T(c), c the likeliest count: only ratios of T matter.

    Where T(n) = 0 the limit keeps m = n alone.

    >>> law = CountLaw(2, 0.1)
    >>> inverse_weights("max", law)[0].tolist(), inverse_weights(-1, law)[0].tolist()
    ([0.0, 1.0, 0.5], [0.0, 0.0, 1.0])
    """
    values = attainable_weights(T, law.n, law.everyone_may_send)
    if values[-1] == 0.0:
        return np.concatenate(([0.0], top * (values == 0.0))), 0.0
    likeliest = _likeliest(law)
    return scaled_inverse(values, likeliest, top), float(values[likeliest - 1])


def attainable_weights(T: Weighting, n: int, everyone_may_send: bool) -> npt.NDArray[np.float64]:
    """T(1), …, T(n), with T(n − 1) for a T(n) = 0 that no coordinate meets: for ρ = −1 nothing is then divided by 0.

    >>> attainable_weights(-1, 3, True).tolist(), attainable_weights(-1, 3, False).tolist()
    ([1.0, 0.5, 0.0], [1.0, 0.5, 0.5])
    """
    values = weights(T, n)
    if values[-1] == 0.0 and not everyone_may_send:
        values[-1] = values[-2]
    return values


def likeliest_count(n: int, share: float, *, slots: int | None = None) -> int:
    """A count near the mode of M, at least 1.

    >>> likeliest_count(10, 0.25), likeliest_count(10, 1.0), likeliest_count(10, 0.2, slots=10)
    (3, 10, 2)
    """
    return _likeliest(CountLaw(n, share, slots))


def _likeliest(law: CountLaw) -> int:
    return min(law.n, int(law.n * law.share) + 1) if law.slots is None else int(law.given_sent.argmax())


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


def gains(T: Weighting, n: int, share: float, *, slots: int | None = None) -> npt.NDArray[np.float64]:
    """g(m) = (1/T(m)) / Σ_m b_m/T(m) for m = 0..n: the factor on the plain estimate (1/n) Σ_i h_ij/p.

    It is p β̄/T(m) of the definition before Lemma 2; exactly 1 everywhere if T is constant, and E[g | sent] = 1 makes
    the estimate unbiased, for any law of the counts that treats nodes alike. For ρ = −1 the limit is g(n) = 1/b_n and 0
    below, and 0 throughout when b_n is too small for a float; where a balanced draw never lets all n nodes send a
    coordinate, it is the plain formula.

    Parameters
    ----------
    T : Weighting
        As in ``weights``.
    n, share, slots
        As in ``CountLaw``: nodes that came, p, and N of a balanced draw or None.

    >>> gains("one", 3, 0.1).tolist()
    [0.0, 1.0, 1.0, 1.0]
    >>> gains("max", 2, 0.5).round(3).tolist()
    [0.0, 1.333, 0.667]
    >>> gains("max", 2, 0.75, slots=2).round(3).tolist()
    [0.0, 1.5, 0.75]
    """
    return gains_of(T, CountLaw(n, share, slots))


def gains_of(T: Weighting, law: CountLaw) -> npt.NDArray[np.float64]:
    """g(m) of ``gains`` under a law of the counts."""
    inverse, _ = inverse_weights(T, law)
    mean, _ = relative_deviations(inverse, law.given_sent)
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


def beta_bar(T: Weighting, n: int, share: float, *, slots: int | None = None) -> float:
    """β̄ = 1/(p Σ_m b_m/T(m)) (before Lemma 2, with b_m as in its proof); 0 in the limit ρ = −1.

    ``n``, ``share`` and ``slots`` are those of ``CountLaw``.

    >>> round(beta_bar("one", 10, 0.25), 12)
    4.0
    """
    law = CountLaw(n, share, slots)
    inverse, likeliest = inverse_weights(T, law)
    mean, _ = relative_deviations(inverse, law.given_sent)
    return likeliest / mean / law.share if likeliest > 0.0 else 0.0
