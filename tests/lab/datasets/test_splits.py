"""Splits hold every sample exactly once, leave no node empty, and have the label counts they promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsemean._types import Ints
from sparsemean.errors import InvalidInput
from sparsemean.lab.datasets.splits import dirichlet, iid, shards

seeds = st.integers(0, 2**32)
WRONG_TYPE: Any = "2"


def check_partition(parts, n_samples: int, nodes: int) -> None:
    assert len(parts) == nodes
    assert all(part.size > 0 for part in parts)
    assert all(part.dtype == np.int64 for part in parts)
    assert all((np.diff(part) > 0).all() for part in parts)
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(n_samples))


@given(st.integers(1, 60), st.integers(0, 200), seeds)
def test_iid_is_even(nodes: int, more: int, seed: int) -> None:
    parts = iid(nodes + more, nodes, np.random.default_rng(seed))
    check_partition(parts, nodes + more, nodes)
    sizes = [part.size for part in parts]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 20), st.integers(1, 4), st.lists(st.integers(0, 9), min_size=80, max_size=200), seeds)
def test_shards_are_even(nodes: int, per_node: int, labels: list[int], seed: int) -> None:
    parts = shards(labels, nodes, np.random.default_rng(seed), per_node)
    check_partition(parts, len(labels), nodes)
    sizes = [part.size for part in parts]
    assert max(sizes) - min(sizes) <= per_node


@given(st.integers(1, 30), st.integers(1, 3), st.integers(1, 10), seeds)
def test_shards_that_fit_the_labels_hold_one_label_each(nodes: int, per_node: int, size: int, seed: int) -> None:
    """Every label has a multiple of the shard size, as in Fashion-MNIST with 100 nodes."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(nodes * per_node) % 10, size))
    for part in shards(labels, nodes, rng, per_node):
        assert part.size == per_node * size
        assert np.unique(labels[part]).size <= per_node


@given(st.integers(2, 20), st.integers(0, 7), seeds)
def test_shards_no_longer_than_a_label_span_at_most_two(nodes: int, more: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(10), nodes + more))
    for part in shards(labels, 5 * nodes, rng):
        assert np.unique(labels[part]).size <= 4


@given(st.integers(1, 10), st.floats(0.3, 100), st.lists(st.integers(0, 5), min_size=60, max_size=200), seeds)
def test_dirichlet_leaves_no_node_empty(nodes: int, alpha: float, labels: list[int], seed: int) -> None:
    parts = dirichlet(labels, nodes, alpha, np.random.default_rng(seed))
    check_partition(parts, len(labels), nodes)


def effective_labels(parts, labels) -> float:
    """Average over the nodes of 1/Σ(share of label)²: how many labels a node has, by weight."""
    shares = np.array([np.bincount(labels[part], minlength=10) / part.size for part in parts])
    return float(np.mean(1 / np.sum(shares**2, axis=1)))


def test_dirichlet_nears_iid_for_large_alpha_and_single_labels_for_small() -> None:
    labels = np.repeat(np.arange(10), 1_000)
    few, some, all_ = (
        effective_labels(dirichlet(labels, 10, alpha, np.random.default_rng(0)), labels) for alpha in (0.05, 1, 1e6)
    )
    assert few < 3 < some < 9
    assert all_ == pytest.approx(10, abs=0.01)


def test_dirichlet_shares_have_the_mean_and_variance_of_the_distribution() -> None:
    """One label, 4 nodes: a share has mean 1/4 and variance (1/4)(3/4)/(4α + 1); 2,000 draws, |z| < 5."""
    rng, alpha, draws = np.random.default_rng(1), 2.0, 2_000
    labels = np.zeros(1_000, np.int64)
    shares = np.array([[part.size for part in dirichlet(labels, 4, alpha, rng)] for _ in range(draws)]) / 1_000
    variance = 0.25 * 0.75 / (4 * alpha + 1)
    np.testing.assert_allclose(shares.mean(axis=0), 0.25, atol=5 * np.sqrt(variance / draws))
    np.testing.assert_allclose(shares.var(axis=0), variance, rtol=5 * np.sqrt(2.5 / draws))


def test_dirichlet_gives_up_when_nodes_stay_empty() -> None:
    told = "1000 draws with alpha=0.0001 all left one of the 50 nodes without samples; raise alpha or take fewer nodes"
    with pytest.raises(InvalidInput, match=told):
        dirichlet(np.repeat(np.arange(10), 10), 50, 1e-4, np.random.default_rng(0))


def test_the_generator_decides() -> None:
    labels = np.arange(300) % 10
    splits: list[Callable[[np.random.Generator], list[Ints]]] = [
        lambda rng: iid(300, 5, rng),
        lambda rng: shards(labels, 5, rng),
        lambda rng: dirichlet(labels, 5, 1.0, rng),
    ]
    for split in splits:
        one, same, other = (np.concatenate(split(np.random.default_rng(seed))).tolist() for seed in (0, 0, 1))
        assert one == same
        assert one != other


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda rng: iid(10, 0, rng), "nodes is an int from 1 on, got 0"),
        (lambda rng: iid(10, WRONG_TYPE, rng), "nodes is an int from 1 on, got '2'"),
        (lambda rng: iid(10, True, rng), "nodes is an int from 1 on, got True"),
        (lambda rng: iid(2, 3, rng), "3 nodes need at least 3 samples, got 2"),
        (lambda rng: shards([0] * 5, 3, rng), "3 nodes need at least 6 samples, got 5"),
        (lambda rng: shards([0] * 5, 3, rng, 0), "shards_per_node is an int from 1 on, got 0"),
        (lambda rng: shards([[0], [1]], 1, rng), r"labels are a flat array of ints, got shape \(2, 1\) of int64"),
        (lambda rng: shards([0.5, 1.0], 1, rng), r"labels are a flat array of ints, got shape \(2,\) of float64"),
        (lambda rng: dirichlet([], 1, 1.0, rng), "labels are a flat array of ints"),
        (lambda rng: dirichlet([1, 2], 3, 1.0, rng), "3 nodes need at least 3 samples, got 2"),
        (lambda rng: dirichlet([1, 2], 2, 0.0, rng), r"alpha is a positive number, got 0\.0"),
        (lambda rng: dirichlet([1, 2], 2, float("nan"), rng), "alpha is a positive number, got nan"),
        (lambda rng: dirichlet([1, 2], 2, float("inf"), rng), "alpha is a positive number, got inf"),
        (lambda rng: dirichlet([1, 2], 2, WRONG_TYPE, rng), "alpha is a positive number, got '2'"),
    ],
)
def test_wrong_arguments_are_named(call, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        call(np.random.default_rng(0))
