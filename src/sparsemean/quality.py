"""How good an estimate is, from what arrived alone (``theory.estimated``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sparsemean import theory
from sparsemean.payload import Doubles
from sparsemean.results import Correlation
from sparsemean.totals import RoundTotals

# Rounds repeat the same n and share, and these sum over n terms.
_coefficients = lru_cache(maxsize=1024)(theory.error_coefficients)
_feedback = lru_cache(maxsize=1024)(theory.feedback_factor)


@dataclass(frozen=True, slots=True)
class Quality:
    """The estimated error and correlation of a round; ``feedback`` is what a shared memory multiplies its error by."""

    error: float | None = None
    error_se: float | None = None
    correlation: Correlation | None = None
    feedback: float = 0.0


@np.errstate(over="ignore", invalid="ignore")
def quality(totals: RoundTotals, share: float | None, T: theory.FixedWeighting | None, weight: Doubles) -> Quality:
    """Quality of a decoder with this T; ``weight`` is the total each block's mean is divided by.

    Values whose powers overflow leave the error, its standard error or both unknown.
    """
    moments = totals.summary()
    if share is None or T is None or moments is None:
        return Quality()
    alive = totals.weight > 0
    moments, nodes = moments.where(alive), totals.nodes[alive]
    own, cross = np.array([_coefficients(T, n, share) for n in nodes.tolist()]).T
    error, error_se = theory.estimated_error(
        moments, share, (own, cross), weight[alive], int(nodes.max()), totals.blocks.dim
    )
    norm = (nodes / totals.weight[alive]) ** 2  # from w_i x_i to y_i = n w_i x_i / Σw
    r1, r2 = theory.estimated_r1_r2(moments, share)
    r2_se = float(np.sqrt(np.sum(norm**2 * theory.r2_variance(moments, share))))
    correlation = Correlation(float(np.sum(norm * r1)), float(np.sum(norm * r2)), r2_se)
    feedback = max(_feedback(T, n, share) for n in set(nodes.tolist()))
    return Quality(_finite(error), _finite(error_se), correlation, feedback)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
