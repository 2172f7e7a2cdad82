"""Subsampled randomised Hadamard transforms: each node's vector with random signs, transformed, k entries kept."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sparsemean._types import Doubles, Ints


class Projections(NamedTuple):
    """The projections G_i = E_i H D_i/√d of all nodes; the rows of each are orthonormal.

    Attributes
    ----------
    signs : (n, d) array
        The diagonals of D_i, ±1; d is a power of two.
    rows : (n, k) array
        Which rows of the Hadamard matrix H node i keeps: E_i.
    """

    signs: Doubles
    rows: Ints

    @staticmethod
    def drawn(nodes: int, k: int, dim: int, rng: np.random.Generator) -> Projections:
        """Signs at random, and k of the d rows without replacement; independent between nodes."""
        signs = rng.choice(np.array([-1.0, 1.0]), size=(nodes, dim))
        return Projections(signs, np.stack([rng.choice(dim, k, replace=False) for _ in range(nodes)]))

    def project(self, vectors: Doubles) -> Doubles:
        """G_i x_i of every node, shape (n, k); one vector of shape (d,) is projected by all."""
        return np.take_along_axis(hadamard(self.signs * vectors), self.rows, axis=1)

    def back(self, sent: Doubles) -> Doubles:
        """Σ_i G_iᵀ y_i, shape (d,)."""
        spread = np.zeros_like(self.signs)
        np.put_along_axis(spread, self.rows, sent, axis=1)
        total: Doubles = np.einsum("ij,ij->j", self.signs, hadamard(spread))
        return total

    def matrix(self) -> Doubles:
        """All rows of all G_i, shape (nk, d), for small d."""
        dim = self.signs.shape[1]
        rows: Doubles = (hadamard(np.eye(dim))[self.rows] * self.signs[:, None, :]).reshape(-1, dim)
        return rows


def hadamard(vectors: Doubles) -> Doubles:
    """The Walsh-Hadamard transform of each row, over √d: symmetric and its own inverse, in O(d log d) a row.

    >>> hadamard(np.array([[3.0, 1.0, 0.0, 0.0]]))
    array([[2., 1., 2., 1.]])
    """
    dim = vectors.shape[1]
    values, mixed, half = vectors.T.copy(), np.empty_like(vectors.T, order="C"), dim // 2
    for _ in range(dim.bit_length() - 1):
        # Sums and differences of the halves, interleaved: after all stages each stands in its place.
        np.add(values[:half], values[half:], out=mixed[0::2])
        np.subtract(values[:half], values[half:], out=mixed[1::2])
        values, mixed = mixed, values
    whole: Doubles = values.T / math.sqrt(dim)
    return whole
