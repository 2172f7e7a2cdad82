"""Round totals: what is streamed in equals the table it stands for, in whatever order and however split."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.decoding.totals import RoundTotals
from sparsemean.payload import Part
from sparsemean.payload.blocks import Blocks
from sparsemean.theory import Moments

BLOCKS = Blocks((5, 1, 14))
NODES = 9


def story(seed: int, zeros: bool = True) -> list[tuple[Doubles, list[Part]]]:
    """Weights per block, some of them 0, and one to three parts a node."""
    rng = np.random.default_rng(seed)
    nodes = []
    for _ in range(NODES):
        weight = rng.choice([0.0 if zeros else 1.0, 0.5, 1.0, 2.0], size=3)
        parts = [
            Part(rng.permutation(20)[: rng.integers(0, 12)], np.empty(0), rng.uniform(0.5, 4))
            for _ in range(rng.integers(1, 4))
        ]
        nodes.append((weight, [Part(p.coordinates, rng.normal(size=p.coordinates.size), p.scale) for p in parts]))
    return nodes


def streamed(nodes, moments: bool = True) -> RoundTotals:
    totals = RoundTotals(BLOCKS, moments)
    for weight, parts in nodes:
        totals.add(weight, parts)
    return totals


@pytest.mark.parametrize("seed", range(5))
def test_every_total_is_that_of_the_full_table(seed: int) -> None:
    """One row a part: powers are of each value received, since one part stands for one sample."""
    nodes, block_of = story(seed), np.repeat(np.arange(3), BLOCKS.sizes)
    rows, counted = [], []
    for weight, parts in nodes:
        for part in parts:
            y, m = np.zeros(20), np.zeros(20)
            y[part.coordinates] = weight[block_of[part.coordinates]] * part.scale * part.values
            m[part.coordinates] = weight[block_of[part.coordinates]] > 0
            rows.append(y)
            counted.append(m)
    totals, table = streamed(nodes), np.array(rows)
    np.testing.assert_array_equal(totals.counts, np.sum(counted, axis=0))
    np.testing.assert_array_equal(totals.nodes, np.sum([weight > 0 for weight, _ in nodes], axis=0))
    np.testing.assert_allclose(totals.weight, np.sum([weight for weight, _ in nodes], axis=0), rtol=1e-14)
    np.testing.assert_allclose(totals.sums, table.sum(axis=0), rtol=0, atol=1e-12)
    moments, by_count = totals.summary() or (None, None)
    assert moments is not None
    assert by_count is not None
    for block in range(3):
        here = totals.counts[block_of == block]  # which exceed the number of nodes, where one sends in two parts
        np.testing.assert_array_equal(by_count.number[:, block], [np.sum(here == m) for m in by_count.counts])
        assert by_count.number[:, block].sum() == here.size
        exact = Moments.of(table[:, block_of == block])
        for name, value in vars(exact).items():
            assert getattr(moments, name)[block] == pytest.approx(value, rel=1e-11, abs=1e-12), name


@pytest.mark.parametrize("moments", [True, False])
def test_merged_totals_are_streamed_totals(moments: bool) -> None:
    nodes = story(7)
    whole = streamed(nodes, moments)
    merged = streamed(nodes[:4], moments)
    merged.merge(streamed(nodes[4:], moments))
    for name, array in vars(whole).items():
        if isinstance(array, np.ndarray):
            np.testing.assert_allclose(getattr(merged, name), array, rtol=1e-12, atol=1e-12, err_msg=name)


def test_the_order_of_nodes_does_not_matter() -> None:
    nodes = story(8)
    np.testing.assert_allclose(streamed(nodes).sums, streamed(nodes[::-1]).sums, rtol=0, atol=1e-12)
    assert np.array_equal(streamed(nodes).counts, streamed(nodes[::-1]).counts)


def test_a_block_without_weight_is_not_counted() -> None:
    totals = RoundTotals(BLOCKS, moments=True)
    totals.add(np.array([1.0, 0.0, 2.0]), [Part(np.arange(20), np.ones(20), scale=3.0)])
    assert totals.nodes.tolist() == [1, 0, 1]
    assert totals.counts.tolist() == [1] * 5 + [0] + [1] * 14
    assert totals.sums.tolist() == [3.0] * 5 + [0.0] + [6.0] * 14


def test_a_node_that_says_unchanged_counts_as_a_node() -> None:
    totals = RoundTotals(BLOCKS, moments=False)
    totals.add(np.ones(3), ())
    assert totals.nodes.tolist() == [1, 1, 1]
    assert not totals.counts.any()


@pytest.mark.parametrize("other", [RoundTotals(Blocks((20,)), True), RoundTotals(BLOCKS, False)])
def test_totals_of_another_run_are_refused_and_nothing_changes(other: RoundTotals) -> None:
    totals = streamed(story(1))
    before = totals.sums.copy()
    with pytest.raises(sm.InvalidInput, match="same Run"):
        totals.merge(other)
    assert np.array_equal(totals.sums, before)


def test_without_moments_there_is_no_summary() -> None:
    assert RoundTotals(BLOCKS, moments=False).summary() is None


def test_float32_values_are_summed_in_float64() -> None:
    """Their fourth powers would overflow from 4e9 on."""
    totals = RoundTotals(Blocks((2,)), moments=True)
    for _ in range(3):
        totals.add(np.ones(1), [Part(np.array([0]), np.array([1e30], np.float32), scale=100.0)])
    totals.add(np.ones(1), [Part(np.array([0]), np.array([1.0], np.float32))])
    moments, _ = totals.summary() or (None, None)
    assert moments is not None
    assert np.sum(moments.p4) == pytest.approx(3e128, rel=1e-6)
    assert totals.sums[0] == pytest.approx(3e32, rel=1e-7)
