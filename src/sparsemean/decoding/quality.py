"""How good an estimate is, from what arrived alone (``theory.estimated``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Shares
from sparsemean.decoding.summary import Summary
from sparsemean.results import Correlation


@dataclass(frozen=True, slots=True)
class Quality:
    """The estimated error of a round, the part of it that few-bit values add, and the correlation.

    ``feedback`` is what a shared memory multiplies its error by.
    """

    error: float | None = None
    error_se: float | None = None
    rounding: float | None = None
    correlation: Correlation | None = None
    feedback: float = 0.0


# Rounds repeat the same n and shares, and these sum over n terms.
@lru_cache(maxsize=1024)
def _coefficients(T: theory.FixedWeighting, nodes: tuple[int, ...], shares: Shares) -> tuple[Doubles, Doubles]:
    """A1 of each class, A2 of each pair of classes."""
    if len(shares) == 1:
        own, cross = theory.error_coefficients(T, nodes[0], shares[0])
        return np.array([own]), np.array([[cross]])
    return theory.mixed_coefficients(T, nodes, shares)


@lru_cache(maxsize=1024)
def _feedback(T: theory.FixedWeighting, nodes: tuple[int, ...], shares: Shares) -> float:
    if len(shares) == 1:
        return theory.feedback_factor(T, nodes[0], shares[0])
    return theory.mixed_feedback(T, nodes, shares)


@np.errstate(over="ignore", invalid="ignore")
def innovation_correlation(summary: Summary, shares: Shares) -> Doubles | None:
    """ρ̂/(n − 1) of each block as this round shows it (``theory.shrunk_correlation``); None without uniform shares.

    NaN in a block where no coordinate came from two nodes, which says nothing of their correlation.
    """
    if not shares or summary.moments is None:
        return None
    energy = np.asarray(shares) @ summary.class_squares
    nodes = summary.nodes.astype(np.float64)
    shown = theory.shrunk_correlation(summary.moments, energy, nodes, _least(summary, shares))
    return np.where(summary.most > 1, shown, math.nan)


@np.errstate(over="ignore", invalid="ignore")
def quality(
    summary: Summary,
    shares: Shares,
    T: Sequence[theory.FixedWeighting | None],
    weight: Doubles,
    dim: int,
) -> Quality:
    """Quality of an estimate with T in each block; ``weight`` is the total each block's mean is divided by.

    Values whose powers overflow leave the error, its standard error or both unknown.
    """
    alive = summary.weight > 0
    known = [t for t, counts in zip(T, alive.tolist(), strict=True) if counts and t is not None]
    if not shares or summary.moments is None or len(known) < np.count_nonzero(alive):
        return Quality()
    moments, weight = summary.moments.where(alive), weight[alive]
    nodes = [tuple(column) for column in summary.class_nodes.T[alive].tolist()]
    found = [_coefficients(t, n, shares) for t, n in zip(known, nodes, strict=True)]
    own, cross = np.stack([a for a, _ in found], axis=-1), np.stack([b for _, b in found], axis=-1)
    least = _least(summary, shares)
    # With several shares the standard error takes the largest coefficients and the smallest share: on the large side.
    error, error_se = theory.estimated_error(
        moments, least, (own.max(axis=0), _largest(cross)), weight, max(map(sum, nodes)), dim
    )
    p = np.array(shares)[:, None]
    noise, energy = p * summary.class_noise[:, alive], p * summary.class_squares[:, alive]
    rounding = float(np.sum((own + 1.0) * noise / weight**2))
    if len(shares) > 1:
        products = summary.products[:, :, alive]
        products[np.diag_indices(len(shares))] -= summary.class_squares[:, alive]
        terms = np.sum(own * energy + noise, axis=0) + np.sum(cross * products, axis=(0, 1))
        error = float(np.sum(terms / weight**2))
    norm = (summary.nodes[alive] / summary.weight[alive]) ** 2  # from w_i x_i to y_i = n w_i x_i / Σw
    r1, r2 = np.sum(energy - noise, axis=0), moments.r2
    r2_se = float(np.sqrt(np.sum(norm**2 * theory.r2_variance(moments, least))))
    correlation = Correlation(float(np.sum(norm * r1)), float(np.sum(norm * r2)), r2_se)
    feedback = max(_feedback(t, n, shares) for t, n in zip(known, nodes, strict=True))
    return Quality(_finite(error), _finite(error_se), _finite(rounding), correlation, feedback)


def _least(summary: Summary, shares: Shares) -> float:
    """The smallest share of those that came: what is least certain."""
    came = summary.class_nodes.sum(axis=1).tolist()
    return min((share for share, here in zip(shares, came, strict=True) if here), default=1.0)


def _largest(cross: Doubles) -> Doubles:
    """The coefficient of largest magnitude among all pairs of classes, per block."""
    pairs = cross.reshape(-1, cross.shape[-1])
    largest: Doubles = np.take_along_axis(pairs, np.abs(pairs).argmax(axis=0)[None], axis=0)[0]
    return largest


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
