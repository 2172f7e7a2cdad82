"""K-means: the same as Lloyd's algorithm on one machine, and what nodes send as a plain loop would say it."""

from __future__ import annotations

import numpy as np
import pytest

from sparsemean import InvalidInput, named
from sparsemean._types import Doubles
from sparsemean.evaluation import truth
from sparsemean.lab.tasks import KMeans
from sparsemean.lab.trace import play
from sparsemean.payload.blocks import Blocks


def clustered(rows: int, dim: int = 3, clusters: int = 5, seed: int = 0) -> Doubles:
    rng = np.random.default_rng(seed)
    return rng.normal(scale=2, size=(clusters, dim))[rng.integers(clusters, size=rows)] + rng.normal(size=(rows, dim))


def split(rows: Doubles, *sizes: int) -> list[Doubles]:
    return np.split(rows, np.cumsum(sizes)[:-1])


def nearest(rows: Doubles, centres: Doubles) -> list[int]:
    return [int(np.argmin([np.sum((row - centre) ** 2) for centre in centres])) for row in rows]


def lloyd(rows: Doubles, centres: Doubles, rounds: int) -> tuple[Doubles, list[float]]:
    """The textbook's: centres after the rounds, and after each the mean squared distance to the nearest."""
    costs = []
    for _ in range(rounds):
        chosen = np.array(nearest(rows, centres))
        new = [rows[chosen == k].mean(axis=0) if np.any(chosen == k) else centres[k] for k in range(len(centres))]
        centres = np.array(new)
        costs.append(float(np.mean([np.min(np.sum((centres - row) ** 2, axis=1)) for row in rows])))
    return centres, costs


@pytest.mark.parametrize("sizes", [(90,), (50, 10, 30), (1,) * 90])
def test_exact_means_give_lloyds_algorithm(sizes: tuple[int, ...]) -> None:
    rows = clustered(90)
    task = KMeans(split(rows, *sizes), clusters=5)
    start = task.start(seed=1)
    _, costs = lloyd(rows, start.centres, 12)
    trace = play(task, None, 12, seed=1)
    np.testing.assert_allclose(trace.objective, costs, rtol=1e-12)
    assert np.all(np.diff([trace.start, *trace.objective]) <= 1e-12)


def test_float32_is_close_enough() -> None:
    rows = clustered(300)
    trace = play(KMeans(rows.astype(np.float32).reshape(6, 50, 3), clusters=5), None, 10, seed=1)
    np.testing.assert_allclose(
        trace.objective, play(KMeans(rows.reshape(6, 50, 3), 5), None, 10, seed=1).objective, 1e-5
    )


def test_a_node_sends_its_own_means_and_counts_and_the_centre_where_it_has_no_rows() -> None:
    parts = split(clustered(40), 2, 1, 20, 17)
    task = KMeans(parts, clusters=6)
    state = task.start(seed=3)
    assert np.any(task.weights(state) == 0)
    for part, vector, weight in zip(parts, task.vectors(state, 0), task.weights(state), strict=True):
        chosen = nearest(part, state.centres)
        for k, (centre, sent) in enumerate(zip(state.centres, vector.reshape(6, 3), strict=True)):
            own = [row for row, c in zip(part, chosen, strict=True) if c == k]
            assert weight[k] == len(own)
            np.testing.assert_allclose(sent, np.mean(own, axis=0) if own else centre, rtol=1e-12)


def test_a_cluster_that_is_empty_everywhere_keeps_its_centre() -> None:
    task = KMeans(split(clustered(30), 10, 20), clusters=3)
    far = np.array([[0.0, 0.0, 0.0], [1e3, 1e3, 1e3], [1.0, 1.0, 1.0]])
    state = task.step(task.start(seed=0), far.ravel())
    assert task.weights(state).sum(axis=0)[1] == 0
    after = task.step(state, np.full(9, 7.0))
    np.testing.assert_array_equal(after.centres, [[7.0] * 3, [1e3] * 3, [7.0] * 3])
    assert truth(task.vectors(state, 0), task.weights(state), Blocks(task.blocks)).nodes[1] == 0


def test_the_start_is_distinct_rows_and_the_seeds() -> None:
    rows = clustered(20)
    task = KMeans([rows], clusters=20)
    assert sorted(task.start(seed=4).centres.tolist()) == sorted(rows.tolist())
    assert task.objective(task.start(seed=4)) == pytest.approx(0, abs=1e-12)
    assert not np.array_equal(task.start(seed=4).centres, task.start(seed=5).centres)


def test_sparse_rounds_through_the_bytes_come_near_the_exact_ones() -> None:
    task = KMeans(clustered(600, dim=20).reshape(10, 60, 20), clusters=5)
    exact, spatial, plain = (
        play(task, scheme, 15, seed=2).objective[-1]
        for scheme in (None, named("rand-k-spatial-avg", k=0.5), named("rand-k", k=0.1))
    )
    assert spatial == pytest.approx(exact, rel=0.05)
    assert plain > 1.2 * exact


@pytest.mark.parametrize("clusters", [0, 4])
def test_there_are_not_more_clusters_than_rows(clusters: int) -> None:
    with pytest.raises(InvalidInput, match="3 rows"):
        KMeans([np.ones((3, 2))], clusters)
