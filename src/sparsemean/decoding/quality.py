"""How good an estimate is, from what arrived alone (``theory.estimated``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.decoding.decoders import Shares
from sparsemean.decoding.own_error import OneClass
from sparsemean.decoding.summary import Summary
from sparsemean.results import Correlation

FLOOR = 0.1
"""Part of the variance of independent draws that the variance of a balanced draw's R2 is not taken to be below."""


SMALL_PART = 0.05
"""Part of an error that rounding with shared dither may be of it, for the error not to be marked as a bound."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How good the estimate of a round is.

    Attributes
    ----------
    error : float or None
        Its estimated error.
    error_se : float or None
        The standard error of that.
    actual : float or None
        Prediction of the squared error that the estimate really has.
    interval : (float, float) or None
        A 95 % interval for that.
    rounding : float or None
        The part of ``error`` that few-bit values add.
    correlation : Correlation or None
        R1 and R2 of the innovations.
    feedback : float
        What a shared memory multiplies its error by.
    bound : bool
        Whether ``error`` is an upper bound: no coordinate came from two nodes and R2 is unknown, or ``rounding`` is.
    """

    error: float | None = None
    error_se: float | None = None
    actual: float | None = None
    interval: tuple[float, float] | None = None
    rounding: float | None = None
    correlation: Correlation | None = None
    feedback: float = 0.0
    bound: bool = False


def bounded(found: Quality) -> Quality:
    """The same where nodes share out their dither, so that their noise is not independent.

    The variance that it adds is at most what independent noise adds, but for ``theory.shared_dither_bound``. Where that
    is a small part of the error, nothing is lost by taking it for independent.
    """
    if found.error is None or found.rounding is None or found.rounding <= SMALL_PART * found.error:
        return found
    return replace(found, error_se=None, actual=None, interval=None, bound=True)


@dataclass(frozen=True, slots=True)
class _Classes:
    """The classes of nodes that came: rows of a summary, the share of each and the slots of its draw."""

    rows: tuple[int, ...]
    shares: Shares
    slots: tuple[int | None, ...]

    @staticmethod
    def of(summary: Summary, shares: Shares) -> _Classes:
        rows = tuple(np.flatnonzero(summary.class_nodes.any(axis=1)).tolist())
        slots = summary.class_slots.tolist()
        return _Classes(rows, tuple(shares[s] for s in rows), tuple(slots[s] or None for s in rows))

    @property
    def least(self) -> float:
        """The smallest share: what is least certain."""
        return min(self.shares, default=1.0)

    def pair_factors(self, nodes: npt.NDArray[np.int64]) -> Doubles:
        """κ of each class and block (``theory.CountLaw``); ``nodes`` are (classes, blocks)."""
        return np.array(
            [
                [_pair_factor(int(n), share, slots) for n in row]
                for row, share, slots in zip(nodes, self.shares, self.slots, strict=True)
            ]
        ).reshape(nodes.shape)

    def one_factor(self, summary: Summary) -> Doubles:
        """κ of each block, where one class came."""
        factors: Doubles = self.pair_factors(summary.class_nodes[list(self.rows)])[0]
        return factors


# Rounds repeat the same n, shares and slots, and these sum over n terms.
@lru_cache(maxsize=1024)
def _pair_factor(n: int, share: float, slots: int | None) -> float:
    return theory.CountLaw(n, share, slots).pair_factor if n else 1.0


@lru_cache(maxsize=1024)
def _coefficients(T: theory.FixedWeighting, nodes: tuple[int, ...], classes: _Classes) -> tuple[Doubles, Doubles]:
    """A1 of each class, A2 of each pair of classes."""
    if len(nodes) == 1:
        own, cross = theory.error_coefficients(T, nodes[0], classes.shares[0], slots=classes.slots[0])
        return np.array([own]), np.array([[cross]])
    return theory.mixed_coefficients(T, nodes, classes.shares, slots=classes.slots)


@lru_cache(maxsize=1024)
def _feedback(T: theory.FixedWeighting, nodes: tuple[int, ...], classes: _Classes) -> float:
    if len(nodes) == 1:
        return theory.feedback_factor(T, nodes[0], classes.shares[0], slots=classes.slots[0])
    return theory.mixed_feedback(T, nodes, classes.shares, slots=classes.slots)


