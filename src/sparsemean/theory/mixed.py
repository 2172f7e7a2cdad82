"""Rand-k-Spatial when nodes send different shares: exact scales and error, one class of nodes per share.

Node i of class s sends every coordinate with probability p_s, and

    x̂_j = (1/n) Σ_i ξ_ij x_ij g_s(M_j)/p_s,  g_s(m) = (1/T(m)) / E[1/T(M) | a node of class s sent],

where M is 1 plus independent Binomial(n_t − [t = s], p_t), t = 1..K. K is meant to be small: the coefficients take K²
convolutions. Nothing is kept between calls; whoever repeats the same arguments should keep the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from sparsemean.errors import InvalidInput

from .arguments import node_count, unit_share, whole
from .binomial import TINY, pmf
from .correlation import correlation
from .scaling import inverse_weights, relative_deviations
from .spatial import ROUNDING
from .weighting import Weighting, weights

Vector = npt.NDArray[np.float64]

NEGLIGIBLE = 1e-40
"""A probability this far below the largest is left out, if T varies little; the more T varies, the more is kept."""


@np.errstate(under="ignore", over="ignore")
def mixed_gains(T: Weighting, nodes: Sequence[int], shares: Sequence[float]) -> tuple[Vector, ...]:
    """g_s(m) = (1/T(m)) / E[1/T(M) | a node of class s sent] for m = 0..n, one array per class (zeros if it is empty).

    Exactly 1 for m ≥ 1 if T is constant. For ρ = −1 the limit is g_s(n) = 1/P(M = n | sent) and 0 below, and 0
    throughout when that probability is too small for a float.

    >>> [g.round(3).tolist() for g in mixed_gains("max", [1, 1], [0.5, 1.0])]
    [[0.0, 2.0, 1.0], [0.0, 1.333, 0.667]]
    """
    nodes, shares, n = _classes(nodes, shares)
    found = tuple(np.zeros(n + 1) for _ in nodes)
    if weights(T, n)[-1] == 0.0:
        for s in _present(nodes):
            everyone = math.prod(
                p ** (count - (t == s)) for t, (count, p) in enumerate(zip(nodes, shares, strict=True))
            )
            found[s][n] = 1.0 / everyone if everyone >= TINY else 0.0
        return found
    inverse, others = _prepare(T, nodes, shares, n)
    for s in _present(nodes):
        law = others.without(s)
        mean, _ = relative_deviations(others.reach(inverse, law, 1), law)
        found[s][:] = inverse / mean
    return found


@np.errstate(under="ignore", over="ignore")
def mixed_coefficients(T: Weighting, nodes: Sequence[int], shares: Sequence[float]) -> tuple[Vector, Vector]:
    """(A, C) with n² MSE = Σ_s A_s R1_s + Σ_st C_st R2_st: A_s = E[g_s²|sent]/p_s − 1, C_st = E[g_s g_t|both sent] − 1.

    Computed from e_s = g_s − 1, which has mean 0 given that a node of class s sent:

        A_s = (1 − p_s)/p_s + E[e_s² | sent]/p_s,
        C_st = E[e_s e_t + (1 − p_t) Δg_s + (1 − p_s) Δg_t | both sent],  Δg(M) = g(M) − g(M − 1).

    C is symmetric, and 0 for pairs that do not exist. For ρ = −1 all others are 1/Π_s p_s^n_s − 1, which may be
    infinite.

    >>> own, cross = mixed_coefficients("max", [1, 1], [0.5, 1.0])
    >>> (9 * own).round(12).tolist(), (9 * cross).round(12).tolist()
    ([9.0, 1.0], [[0.0, -3.0], [-3.0, 0.0]])
    """
    nodes, shares, n = _classes(nodes, shares)
    own, cross = np.zeros(len(nodes)), np.zeros((len(nodes), len(nodes)))
    if weights(T, n)[-1] == 0.0:
        limit = _limit(nodes, shares)
        own[np.array(nodes) > 0] = limit
        cross[_pairs(nodes) > 0] = limit
        return own, cross
    inverse, others = _prepare(T, nodes, shares, n)
    means, excess = np.zeros(len(nodes)), np.zeros((len(nodes), n + 1))
    for s in _present(nodes):
        law = others.without(s)
        means[s], off = relative_deviations(others.reach(inverse, law, 1), law)
        others.reach(excess[s], law, 1)[:] = off
        own[s] = (1.0 - shares[s]) / shares[s] + float(np.sum(law * off * off)) / shares[s]
    for s, t, law in others.pairs():
        rise = float(np.sum(law * (others.reach(inverse, law, 2) - others.reach(inverse, law, 1))))
        both = float(np.sum(law * others.reach(excess[s], law, 2) * others.reach(excess[t], law, 2)))
        cross[s, t] = both + (1.0 - shares[t]) * (rise / means[s]) + (1.0 - shares[s]) * (rise / means[t])
        cross[t, s] = cross[s, t]
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


def mixed_mse(
    r1: npt.ArrayLike, r2: npt.ArrayLike, nodes: Sequence[int], shares: Sequence[float], T: Weighting
) -> float:
    """E‖estimate − mean‖² = (Σ_s A_s R1_s + Σ_st C_st R2_st)/n² (``mixed_coefficients``, ``mixed_correlation``).

    Good to some 1e-15 of the larger of its two sums, and never below 0; where R1 and R2 are estimated and must
    not be clipped, use the coefficients. For ρ = −1 it is 0 if the vectors sum to zero (to rounding), and may be
    infinite if they do not.

    >>> round(mixed_mse([1.0, 1.0], [[0.0, 1.0], [1.0, 0.0]], [1, 1], [0.5, 1.0], "max"), 12)
    0.111111111111
    """
    nodes, shares, n = _classes(nodes, shares)
    each, pairs = np.asarray(r1, dtype=np.float64), np.asarray(r2, dtype=np.float64)
    K = len(nodes)
    if each.shape != (K,) or pairs.shape != (K, K):
        raise InvalidInput(f"r1 and r2 must have shapes {(K,)} and {(K, K)}, not {each.shape} and {pairs.shape}")
    if not (np.isfinite(each).all() and np.isfinite(pairs).all()):
        raise InvalidInput("r1 and r2 must be finite")
    if each.min() < 0.0:
        raise InvalidInput(f"r1 holds sums of squares and cannot be negative, but holds {float(each.min())!r}")
    energy = float(each.sum())
    if weights(T, n)[-1] == 0.0:
        left = energy + float(pairs.sum())
        return _limit(nodes, shares) * (left / n**2) if left > ROUNDING * energy else 0.0
    own, cross = mixed_coefficients(T, nodes, shares)
    if not np.isfinite(own).all():
        return math.inf if energy > 0.0 else 0.0
    # Scaled to 1 before multiplying: the coefficients of a steep T reach 1e300, and their products may cancel.
    scale = max(float(own.max()), float(np.abs(cross).max()))
    if scale == 0.0:
        return 0.0
    with np.errstate(under="ignore"):
        total = float(np.sum(own / scale * each)) + float(np.sum(cross / scale * pairs))
    return scale * (max(total, 0.0) / n**2)


def mixed_feedback(T: Weighting, nodes: Sequence[int], shares: Sequence[float]) -> float:
    """f = E[(Σ_i ξ_i g_s(M)/(n p_s) − 1)²] = (Σ_s n_s A_s + Σ_st (n_s n_t − [s = t] n_s) C_st)/n².

    The error of a mean of n equal vectors, relative, and what a memory that holds the last estimate multiplies its own
    error by each round. Good to some 1e-15 of Σ_s n_s A_s/n², and never below 0.

    >>> round(mixed_feedback("max", [1, 1], [0.5, 1.0]), 12)
    0.111111111111
    >>> round(mixed_feedback("one", [5, 5], [0.1, 0.5]), 12)
    0.5
    """
    nodes, shares, _ = _classes(nodes, shares)
    return mixed_mse(np.array(nodes, dtype=np.float64), _pairs(nodes), nodes, shares, T)


class _Others:
    """How many nodes send besides one or two given ones, for all choices of these at the price of one.

    All but two nodes of each class are summed once. The two are added back as coins: taking nodes out of the whole sum
    instead would divide by small numbers.
    """

    def __init__(self, nodes: Sequence[int], shares: Sequence[float], floor: float) -> None:
        self.nodes = nodes
        self.coins = [_coins(count, p) for count, p in zip(nodes, shares, strict=True)]
        self.start, bulk = 0, np.ones(1)
        for count, p in zip(nodes, shares, strict=True):
            first, part = _trimmed(pmf(max(count - 2, 0), p), floor)
            begin, bulk = _trimmed(np.convolve(bulk, part), floor)
            self.start += first + begin
        self.before = [np.ones(1)]
        for coins in self.coins[:-1]:
            self.before.append(np.convolve(self.before[-1], coins[0]))
        after = [bulk]
        for coins in self.coins[:0:-1]:
            after.append(np.convolve(after[-1], coins[0]))
        self.after = after[::-1]

    def without(self, s: int) -> Vector:
        """P(``start``), P(``start`` + 1), ... of the others of one node of class s."""
        return np.convolve(np.convolve(self.before[s], self.coins[s][1]), self.after[s])

    def pairs(self) -> Iterator[tuple[int, int, Vector]]:
        """(s, t, the same of the others of one node of class s and one of t) for all pairs that exist, s ≤ t."""
        present = _present(self.nodes)
        for s in present:
            if self.nodes[s] > 1:
                yield s, s, np.convolve(np.convolve(self.before[s], self.coins[s][2]), self.after[s])
            left = np.convolve(self.before[s], self.coins[s][1])
            for t in present[present.index(s) + 1 :]:
                yield s, t, np.convolve(np.convolve(left, self.coins[t][1]), self.after[t])
                left = np.convolve(left, self.coins[t][0])

    def reach(self, values: Vector, law: Vector, senders: int) -> Vector:
        """The part of values(m), m = 0..n, that the others' law meets when ``senders`` nodes send besides."""
        return values[self.start + senders : self.start + senders + len(law)]


