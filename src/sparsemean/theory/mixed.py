"""Rand-k-Spatial when nodes send different shares: exact scales and error, one class of nodes per share.

Node i of class s sends every coordinate with probability p_s, and

    x̂_j = (1/n) Σ_i ξ_ij x_ij g_s(M_j)/p_s,  g_s(m) = (1/T(m)) / E[1/T(M) | a node of class s sent],

where M is 1 plus independent Binomial(n_t − [t = s], p_t), t = 1..K. A class may be drawn balanced instead: its count
then follows its own ``CountLaw``, independent of the other classes. K is meant to be small: the coefficients take K²
convolutions. Nothing is kept between calls; whoever repeats the same arguments should keep the result.

All functions take the classes as

nodes : sequence of int
    How many nodes of each class came; 0 leaves the class out.
shares : sequence of float
    p_s of each class.
slots : sequence of (int or None), optional
    N_s ≥ n_s of each class that is drawn balanced, None for each that is drawn independently; None if all are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import whole
from .binomial import TINY
from .classes import NodeClass, Others, Vector, node_classes, present
from .correlation import correlation
from .scaling import attainable_weights, likeliest_count, relative_deviations, scaled_inverse
from .spatial import ROUNDING
from .weighting import Weighting

Slots: TypeAlias = Sequence[int | None] | None

NEGLIGIBLE = 1e-40
"""A probability this far below the largest is left out, if T varies little; the more T varies, the more is kept."""


@np.errstate(under="ignore", over="ignore")
def mixed_gains(
    T: Weighting, nodes: Sequence[int], shares: Sequence[float], *, slots: Slots = None
) -> tuple[Vector, ...]:
    """g_s(m) = (1/T(m)) / E[1/T(M) | a node of class s sent] for m = 0..n, one array per class (zeros if it is empty).

    Exactly 1 for m ≥ 1 if T is constant. For ρ = −1 the limit is g_s(n) = 1/P(M = n | sent) and 0 below, and 0
    throughout when that probability is too small for a float; as in ``gains``, not so where n never send together.

    >>> [g.round(3).tolist() for g in mixed_gains("max", [1, 1], [0.5, 1.0])]
    [[0.0, 2.0, 1.0], [0.0, 1.333, 0.667]]
    """
    classes, n = node_classes(nodes, shares, slots)
    found = tuple(np.zeros(n + 1) for _ in classes)
    values = _weights(T, classes, n)
    if values[-1] == 0.0:
        for s in present(classes):
            everyone = math.prod(kind.all_send(given=int(t == s)) for t, kind in enumerate(classes))
            found[s][n] = 1.0 / everyone if everyone >= TINY else 0.0
        return found
    inverse, others = _prepare(values, classes, n)
    for s in present(classes):
        law = others.without(s)
        mean, _ = relative_deviations(others.reach(inverse, law, 1), law)
        found[s][:] = inverse / mean
    return found


@np.errstate(under="ignore", over="ignore")
def mixed_coefficients(
    T: Weighting, nodes: Sequence[int], shares: Sequence[float], *, slots: Slots = None
) -> tuple[Vector, Vector]:
    """(A, C) with n² MSE = Σ_s A_s R1_s + Σ_st C_st R2_st: A_s = E[g_s²|sent]/p_s − 1, C_st = E[g_s g_t|both sent] − 1.

    Within a class C_ss = κ_s E[g_s²|both sent] − 1, κ_s its ``CountLaw.pair_factor``. Computed from e_s = g_s − 1,
    which has mean 0 given that a node of class s sent:

        A_s = (1 − p_s)/p_s + E[e_s² | sent]/p_s,
        C_st = E[e_s e_t + e_s + e_t | both sent],  C_ss = κ_s − 1 + κ_s E[e_s² + 2 e_s | both sent],

    and if class t is drawn independently, E[e_s | both] = (1 − p_t) E[Δg_s | both] with Δg(M) = g(M) − g(M − 1). C is
    symmetric, and 0 for pairs that do not exist. For ρ = −1 all others are 1/P(all send) − 1, which may be infinite.

    >>> own, cross = mixed_coefficients("max", [1, 1], [0.5, 1.0])
    >>> (9 * own).round(12).tolist(), (9 * cross).round(12).tolist()
    ([9.0, 1.0], [[0.0, -3.0], [-3.0, 0.0]])
    """
    classes, n = node_classes(nodes, shares, slots)
    own, cross = np.zeros(len(classes)), np.zeros((len(classes), len(classes)))
    values = _weights(T, classes, n)
    if values[-1] == 0.0:
        limit = _limit(classes)
        own[present(classes)] = limit
        cross[_pairs(classes) > 0] = limit
        return own, cross
    inverse, others = _prepare(values, classes, n)
    means, excess = np.zeros(len(classes)), np.zeros((len(classes), n + 1))
    for s in present(classes):
        law = others.without(s)
        means[s], off = relative_deviations(others.reach(inverse, law, 1), law)
        others.reach(excess[s], law, 1)[:] = off
        own[s] = (1.0 - classes[s].share) / classes[s].share + float(np.sum(law * off * off)) / classes[s].share
    for s, t, law in others.pairs():
        rise = float(np.sum(law * (others.reach(inverse, law, 2) - others.reach(inverse, law, 1))))
        e_s, e_t = others.reach(excess[s], law, 2), others.reach(excess[t], law, 2)
        found = float(np.sum(law * e_s * e_t))
        for other, mean, e in ((classes[t], means[s], e_s), (classes[s], means[t], e_t)):
            found += (1.0 - other.share) * (rise / mean) if other.law is None else float(np.sum(law * e))
        if s == t and (own_law := classes[s].law) is not None:
            found = own_law.pair_excess + own_law.pair_factor * found
        cross[s, t] = cross[t, s] = found
    return own, cross


def mixed_correlation(vectors: npt.ArrayLike, classes: npt.ArrayLike, K: int) -> tuple[Vector, Vector]:
    """R1_s = Σ_{i ∈ s} ‖x_i‖² and R2_st = Σ_{i ∈ s, l ∈ t, i ≠ l} ⟨x_i, x_l⟩ of an (n, d) array, row i in classes[i].

    >>> r1, r2 = mixed_correlation([[1.0, 0.0], [1.0, 0.0], [2.0, 1.0]], [0, 0, 1], 2)
    >>> r1.tolist(), r2.tolist()
    ([2.0, 5.0], [[2.0, 4.0], [4.0, 0.0]])
    """
    x, labels, count = np.asarray(vectors), np.asarray(classes), whole(K, "K", 1)
    correlation(x)
    if labels.dtype.kind not in "iu" or labels.shape != x.shape[:1]:
        raise InvalidInput(f"classes must be {len(x)} whole numbers, one for each row of vectors")
    if labels.min() < 0 or labels.max() >= count:
        raise InvalidInput(f"classes must lie in 0..{count - 1}, not {labels.min()}..{labels.max()}")
    r1, own, totals = np.zeros(count), np.zeros(count), np.zeros((count, x.shape[1]))
    for s in np.unique(labels):
        mine = x[labels == s]
        # One row has no pairs; its two sums of squares may round differently.
        r1[s], own[s] = correlation(mine) if len(mine) > 1 else (correlation(mine)[0], 0.0)
        totals[s] = mine.sum(axis=0, dtype=np.float64)
    with np.errstate(under="ignore"):
        r2: Vector = totals @ totals.T
    np.fill_diagonal(r2, own)
    return r1, r2


def meeting_shares(nodes: npt.ArrayLike, shares: Sequence[float]) -> Vector:
    """Σ p_i p_l over the ordered pairs of different nodes, one of class s and one of t: (classes, classes, …).

    Let κ be the sum of R2_st over that of these, for all s and t of which R2 is known, over Σ y²/Σ p: how similar two
    values are that meet. T(m) = 1 + κ(m − 1) is then nearly the best T, also where nodes send different shares. Where
    all send the same, κ is (R2/R1)/(n − 1).

    Parameters
    ----------
    nodes : (classes, …) array
        How many nodes of each class came.
    shares : sequence of float
        p_s of each class.

    >>> meeting_shares([2, 1], [0.5, 1.0]).tolist()
    [[0.5, 1.0], [1.0, 0.0]]
    """
    counts = np.asarray(nodes, dtype=np.float64)
    p = np.asarray(shares, dtype=np.float64).reshape(-1, *[1] * (counts.ndim - 1))
    sent = counts * p
    pairs: Vector = sent[:, None] * sent[None]
    pairs[np.diag_indices(len(sent))] -= sent * p
    return pairs


def mixed_mse(
    r1: npt.ArrayLike,
    r2: npt.ArrayLike,
    nodes: Sequence[int],
    shares: Sequence[float],
    T: Weighting,
    *,
    slots: Slots = None,
) -> float:
    """E‖estimate − mean‖² = (Σ_s A_s R1_s + Σ_st C_st R2_st)/n² (``mixed_coefficients``, ``mixed_correlation``).

    Good to some 1e-15 of the larger of its two sums, and never below 0; where R1 and R2 are estimated and must
    not be clipped, use the coefficients. For ρ = −1 it is 0 if the vectors sum to zero (to rounding), and may be
    infinite if they do not.

    >>> round(mixed_mse([1.0, 1.0], [[0.0, 1.0], [1.0, 0.0]], [1, 1], [0.5, 1.0], "max"), 12)
    0.111111111111
    """
    classes, n = node_classes(nodes, shares, slots)
    each, pairs = np.asarray(r1, dtype=np.float64), np.asarray(r2, dtype=np.float64)
    K = len(classes)
    if each.shape != (K,) or pairs.shape != (K, K):
        raise InvalidInput(f"r1 and r2 must have shapes {(K,)} and {(K, K)}, not {each.shape} and {pairs.shape}")
    if not (np.isfinite(each).all() and np.isfinite(pairs).all()):
        raise InvalidInput("r1 and r2 must be finite")
    if each.min() < 0.0:
        raise InvalidInput(f"r1 holds sums of squares and cannot be negative, but holds {float(each.min())!r}")
    energy = float(each.sum())
    if _weights(T, classes, n)[-1] == 0.0:
        left = energy + float(pairs.sum())
        return _limit(classes) * (left / n**2) if left > ROUNDING * energy else 0.0
    own, cross = mixed_coefficients(T, nodes, shares, slots=slots)
    if not np.isfinite(own).all():
        return math.inf if energy > 0.0 else 0.0
    # Scaled to 1 before multiplying: the coefficients of a steep T reach 1e300, and their products may cancel.
    scale = max(float(own.max()), float(np.abs(cross).max()))
    if scale == 0.0:
        return 0.0
    with np.errstate(under="ignore"):
        total = float(np.sum(own / scale * each)) + float(np.sum(cross / scale * pairs))
    return scale * (max(total, 0.0) / n**2)


def mixed_feedback(T: Weighting, nodes: Sequence[int], shares: Sequence[float], *, slots: Slots = None) -> float:
    """f = E[(Σ_i ξ_i g_s(M)/(n p_s) − 1)²] = (Σ_s n_s A_s + Σ_st (n_s n_t − [s = t] n_s) C_st)/n².

    The error of a mean of n equal vectors, relative, and what a memory that holds the last estimate multiplies its own
    error by each round. Good to some 1e-15 of Σ_s n_s A_s/n², and never below 0.

    >>> round(mixed_feedback("max", [1, 1], [0.5, 1.0]), 12)
    0.111111111111
    >>> round(mixed_feedback("one", [5, 5], [0.1, 0.5]), 12)
    0.5
    """
    classes, _ = node_classes(nodes, shares, slots)
    return mixed_mse([float(kind.nodes) for kind in classes], _pairs(classes), nodes, shares, T, slots=slots)


def _weights(T: Weighting, classes: Sequence[NodeClass], n: int) -> Vector:
    return attainable_weights(T, n, all(kind.law is None or kind.law.everyone_may_send for kind in classes))


@np.errstate(under="ignore", over="ignore")
def _prepare(values: Vector, classes: Sequence[NodeClass], n: int) -> tuple[Vector, Others]:
    """1/T(m) for m = 0..n and the laws to average it under.

    1/T is scaled to 1 near the likeliest count, so that no mean of it vanishes.
    """
    # E[1/T²] weighs a tail by at most the square of what T varies by.
    others = Others(classes, NEGLIGIBLE * float(values.min() / values.max()) ** 2)
    if any(kind.law is not None for kind in classes):
        likeliest = others.start + 1 + int(others.without(present(classes)[0]).argmax())
    else:
        shares = [kind.share for kind in classes]
        sent = sum(kind.nodes * kind.share for kind in classes)
        likeliest = likeliest_count(n, min(max(sent / n, min(shares)), max(shares)))
    return scaled_inverse(values, likeliest), others


def _pairs(classes: Sequence[NodeClass]) -> Vector:
    """n_s n_t − [s = t] n_s: the ordered pairs of different nodes, by class."""
    counts = np.array([kind.nodes for kind in classes], dtype=np.float64)
    pairs: Vector = np.outer(counts, counts) - np.diag(counts)
    return pairs


def _limit(classes: Sequence[NodeClass]) -> float:
    """1/P(all send) − 1: for ρ = −1 the estimate is the mean over P(all send) if all sent a coordinate, else 0."""
    power = -sum(kind.log_all_send() for kind in classes)
    return math.expm1(power) if power < 709.0 else math.inf