def _pairs(summary: Summary, classes: _Classes) -> Doubles:
    """Unbiased R2 of each pair of classes and each block: Σ ⟨y_i, y_l⟩ over i ≠ l of them, (classes, classes, blocks).

    Of the pairs within a class κp² meet at a coordinate; pairs of different classes meet as independent ones do. NaN
    where two nodes of a class never meet.
    """
    rows, diagonal = list(classes.rows), np.diag_indices(len(classes.rows))
    assert summary.moments is not None
    products = summary.products if summary.products.size else np.asarray(summary.moments.s2)[None, None]
    pairs = products[np.ix_(rows, rows)]
    found, factors = pairs[diagonal] - summary.class_squares[rows], classes.pair_factors(summary.class_nodes[rows])
    # Not by dividing by 0: the two sums are added in different orders, and differ by rounding where nobody meets.
    pairs[diagonal] = np.divide(found, factors, out=np.full(found.shape, math.nan), where=factors > 0)
    return pairs


def _unbiased(moments: theory.Moments, summary: Summary, classes: _Classes) -> theory.Moments:
    """The summary's moments, with an S² that makes their ``r2`` unbiased for R2 under the law of the draw."""
    if not any(classes.slots):
        return moments
    return replace(moments, s2=np.sum(_pairs(summary, classes), axis=(0, 1)) + moments.q)


@np.errstate(over="ignore", invalid="ignore")
def innovation_correlation(summary: Summary, shares: Shares) -> Doubles | None:
    """ρ̂/(n − 1) of each block as this round shows it (``theory.shrunk_correlation``); None without uniform shares.

    NaN in a block where no coordinate came from two nodes, which says nothing of their correlation.
    """
    if not shares or summary.moments is None:
        return None
    classes = _Classes.of(summary, shares)
    nodes = summary.nodes.astype(np.float64)
    if len(classes.rows) == 1:
        # The variance is that of what came, which is κ R2, and is compared with it as such.
        energy, factors = np.asarray(shares) @ summary.class_squares, classes.one_factor(summary)
        shown = theory.shrunk_correlation(summary.moments, energy, nodes, classes.least, pair_factor=factors)
        return np.where((summary.most > 1) & (factors > 0), shown, math.nan)
    # Of classes whose nodes never meet nothing is known; all other pairs tell.
    pairs, who = _pairs(summary, classes), summary.class_nodes[list(classes.rows)]
    meet = np.where(np.isnan(pairs), 0.0, theory.meeting_shares(who, classes.shares)).sum(axis=(0, 1))
    moments = replace(summary.moments, s2=np.nansum(pairs, axis=(0, 1)) + summary.moments.q)
    # The R1 of which R2/R1 is (n − 1)κ (``theory.meeting_shares``).
    energy = _quotient(summary.moments.q * meet, (np.array(classes.shares) @ who) * (nodes - 1.0))
    shown = theory.shrunk_correlation(moments, energy, nodes, classes.least)
    return np.where((summary.most > 1) & (meet > 0), shown, math.nan)


def _one_class(summary: Summary, classes: _Classes, before: Sequence[float | None] | None = None) -> OneClass | None:
    """The blocks that have a weight, if all nodes are of one class; None else, and without sums by count."""
    if len(classes.rows) != 1 or not summary.by_count.counts.size:
        return None
    return OneClass.of(summary, classes.rows[0], classes.shares[0], classes.slots[0], before)


def _balanced_pairs(summary: Summary, classes: _Classes) -> tuple[Doubles, Doubles]:
    """R2 and its variance in each block of a balanced draw of one class; NaN where nobody meets.

    The variance is at least a tenth of what it were for independent draws: where no coordinate has four senders, the
    formula may give 0.
    """
    assert summary.moments is not None
    factors = classes.one_factor(summary)
    independent = theory.r2_variance(summary.moments, classes.least) / np.where(factors > 0, factors, math.nan) ** 2
    r2 = _unbiased(summary.moments, summary, classes).r2
    received = _one_class(summary, classes)
    if received is None:
        return np.asarray(r2), independent
    found, variance = np.array([np.full(factors.size, math.nan)] * 2)
    found[summary.weight > 0], variance[summary.weight > 0] = received.pairs()
    return np.where(factors > 0, found, math.nan), np.fmax(variance, FLOOR * independent)


