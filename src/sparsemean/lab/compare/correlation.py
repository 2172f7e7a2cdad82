"""Correlation of the vectors: between nodes in a round, and of each node with its past."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles


@dataclass(frozen=True)
class VectorCorrelation:
    """Correlation between nodes and between rounds.

    Parameters
    ----------
    nodes
        Number of nodes with a weight above 0.
    ratio
        R2/R1 over all rounds, at most n − 1.
    change
        Σ‖x_t − x_{t−1}‖² / Σ‖x_t‖²; None for a single round.
    """

    nodes: int
    ratio: float
    change: float | None


def vector_correlation(vectors: Doubles, weights: Doubles | None = None) -> VectorCorrelation:
    """The correlation of (rounds, n, d) vectors; with weights, R1 and R2 are those of w_i x_i, as a decoder sees them.

    >>> vector_correlation(np.ones((2, 3, 4)))
    VectorCorrelation(nodes=3, ratio=2.0, change=0.0)
    """
    weighted = vectors if weights is None else weights[:, None] * vectors
    nodes = weighted.shape[1] if weights is None else int(np.count_nonzero(weights))
    energies = [theory.correlation(batch) for batch in weighted]
    r1, r2 = (sum(column) for column in zip(*energies, strict=True))
    later = float(np.sum(weighted[1:] ** 2))
    change = None if len(vectors) < 2 else float(np.sum(np.diff(weighted, axis=0) ** 2)) / later if later else 0.0
    return VectorCorrelation(nodes, theory.optimal_ratio(r1, r2, nodes), change)
