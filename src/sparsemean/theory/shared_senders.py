"""What coordinates that share senders have in common: the covariance of their errors in a balanced draw.

At a coordinate that the set A of m of n nodes sent, let x̄ be the mean of what came and X that of all. Its error is
predicted by a Σ_{i∈A} (x_i − x̄)², so that the gap is a quadratic form of differences,

    a Σ_{i∈A} (x_i − x̄)² − (x̄ − X)² = Σ_{i<l} Ω_il(A) (x_i − x_l)²,   Ω(A) = (a/m) ξξᵀ + (ξ/m − 1/n)(ξ/m − 1/n)ᵀ

off the diagonal, ξ being 1 for the nodes of A and 0 for others. Which coordinates have which senders is random, so on
average over coordinates the gap of A is T(A) = Σ_{i<l} Ω_il(A) Δ_il, Δ_il the mean square of x_i − x_l. Two coordinates
whose senders are drawn independently have independent gaps; where sets overlap by design, the covariance of two is that
of T(A) and T(B) over all ways to name the nodes. Symmetric n × n matrices without diagonal fall into three parts that
names do not mix: the mean, what rows add to it (n − 1 dimensions), and the rest (n(n − 3)/2). For a fixed pattern of
sets the covariances of all pairs of coordinates hence add up to

    Σ_{A≠B} Cov[T(A), T(B)] = Σ_{parts but the mean} (‖Σ_A Ω(A)‖² − Σ_A ‖Ω(A)‖²) ‖Δ‖² / dimension,

‖·‖² being sums over i < l. Where every node sends equally often, the rows of ΣΩ are alike.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .forms import Vector, inverse

LEAST_NODES = 3
"""Of two, all pairs differ alike."""


class Parts(NamedTuple):
    """What rows add to the mean of a symmetric matrix without diagonal, and the rest."""

    rows: Vector
    rest: Vector

    @staticmethod
    def of(matrix: Vector) -> Parts:
        """The parts of a matrix, whose diagonal does not count.

        >>> float(Parts.of(np.array([[9.0, 1, 2, 3], [1, 9, 3, 4], [2, 3, 9, 5], [3, 4, 5, 9]])).rest.round(12).max())
        0.0
        """
        n = len(matrix)
        off = ~np.eye(n, dtype=bool)
        centred = np.where(off, matrix - np.mean(matrix[off]), 0.0)
        effect = centred.sum(axis=1) / (n - 2.0)
        rows = np.where(off, effect[:, None] + effect, 0.0)
        return Parts(rows, centred - rows)

    def products(self, other: Parts) -> Vector:
        """⟨·, ·⟩ of both parts, over i < l."""
        return np.array([np.sum(mine * its) / 2.0 for mine, its in zip(self, other, strict=True)])


def shared_sender_covariance(a: float, sent: Vector, difference: Vector) -> float:
    """Σ_{A≠B} Cov[T(A), T(B)] over the coordinates, given ‖Δ‖² of both parts.

    Parameters
    ----------
    a : float
        Of the prediction of the error.
    sent : (n, coordinates) array
        ξ: 1 where a node sent a coordinate, else 0.
    difference : (2,) array
        ‖Δ‖² of what rows add and of the rest, or an estimate of them.
    """
    n = len(sent)
    counts = sent.sum(axis=0)
    together = Parts.of(_form(a, sent, counts))
    each = np.zeros(2)
    for m, number in zip(*np.unique(counts, return_counts=True), strict=True):
        alone = Parts.of(_form(a, (np.arange(n) < m).astype(np.float64)[:, None], np.array([m])))
        each += number * alone.products(alone)
    dimensions = np.array([n - 1.0, n * (n - 3.0) / 2.0])
    return float(np.sum((together.products(together) - each) * difference * inverse(dimensions)))


def _form(a: float, sent: Vector, counts: Vector) -> Vector:
    """Σ Ω(A) over the coordinates; those that nobody sent add nothing."""
    mean = sent * inverse(counts)
    off = np.where(counts > 0, mean - 1.0 / len(sent), 0.0)
    form: Vector = a * mean @ sent.T + off @ off.T
    return form


def squared_differences(y: Vector, sent: Vector) -> Vector:
    """‖Δ‖² of both parts, nearly without bias: each half of the coordinates tells of Δ by itself.

    A pair's Δ_il is estimated as Δ̄ + Σ_j [(y_i − y_l)² − Δ̄]/N₂ over the coordinates that both sent, N₂ being how many
    those are on average over pairs and Δ̄ the mean over all: no pair has to meet. The products of two halves, even
    coordinates and odd ones, have none of the noise of either in them.

    Parameters
    ----------
    y, sent : (n, coordinates) array
        Values, 0 where they were not sent, and ξ.
    """
    halves = ([np.ascontiguousarray(each[:, half::2]) for each in (y, sent)] for half in (0, 1))  # or BLAS is not used
    first, second = (Parts.of(_differences(*half)) for half in halves)
    return first.products(second)


def _differences(y: Vector, sent: Vector) -> Vector:
    n = len(y)
    squares, met = (y * y) @ sent.T, sent @ sent.T
    sums, off = squares + squares.T - 2.0 * (y @ y.T), ~np.eye(n, dtype=bool)
    mean = np.sum(sums[off]) * inverse(np.sum(met[off]))
    found: Vector = (sums - mean * met) * (n * (n - 1.0)) * inverse(np.sum(met[off]))
    return found
