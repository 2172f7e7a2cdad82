"""K-means: Lloyd's algorithm on rows that are distributed over nodes (Section 5, Appendix C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats
from sparsemean.errors import InvalidInput
from sparsemean.lab.tasks.base import Task
from sparsemean.lab.tasks.node_rows import NodeRows


@dataclass(frozen=True, eq=False)
class Clustering:
    """Centres, and the assignment of every row to its nearest one.

    Parameters
    ----------
    centres
        Shape (K, dim).
    counts
        How many rows of each node are in each cluster, shape (nodes, K).
    means
        The mean of each node's own rows in each cluster, shape (nodes, K·dim).
    cost
        Mean squared distance of a row to its centre.
    """

    centres: Doubles
    counts: Doubles
    means: Floats
    cost: float


class KMeans(Task[Clustering]):
    """Node i sends the means of its own rows in each cluster, weighted by how many it has there.

    The K centres are blocks of one vector. An empty local cluster sends the current centre with weight 0; a cluster
    that is empty everywhere keeps its centre. The start is K distinct rows drawn at random; the objective is the mean
    over all rows of the squared distance to the nearest centre; the metric ``empty`` counts clusters without rows.

    >>> task = KMeans([[[0.0], [2.0]], [[10.0], [14.0]]], clusters=2)
    >>> state = task.start(seed=1)
    >>> for round in range(3):
    ...     weights, vectors = task.weights(state), task.vectors(state, round)
    ...     state = task.step(state, (weights * vectors).sum(axis=0) / weights.sum(axis=0))
    >>> sorted(state.centres.ravel().tolist()), task.objective(state)
    ([1.0, 12.0], 2.5)
    """

    blocks: tuple[int, ...]

    def __init__(self, parts: Sequence[npt.ArrayLike] | npt.NDArray[np.generic], clusters: int = 10) -> None:
        self._data = NodeRows.of(parts)
        if not 1 <= clusters <= len(self._data.rows):
            raise InvalidInput(f"clusters is a number from 1 to the {len(self._data.rows)} rows, got {clusters!r}")
        self._clusters = clusters
        super().__init__(self._data.nodes, clusters * self._data.dim, (self._data.dim,) * clusters)
        self._energy = float(np.mean(np.einsum("ij,ij->i", self._data.rows, self._data.rows), dtype=np.float64))

    def start(self, seed: int) -> Clustering:
        chosen = np.random.default_rng(seed).choice(len(self._data.rows), self._clusters, replace=False)
        return self._assign(self._data.rows[chosen].astype(np.float64))

    def _assign(self, centres: Doubles) -> Clustering:
        """Assign rows to the nearest centres by ‖c‖² − 2⟨a, c⟩, one product over all rows; then sum them by node."""
        data = self._data
        used = centres.astype(data.rows.dtype)
        away = np.einsum("kj,kj->k", used, used) - 2 * (data.rows @ used.T)
        nearest = away.argmin(axis=1)
        cost = self._energy + float(np.mean(np.take_along_axis(away, nearest[:, None], axis=1), dtype=np.float64))
        member = np.eye(self._clusters, dtype=data.rows.dtype)[nearest]
        sums = np.array([member[own].T @ data.rows[own] for own in data.slices])
        counts = np.array([np.bincount(nearest[own], minlength=self._clusters) for own in data.slices])[..., None]
        means = np.divide(sums, counts, out=np.tile(used, (self.nodes, 1, 1)), where=counts > 0, casting="same_kind")
        return Clustering(centres, counts[..., 0].astype(np.float64), means.reshape(self.nodes, -1), max(cost, 0.0))

    def vectors(self, state: Clustering, round: int) -> Floats:
        return state.means

    def weights(self, state: Clustering) -> Doubles:
        return state.counts

    def step(self, state: Clustering, mean: Doubles) -> Clustering:
        occupied = state.counts.sum(axis=0)[:, None] > 0
        return self._assign(np.where(occupied, mean.reshape(state.centres.shape), state.centres))

    def objective(self, state: Clustering) -> float:
        return state.cost

    def metrics(self, state: Clustering) -> dict[str, float]:
        return {"empty": float(np.count_nonzero(state.counts.sum(axis=0) == 0))}