@np.errstate(over="ignore", invalid="ignore")
def quality(
    summary: Summary,
    shares: Shares,
    T: Sequence[theory.FixedWeighting | None],
    before: Sequence[float | None],
    weight: Doubles,
    dim: int,
) -> Quality:
    """Quality of an estimate with T in each block.

    Values whose powers overflow leave the error, its standard error or both unknown.

    Parameters
    ----------
    summary : Summary
    shares : Shares
    T : sequence
        Of each block; None where there is none.
    before : sequence of (float or None)
        ρ/(n − 1) of each block as earlier rounds showed it.
    weight : (blocks,) array
        The total that each block's mean is divided by.
    dim : int
        The length of the whole vector.
    """
    alive = summary.weight > 0
    known = [t for t, counts in zip(T, alive.tolist(), strict=True) if counts and t is not None]
    if not shares or summary.moments is None or len(known) < np.count_nonzero(alive):
        return Quality()
    classes = _Classes.of(summary, shares)
    rows, weight = list(classes.rows), weight[alive]
    nodes = [tuple(column) for column in summary.class_nodes[rows].T[alive].tolist()]
    found = [_coefficients(t, n, classes) for t, n in zip(known, nodes, strict=True)]
    own, cross = np.stack([a for a, _ in found], axis=-1), np.stack([b for _, b in found], axis=-1)
    p = np.array(classes.shares)[:, None]
    noise, energy = p * summary.class_noise[rows][:, alive], p * summary.class_squares[rows][:, alive]
    never_meet = classes.pair_factors(summary.class_nodes[rows][:, alive]) == 0.0
    bound, received = bool(never_meet.any()), _one_class(summary, classes, before)
    actual, interval = math.nan, None
    if received is not None:
        scale = (received.n * received.share / weight) ** 2
        terms, variance = received.expected(known, scale)
        at_most = (own * energy + cross[0] * (noise - energy) + noise)[0] / weight**2
        error, error_se = float(np.sum(np.where(never_meet[0], at_most, terms))), math.sqrt(variance)
        if not bound:
            actual, interval = received.actual(known, scale)
    else:
        pairs = _pairs(summary, classes)[:, :, alive]
        diagonal = np.diag_indices(len(rows))
        # Where nodes never meet, R2 is −R1 at worst: the bound of a class whose A2 is −1 then.
        pairs[diagonal] = np.where(never_meet, noise - energy, pairs[diagonal])
        terms = np.sum(own * energy + noise, axis=0) + np.sum(cross * pairs, axis=(0, 1))
        error, error_se = float(np.sum(terms / weight**2)), math.nan
        if not any(classes.slots):  # of independent draws; with the largest coefficients and the smallest share
            largest = own.max(axis=0), _largest(cross)
            moments = summary.moments.where(alive)
            _, error_se = theory.estimated_error(moments, classes.least, largest, weight, max(map(sum, nodes)), dim)
    return Quality(
        error=finite(error),
        error_se=None if bound else finite(error_se),
        actual=finite(max(actual, 0.0)),
        interval=interval,
        rounding=finite(float(np.sum((own + 1.0) * noise / weight**2))),
        correlation=None if bound else _correlation(summary, classes, np.sum(energy - noise, axis=0)),
        feedback=max(_feedback(t, n, classes) for t, n in zip(known, nodes, strict=True)),
        bound=bound,
    )


def _correlation(summary: Summary, classes: _Classes, r1: Doubles) -> Correlation:
    """R1 and R2 of y_i = n w_i x_i/Σw, where ``r1`` is R1 of w_i x_i in each block that has a weight."""
    assert summary.moments is not None
    alive = summary.weight > 0
    if len(classes.rows) == 1 and any(classes.slots):
        r2, variance = _balanced_pairs(summary, classes)
    else:
        moments = _unbiased(summary.moments, summary, classes)
        r2, variance = np.asarray(moments.r2), np.asarray(theory.r2_variance(moments, classes.least))
    norm = (summary.nodes[alive] / summary.weight[alive]) ** 2
    r2_se = float(np.sqrt(np.sum(norm**2 * variance[alive])))
    return Correlation(float(np.sum(norm * r1)), float(np.sum(norm * r2[alive])), r2_se)


def _largest(cross: Doubles) -> Doubles:
    """The coefficient of largest magnitude among all pairs of classes, per block."""
    pairs = cross.reshape(-1, cross.shape[-1])
    largest: Doubles = np.take_along_axis(pairs, np.abs(pairs).argmax(axis=0)[None], axis=0)[0]
    return largest


def _quotient(part: Doubles, whole: Doubles) -> Doubles:
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0)


def finite(number: float) -> float | None:
    """The number; None for infinities and NaN."""
    return number if math.isfinite(number) else None
