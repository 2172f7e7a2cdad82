"""Coordinates listed by tile: the compiled loops leave the same bits as their NumPy twins, on any number of threads."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparsemean.kernels import Blend, Columns, check_of, compiled_listed
from sparsemean.kernels.listed import (
    ListedBatch,
    ListedChanges,
    ListedFit,
    ListedTotals,
    carry_listed_numpy,
    fit_listed_numpy,
    fold_listed_numpy,
    put_listed_numpy,
)
from sparsemean.kernels.tiled import Tiled

TILE = 16
sizes = st.lists(st.integers(1, 60), min_size=1, max_size=4) | st.integers(1, 5000).map(lambda dim: [dim])


@pytest.fixture(autouse=True)
def _short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of three tiles, so that short vectors have several, and leaves of sums lie across them."""
    monkeypatch.setattr(compiled_listed, "_PART", 3)


def tiled(rng: np.random.Generator, chosen: Any, dim: int) -> Tiled:
    """These coordinates, each tile in some order."""
    counts = np.bincount(chosen // TILE, minlength=-(-dim // TILE))
    found = Tiled.empty(TILE, counts)
    shuffled = rng.permutation(chosen)
    found.places[:] = shuffled[np.argsort(shuffled // TILE, kind="stable")] % TILE
    return found


def lists(rng: np.random.Generator, dim: int, nodes: int) -> list[Tiled]:
    """Two for each node, which have no coordinate in common."""
    found = []
    for _ in range(nodes):
        order = rng.permutation(dim)
        a, b = np.sort(rng.integers(0, dim + 1, 2))
        found += [tiled(rng, order[:a], dim), tiled(rng, order[a:b], dim)]
    return found


def twice(each: list[Any]) -> list[Any]:
    return [one for one in each for _ in range(2)]


def starts_of(sizes: list[int]) -> Any:
    return np.cumsum([0, *sizes[:-1]])


def test_a_list_tells_its_coordinates() -> None:
    rng = np.random.default_rng(3)
    chosen = rng.permutation(100)[:40]
    where = tiled(rng, chosen, 100)
    assert sorted(where.coordinates.tolist()) == sorted(chosen.tolist())
    assert where.k == 40
    assert where.places.dtype == np.uint16
    assert Tiled.empty(1 << 17, np.array([1])).places.dtype == np.uint32
    between = where.between(32, 80).coordinates + 32
    every = where.coordinates
    assert between.tolist() == every[(every >= 32) & (every < 80)].tolist()
    near, places = where.near(np.array([0, 50, 99]))
    assert near.tolist() == every[np.isin(every // TILE, [0, 3, 6])].tolist() == every[places].tolist()


@pytest.mark.parametrize("size", [0, 1, 7, 8, 127, 128, 129, 200, 1000, 4099, 100_003])
def test_leaves_are_those_of_numpys_sum(size: int) -> None:
    """What ``fold_listed`` rests on: NumPy halves an array down to 128 entries, and sums those in eight lanes."""
    x = np.random.default_rng(size).lognormal(sigma=5.0, size=size)
    ends, depth = compiled_listed._leaves(size)
    nothing = np.empty(0, np.int64)
    leaves = np.array([np.sum(x[a:b]) for a, b in pairwise(ends)])
    assert compiled_listed._tree_sum(ends, depth, nothing, x, leaves) == np.sum(x)
    every = np.arange(1, max(size, 1))  # all leaves are cut, and so summed by the loop
    assert compiled_listed._tree_sum(ends, depth, every, x, np.full(depth.size, np.nan)) == np.sum(x) or size < 2


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("expects", ["nothing", "rows", "blend"])
@given(sizes=sizes, seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_what_is_folded(expects: str, threads: int, sizes: list[int], seed: int) -> None:
    rng, dim, nodes = np.random.default_rng(seed), sum(sizes), 3
    where = lists(rng, dim, nodes)
    values = [rng.normal(size=each.k).astype(np.float32) for each in where]
    rows = [rng.normal(size=dim).astype(np.float32) for _ in range(nodes)]
    heard = [None, *(rng.integers(0, 2, dim).astype(np.uint8) for _ in range(nodes - 1))]
    known: list[Any] = [None] * nodes if expects == "nothing" else [None, *rows[1:]]
    blend = Blend(rng.normal(size=dim), twice(heard), rng.random((3, len(sizes)))) if expects == "blend" else None
    has = rng.random(-(-dim // TILE)) < 0.4
    begin = np.where(has, np.cumsum(has) * TILE - TILE, -1)
    held = [int(np.sum(np.diff(each.at)[has])) for each in where]
    noise = [None if i % 3 else rng.random(size) for i, size in enumerate(held)]
    batch = ListedBatch(
        where,
        values,
        twice(known),
        rng.random((2 * nodes, len(sizes))) + 0.1,
        starts_of(sizes),
        (1.0 + rng.random(2 * nodes) * 9).tolist(),
        noise,
        blend,
    )
    found = []
    for each in (fold_listed_numpy, compiled_listed.fold_listed):
        powers = np.zeros((3, int(has.sum()) * TILE))
        totals = ListedTotals(np.zeros(dim), np.zeros(dim, np.int32), begin, *powers)
        sums = each(totals, batch, threads)
        arrays: list[Any] = [*totals, sums.energy, sums.spread, *sums.held]
        found.append([array.tobytes() for array in arrays])
    assert found[0] == found[1]


@pytest.mark.parametrize("threads", [1, 2])
@given(sizes=sizes, seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_what_a_fit_sums(threads: int, sizes: list[int], seed: int) -> None:
    rng, dim, nodes = np.random.default_rng(seed), sum(sizes), 3
    where, common = lists(rng, dim, nodes), rng.normal(size=dim)
    values = [rng.normal(size=each.k).astype(np.float32) for each in where]
    heard = [rng.integers(0, 2, dim).astype(np.uint8) for _ in range(nodes)]
    rows = [(flags * np.where(rng.random(dim) < 0.3, common, rng.normal(size=dim))).astype("f4") for flags in heard]
    fit = ListedFit(
        where,
        values,
        twice([None, *rows[1:]]),
        twice([None, *heard[1:]]),
        rng.random((2 * nodes, len(sizes))),
        starts_of(sizes),
        common,
        1e-7,
    )
    one, other = (each(fit, threads) for each in (fit_listed_numpy, compiled_listed.fit_listed))
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", ["f4", "f8", "u1"])
@given(sizes=sizes, seed=st.integers(0, 2**32))
@settings(max_examples=20, deadline=None)
def test_what_changes_in_sums_and_rows(dtype: str, threads: int, sizes: list[int], seed: int) -> None:
    """Values are few and far apart, so that sums are often cancelled, and some more than once."""
    rng, dim, nodes = np.random.default_rng(seed), sum(sizes), 4
    scale = 1 if dtype == "u1" else 10.0 ** rng.integers(0, 9, (nodes, dim))
    rows = (rng.integers(0, 2, (nodes, dim)) * scale).astype(dtype)
    where = lists(rng, dim, nodes)
    values = [rng.integers(0, 2, each.k).astype(dtype) for each in where]
    weights = np.repeat(rng.integers(1, 3, (2, nodes, len(sizes))).astype(float), 2, axis=1)
    found = []
    for carry, put in (
        (carry_listed_numpy, put_listed_numpy),
        (compiled_listed.carry_listed, compiled_listed.put_listed),
    ):
        block = np.repeat(np.arange(len(sizes)), sizes)
        sums = [(weights[s, ::2, block].T * rows).sum(axis=0) for s in range(2)]
        changes = ListedChanges(where, values, twice([row.copy() for row in rows]))
        checks = np.zeros(2 * nodes, np.uint64)
        lost = carry(Columns(sums, weights, starts_of(sizes)), changes, threads, checks)
        put(changes, threads)
        every = np.arange(dim)
        for i in range(nodes):
            added = (check_of(changes.rows[2 * i], every) - check_of(rows[i], every)) % 2**64
            assert int(checks[2 * i : 2 * i + 2].sum()) == added
        found.append(
            [
                *(each.tobytes() for each in (*sums, checks, *changes.rows)),
                *((each.at.tolist(), each.since.tolist()) for each in lost),
            ]
        )
    assert found[0] == found[1]


def test_lists_of_another_size_or_type_are_refused() -> None:
    where = tiled(np.random.default_rng(0), np.arange(10), 40)
    row = np.zeros(40, np.float32)
    for values in (np.zeros(9, np.float32), np.zeros(11, np.float32)):
        with pytest.raises(ValueError, match="as many numbers as coordinates"):
            compiled_listed.put_listed(ListedChanges([where], [values], [row]))
    both = [where, where._replace(tile=8)]
    with pytest.raises(ValueError, match="one tile size"):
        compiled_listed.put_listed(ListedChanges(both, [np.zeros(10, np.float32)] * 2, [row] * 2))
