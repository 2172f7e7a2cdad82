"""Estimates of a round's error as quadratic forms of what arrived, normalised by how many nodes sent each coordinate.

The counts M_j say nothing about values, and given them the senders of a coordinate are any M_j of the n nodes. So a
form may depend on the whole histogram N_m = #{j: M_j = m} of the round: it is then unbiased given the counts, and their
scatter adds nothing to its variance. With N_m = d P(M = m) instead, it is unbiased over all counts.

All functions take and return, for one block or for several at once, the arrays

m : (counts,) array
    The counts.
number : (counts,) or (counts, blocks) array
    N_m of each block.
n, coefficients : float or (blocks,) array
    How many nodes came, and numbers of each block.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .binomial import TINY

Vector: TypeAlias = npt.NDArray[np.float64]
PerBlock: TypeAlias = float | Vector


class CoordinateError(NamedTuple):
    """A and F with E(estimate − X)² = A Y + F X² of a coordinate; X, Y are mean and variance of the nodes' values."""

    on_spread: PerBlock
    on_mean: PerBlock

    def scaled(self) -> tuple[CoordinateError, Vector]:
        """The same over the larger of the two, and that: those of a ratio near −1 reach 1e300, and are squared."""
        size: Vector = np.maximum(np.maximum(np.abs(self.on_spread), np.abs(self.on_mean)), TINY)
        return CoordinateError(self.on_spread / size, self.on_mean / size), size


class Form(NamedTuple):
    """The estimate Σ_j a (Q_j − S_j²/M_j) + B(M_j) (S_j/M_j)² = Σ_j a (M_j − 1) k2_j + B(M_j) x̄_j².

    S and Q are the sums of the values and of their squares over the nodes that sent j, so that x̄ and k2 are mean and
    variance of what came.

    Attributes
    ----------
    on_spread : float or (blocks,) array
        a.
    on_means : (counts,) or (counts, blocks) array
        B(m).
    """

    on_spread: PerBlock
    on_means: Vector

    def of(self, within: PerBlock, means: Vector) -> PerBlock:
        """Its value: ``within`` is Σ_j Q_j − S_j²/M_j, ``means`` is Σ_j x̄_j² by count."""
        value: PerBlock = self.on_spread * within + np.sum(self.on_means * means, axis=0)
        return value

    def blended(self, other: Form, weight: PerBlock) -> Form:
        """(1 − weight) of this and ``weight`` of the other."""
        mine = 1.0 - weight
        return Form(mine * self.on_spread + weight * other.on_spread, mine * self.on_means + weight * other.on_means)


def inverse(numbers: PerBlock) -> Vector:
    """1/x, 0 where x = 0."""
    x = np.asarray(numbers, dtype=np.float64)
    return np.divide(1.0, x, out=np.zeros_like(x), where=x != 0.0)


def left_out(m: Vector, n: PerBlock) -> Vector:
    """1/m − 1/n, what m of n values leave uncertain of their mean, in units of their variance; 0 at m = 0."""
    gap: Vector = np.where(m > 0, inverse(m) - 1.0 / n, 0.0)
    return gap


def column(m: Vector, number: Vector) -> Vector:
    """The counts with an axis for blocks, where ``number`` has one."""
    return m if number.ndim == 1 else m[:, None]


def within_form(error: CoordinateError, n: PerBlock, m: Vector, number: Vector) -> Form:
    """The error from the spread within coordinates: sharp where nodes are alike. 0 of the spread where no two met.

    Σ(M − 1)k2 is unbiased for Σ N_m (m − 1)₊ times the mean of Y, and Σx̄² for N₊ times the mean of X² plus Σ N_m δ_m
    times that of Y, δ_m = 1/m − 1/n.
    """
    m = column(m, number)
    dim, sent = number.sum(axis=0), (number * (m > 0)).sum(axis=0)
    on_means = error.on_mean * dim * inverse(sent)
    left = error.on_spread * dim - on_means * np.sum(number * left_out(m, n), axis=0)
    return Form(left * inverse(np.sum(number * np.maximum(m - 1.0, 0.0), axis=0)), on_means * (m > 0))


def plug_in_form(error: CoordinateError, n: PerBlock, m: Vector, number: Vector) -> Form:
    """The error from R1 and R2: sharp where nodes are unlike. Without R2 where no two met.

    AΣY + FΣX² is a combination of R1 and R2, for which ΣQ·nd/ΣM and Σ(S² − Q)·n(n − 1)d/ΣM(M − 1) are unbiased.
    """
    m = column(m, number)
    own, cross = per_r1_r2(error, n)
    dim = number.sum(axis=0)
    own = own * n * dim * inverse(np.sum(number * m, axis=0))
    cross = cross * (n * (np.asarray(n) - 1.0)) * dim * inverse(np.sum(number * m * (m - 1.0), axis=0))
    return Form(own - cross, (own - cross) * m + cross * m * m)


def per_r1_r2(error: CoordinateError, n: PerBlock) -> tuple[PerBlock, PerBlock]:
    """(A1, A2)/n² of ``error_coefficients``: F/n² + A/n on R1 and F/n² − A/(n(n − 1)) on R2, 0 for one node."""
    count = np.asarray(n, dtype=np.float64)
    common = error.on_mean / count**2
    return common + error.on_spread / count, np.where(
        count > 1.0, common - error.on_spread * inverse(count * (count - 1.0)), 0.0
    )


def actual_form(excess: Vector, n: PerBlock, m: Vector, number: Vector) -> Form:
    """The actual squared error of the round, given its counts, predicted without bias; ``within`` is K2 if no two met.

    E[(h x̄ − X)² | M = m] = (h − 1)² X² + h² δ_m Y, of which (h − 1)² x̄² tells all but (2h − 1) δ_m Y; the mean of X²
    over the N_0 coordinates that nobody sent is taken to be that of the others, (Σx̄² − Σ N_m δ_m Y)/N₊.

    Parameters
    ----------
    excess : (counts,) or (counts, blocks) array
        h(m) − 1.
    """
    m = column(m, number)
    delta, ratio = left_out(m, n), (number * (m == 0)).sum(axis=0) * inverse((number * (m > 0)).sum(axis=0))
    need = np.sum(number * (2.0 * excess + 1.0) * delta, axis=0) - ratio * np.sum(number * delta, axis=0)
    on_spread = need / np.maximum(np.sum(number * np.maximum(m - 1.0, 0.0), axis=0), 1.0)
    return Form(on_spread, np.where(m > 0, excess * excess + ratio, 0.0))
