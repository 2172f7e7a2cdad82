"""The band around a line: two standard errors to either side."""

from __future__ import annotations

import math

import numpy as np

from sparsemean._types import Doubles
from sparsemean.lab.report.figure import Scale
from sparsemean.lab.report.tables import Curve


def band(curve: Curve, scale: Scale) -> tuple[Doubles, Doubles]:
    """Lower and upper edge; NaN where there is none, and where the line itself has left the axis at its upper end.

    Linear: mean ± 2 standard errors. On a logarithmic axis the lower edge is as far below the line as the upper one is
    above it, mean² / (mean + 2 standard errors): nearly the same where the error is small, and never below zero.

    >>> from sparsemean.lab.report.tables import curve
    >>> line = curve([0, 0], [2.0, 4.0])
    >>> [edge.tolist() for edge in band(line, Scale(False, 0.0, 9.0))]
    [[1.0], [5.0]]
    >>> [edge.tolist() for edge in band(line, Scale(True, 0.1, 9.0))]
    [[1.8], [5.0]]
    """
    known = np.isfinite(curve.error) & np.isfinite(curve.mean) & (curve.mean <= scale.high)
    mean = np.where(known, curve.mean, math.nan)
    high = mean + 2 * curve.error
    if not scale.log:
        return mean - 2 * curve.error, high
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(mean > 0, mean**2 / high, math.nan)
    return low, high
