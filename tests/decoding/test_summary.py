"""Ranges of coordinates: what each tells of a round adds up to what the whole vector tells."""

from __future__ import annotations

import functools
import operator
from itertools import pairwise

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.decoding.moment_sample import MomentSample, moment_sample
from sparsemean.decoding.summary import Summary
from sparsemean.decoding.totals import RoundTotals
from sparsemean.journal.written_tree import read_tree, written
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks
from sparsemean.payload.noise import Levels
from sparsemean.server.estimator import Estimator

LAYERS = Blocks((5_000, 249_000, 46_000))
CUTS = (0, 4096, 36_864, 45_056, 45_056, 200_704, 300_000)  # of the third nothing is moment_sample, the fourth is empty


def test_layers_are_clipped_to_a_range_and_may_be_empty() -> None:
    cut = LAYERS.within(4096, 200_704)
    assert cut.sizes == (904, 195_704, 0)
    np.testing.assert_array_equal(cut.sums(np.ones(cut.dim)), cut.sizes)
    np.testing.assert_array_equal(cut.largest(np.arange(cut.dim, dtype=np.int32)), [903, cut.dim - 1, 0])
    np.testing.assert_array_equal(cut.of(np.array([0, 903, 904, cut.dim - 1])), [0, 0, 1, 1])
    assert LAYERS.within(0, 0).sums(np.zeros(0)).tolist() == [0, 0, 0]
    assert LAYERS.within(0, LAYERS.dim) is LAYERS


def test_what_is_kept_of_ranges_is_what_is_kept_of_the_whole() -> None:
    whole, parts = moment_sample(LAYERS), [MomentSample(LAYERS, lo, hi) for lo, hi in pairwise(CUTS)]
    every = np.concatenate([part.coordinates + lo for part, lo in zip(parts, CUTS, strict=False)])
    np.testing.assert_array_equal(every, whole.coordinates)
    assert [part.count for part in parts] == [part.coordinates.size for part in parts]
    assert not whole.everything
    assert parts[2].count == 0
    for part, lo, hi in zip(parts, CUTS, CUTS[1:], strict=False):
        np.testing.assert_array_equal(part.scale, whole.scale)
        places = part.places(np.arange(hi - lo))
        np.testing.assert_array_equal(np.flatnonzero(places >= 0), part.coordinates)
        np.testing.assert_array_equal(places[places >= 0], np.arange(part.count))
    held = LAYERS.sums_at(whole.coordinates, np.ones(whole.count))
    np.testing.assert_array_equal(whole.scale, np.asarray(LAYERS.sizes) / held)


def totals_of(lo: int, hi: int) -> RoundTotals:
    """Two classes of nodes, with noise, cut to a range."""
    random = np.random.default_rng(3)
    totals = RoundTotals(LAYERS.within(lo, hi), True, 2, moment_sample(LAYERS, lo, hi))
    for node in range(6):
        at = np.sort(random.choice(LAYERS.dim, 30_000, replace=False))
        values, noise = random.normal(size=at.size), random.random(at.size)
        here = (at >= lo) & (at < hi)
        part = Part(at[here] - lo, values[here], 3.0, Levels(noise[here], 1, noise[here].size))
        totals.add(np.array([1.0, 2.0, float(node)]), [part], node % 2)
    return totals


def test_summaries_of_ranges_add_up_to_that_of_the_whole() -> None:
    fits = np.arange(6.0).reshape(2, 3)
    whole = Summary.of(totals_of(0, LAYERS.dim), fits * (len(CUTS) - 1))
    parts = [Summary.of(totals_of(lo, hi), fits) for lo, hi in pairwise(CUTS)]
    added = functools.reduce(operator.add, parts)
    for name, value in vars(whole).items():
        if name not in ("moments", "by_count"):
            np.testing.assert_allclose(getattr(added, name), value, rtol=1e-12, err_msg=name)
    assert whole.moments is not None
    assert added.moments is not None
    for name, value in vars(whole.moments).items():
        np.testing.assert_allclose(getattr(added.moments, name), value, rtol=1e-11, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(added.by_count.counts, whole.by_count.counts)
    np.testing.assert_allclose(added.by_count.sums, whole.by_count.sums, rtol=1e-10, atol=1e-6)
    again = Summary.of_tree(read_tree(b"".join(written(added.tree()))))
    np.testing.assert_array_equal(again.products, added.products)
    np.testing.assert_array_equal(again.by_count.sums, added.by_count.sums)
    assert again.moments is not None
    np.testing.assert_array_equal(again.moments.s2, added.moments.s2)


def test_summaries_of_different_nodes_are_not_added() -> None:
    one, other = (Summary.of(totals_of(0, 4096), np.zeros((0, 0))) for _ in range(2))
    other.weight[0] += 1
    with pytest.raises(ValueError, match="different nodes"):
        one + other


def test_a_range_without_coordinates_knows_all_but_them() -> None:
    run = sm.Run(sm.named("rand-k-hybrid", k=0.1), 20_000)
    empty = Estimator(run, None, 0, 0)
    summary = empty.summary()
    assert summary.moments is not None
    assert float(np.sum(summary.moments.s2)) == 0.0
    assert empty.memory.node_bytes == 0