def _coins(count: int, p: float) -> list[Vector]:
    """The law of how many of a class's last two nodes send, with 0, 1 or 2 of them left out."""
    coin = np.array([1.0 - p, p])
    laws = [np.convolve(coin, coin), coin, np.ones(1)]
    return laws[2 - min(count, 2) :] + [np.ones(1)] * (2 - min(count, 2))


def _trimmed(law: Vector, floor: float) -> tuple[int, Vector]:
    """Where the law first exceeds ``floor`` of its largest value, and the law from there to where it last does."""
    kept = np.flatnonzero(law > floor * law.max())
    return int(kept[0]), law[kept[0] : kept[-1] + 1]


@np.errstate(under="ignore", over="ignore")
def _prepare(T: Weighting, nodes: Sequence[int], shares: Sequence[float], n: int) -> tuple[Vector, _Others]:
    """1/T(m) for m = 0..n and the laws to average it under.

    1/T is scaled to 1 near the likeliest count, so that no mean of it vanishes.
    """
    sent = sum(count * p for count, p in zip(nodes, shares, strict=True))
    inverse, _ = inverse_weights(T, n, min(max(sent / n, min(shares)), max(shares)))
    values = weights(T, n)
    # E[1/T²] weighs a tail by at most the square of what T varies by.
    return inverse, _Others(nodes, shares, NEGLIGIBLE * float(values.min() / values.max()) ** 2)


def _classes(nodes: Sequence[int], shares: Sequence[float]) -> tuple[tuple[int, ...], tuple[float, ...], int]:
    counts = tuple(whole(count, "the number of nodes of a class", 0) for count in nodes)
    p = tuple(unit_share(share) for share in shares)
    if len(counts) != len(p):
        raise InvalidInput(f"{len(counts)} classes of nodes but {len(p)} shares; give one share for each class")
    return counts, p, node_count(sum(counts))


def _present(nodes: Sequence[int]) -> list[int]:
    return [s for s, count in enumerate(nodes) if count > 0]


def _pairs(nodes: Sequence[int]) -> Vector:
    """n_s n_t − [s = t] n_s: the ordered pairs of different nodes, by class."""
    counts = np.array(nodes, dtype=np.float64)
    pairs: Vector = np.outer(counts, counts) - np.diag(counts)
    return pairs


def _limit(nodes: Sequence[int], shares: Sequence[float]) -> float:
    """1/P(all send) − 1: for ρ = −1 the estimate is the mean over P(all send) if all sent a coordinate, else 0."""
    power = -sum(count * math.log(p) for count, p in zip(nodes, shares, strict=True))
    return math.expm1(power) if power < 709.0 else math.inf
