"""Intervals for a positive quantity from an estimate of it and the estimate's variance."""

from __future__ import annotations

import math

NORMAL = 1.959963984540054
"""The 97.5 % point of the normal law."""


def student_point(degrees: float) -> float:
    """The 97.5 % point of Student's law with two or more degrees of freedom, to 1 %: four terms in 1/ν.

    >>> round(student_point(math.inf), 3), round(student_point(20.0), 3), round(student_point(2.0), 2)
    (1.96, 2.086, 4.27)
    """
    z, per = NORMAL, 1.0 / max(degrees, 2.0)
    terms = (
        z,
        (z**3 + z) / 4.0,
        (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0,
        (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0,
        (79.0 * z**9 + 776.0 * z**7 + 1482.0 * z**5 - 1920.0 * z**3 - 945.0 * z) / 92160.0,
    )
    return sum(term * per**power for power, term in enumerate(terms))


def log_interval(value: float, variance: float, degrees: float) -> tuple[float, float]:
    """A 95 % interval [value/f, value·f], f = exp(t sd/value); [0, value + e t sd] from sd = value on.

    Parameters
    ----------
    value, variance : float
        The estimate, and its variance.
    degrees : float
        The degrees of freedom of the variance.

    >>> low, high = log_interval(1.0, 0.01, math.inf)
    >>> round(low, 3), round(high, 3), log_interval(0.0, 0.0, math.inf)
    (0.822, 1.217, (0.0, 0.0))
    """
    spread, point = math.sqrt(variance), student_point(degrees)
    if spread < value:
        factor = math.exp(point * spread / value)
        return value / factor, value * factor
    return 0.0, max(value, 0.0) + math.e * point * spread
