"""How far an estimate of the error is from what it estimates: its variance, and the blend of two with the least.

A gap is the difference of a ``Form`` and its target, coordinate by coordinate. With the fourth moments of ``polykays``
its variance given the counts is

    V = [Σ_m N_m φ_m − Σ_m N_m b_m²]₊ · nk/(nk − 1),

φ_m the mean square and b_m the mean of the gap of a coordinate that m nodes sent. The second sum is what the counts
tell; it is estimated from nk values, which the last factor makes up for. Arrays are those of ``forms``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .counts import CountLaw
from .forms import CoordinateError, Form, PerBlock, Vector, column, inverse, left_out, plug_in_form, within_form
from .polykays import SampleMoments, normal_moments
from .weighting import FixedWeighting
from .within import decoding


class Gap(NamedTuple):
    """Coefficients of the mean square and of the mean of a gap.

    Attributes
    ----------
    squares : (5, …) array
        Σ_m N_m φ_m in terms of K4, K31, K22, K211, K1111.
    means : (2, counts, …) array
        b_m in terms of K2 and K11, the means over coordinates of the nodes' variance and of their squared mean.
    """

    squares: Vector
    means: Vector

    def at(self, k2: PerBlock, k11: PerBlock) -> Vector:
        """b_m."""
        found: Vector = self.means[0] * k2 + self.means[1] * k11
        return found


def expected_gap(form: Form, error: CoordinateError, n: PerBlock, m: Vector, number: Vector) -> Gap:
    """Between an estimate of the expected error, or of any AΣY + FΣX², and that."""
    size, counts = column(m, number), np.asarray(n, dtype=np.float64)
    a, f = error
    on_k2, on_x2, dim = form.on_spread * np.maximum(size - 1.0, 0.0), form.on_means, number.sum(axis=0)
    samples, everyone = SampleMoments.of(size), SampleMoments.of(counts)
    mine = np.sum(number * samples.product(on_k2, on_x2, on_k2, on_x2), axis=1)
    told = np.sum(number * (on_k2 + on_x2 * left_out(size, n)), axis=0), np.sum(number * on_x2, axis=0)
    squares = mine - 2.0 * everyone.product(*told, a, f) + dim * everyone.product(a, f, a, f)
    squares[4] = np.sum(number * (on_x2 - f) ** 2, axis=0)
    return Gap(squares, np.array([on_k2 + on_x2 * inverse(size) - (a + f * inverse(counts)), on_x2 - f]))


def noise_squares(error: CoordinateError, n: Vector, noise: Vector) -> Vector:
    """What few-bit values add to ``squares`` of ``expected_gap`` for each coordinate: the target is free of noise.

    ``noise`` is the part of K2 that their noise makes up, of each block.
    """
    a, f = error
    found = np.zeros((5, *noise.shape))
    found[2] = 2.0 * noise * (2.0 - noise) * (a * a * inverse(n - 1.0) + f * f / (n * n))
    found[3] = 4.0 * noise * f * f / n
    return found


def actual_gap(
    form: Form, excess: Vector, n: Vector, m: Vector, number: Vector, noise: Vector, energy: PerBlock = 1.0
) -> Gap:
    """Between a prediction of the actual squared error and that, l = (h x̄ − X)² at a coordinate.

    Parameters
    ----------
    excess : (counts, blocks) array
        h(m) − 1.
    noise : (blocks,) array
        The part of K2 that is the noise of few-bit values, which x̄ has and X has not.
    energy : (counts, blocks) array, default 1
        Mean of x̄² over the coordinates that m nodes sent, relative to what is expected of it: their σ²μ² is in
        proportion. It matters where few coordinates have one count.
    """
    size = m[:, None]
    i, j, c, h = inverse(size), inverse(n - size), excess, 1.0 + excess
    g, q, nothing = h - size / n, 1.0 - size / n, np.zeros_like(excess)
    on_k2, on_x2 = form.on_spread * np.maximum(size - 1.0, 0.0), form.on_means
    spread = (1.0 - noise) * (g * g * i + q * q * j) + noise * h * h * i  # K2 times this is the variance of h x̄ − X
    shared = (1.0 - noise) * g + noise * h  # and K2/m times this its covariance with x̄
    ll = [
        g**4 * i**3 + q**4 * j**3,
        4.0 * c * (g**3 * i * i - q**3 * j * j),
        3.0 * spread * spread,
        6.0 * spread * c * c,
        nothing,
    ]
    lk = [g * g * i * i, 2.0 * g * c * i, spread, c * c, nothing]
    lx = [
        g * g * i**3,
        (4.0 * g * g - 2.0 * g * q) * i * i,
        (spread + 2.0 * shared * shared * i) * i,
        spread + (c + 4.0 * shared) * c * i,
        nothing,
    ]
    mine = SampleMoments.of(size).product(on_k2, on_x2, on_k2, on_x2)
    by_count = number * (np.array(ll) - 2.0 * on_k2 * np.array(lk) - 2.0 * on_x2 * np.array(lx) + mine)
    by_count[3] *= energy
    squares: Vector = np.sum(by_count, axis=1)
    squares[4] = np.sum(number * (c * c - on_x2) ** 2, axis=0)
    return Gap(squares, np.array([on_k2 + on_x2 * i - spread, on_x2 - c * c]))


@lru_cache(maxsize=1024)
@np.errstate(under="ignore", over="ignore", invalid="ignore")
def blend_weight(T: FixedWeighting, law: CountLaw, correlation: float | None) -> float:
    """λ, how much of the error to take from ``within_form``, the rest from ``plug_in_form``: the one of least variance.

    For normal values with the correlation known before the round. 1 where nothing is known: at most 1.4 times the
    least standard deviation in all that was tried, where the plug-in's may be hundreds of times as large.

    Parameters
    ----------
    T : FixedWeighting
    law : CountLaw
        Of the nodes that came.
    correlation : float, optional
        ρ/(n − 1). Any that does not depend on this round's values leaves the error unbiased.

    >>> blend_weight("max", CountLaw(10, 0.5), None), blend_weight("one", CountLaw(10, 0.5), 0.0)
    (1.0, 0.0)
    """
    if correlation is None or law.n == 1:
        return 1.0
    error = decoding(T, law).error.scaled()[0]
    m = np.flatnonzero(law.count)
    size, chance = m.astype(np.float64), law.count[m]
    plug_in, within = (form(error, law.n, size, chance) for form in (plug_in_form, within_form))
    moments, k2, k11 = normal_moments(min(max(correlation, 0.0), 1.0))
    variances = []
    for weight in (0.0, 0.5, 1.0):
        gap = expected_gap(plug_in.blended(within, weight), error, law.n, size, chance)
        variances.append(float(gap.squares @ moments - np.sum(chance * gap.at(k2, k11) ** 2)))
    first, middle, last = variances
    curvature = first - 2.0 * middle + last
    if not curvature > 1e-9 * max(variances):  # the two are the same
        return 1.0
    return min(max(0.5 + (first - last) / (4.0 * curvature), 0.0), 1.0)
