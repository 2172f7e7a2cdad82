"""Coordinates that share senders: the sum of their covariances is exact for any pattern of sets, by enumeration."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from sparsemean.theory.shared_senders import Parts, shared_sender_covariance, squared_differences

PATTERNS: list[tuple[int, list[tuple[int, ...]]]] = [
    (3, [(0,), (0, 1), (1, 2)]),
    (4, [(0, 1), (0, 1), (2, 3), (2, 3)]),
    (4, [(0, 1), (1, 2), (2, 3), ()]),
    (5, [(0, 1, 2), (2, 3, 4), (4, 0, 1), (1, 2)]),
]


def gap(a: float, x: np.ndarray, senders: tuple[int, ...]) -> float:
    """Predicted less actual error, summed over the coordinates of x, from the definition."""
    if not senders:
        return 0.0
    came = x[list(senders)]
    mean = came.mean(axis=0)
    return float(np.sum(a * np.sum((came - mean) ** 2, axis=0) - (mean - x.mean(axis=0)) ** 2))


@pytest.mark.parametrize(("n", "pattern"), PATTERNS, ids=str)
def test_covariances_add_up_to_the_formula(n: int, pattern: list[tuple[int, ...]]) -> None:
    """Over all ways to name the nodes, of the gaps averaged over the coordinates."""
    a, x = 0.3, np.random.default_rng(n).normal(size=(n, 7))
    gaps = [
        [gap(a, x, tuple(names[i] for i in senders)) / 7 for senders in pattern] for names in permutations(range(n))
    ]
    covariances = np.cov(np.array(gaps).T, bias=True)
    sent = np.array([[float(i in senders) for senders in pattern] for i in range(n)])
    parts = Parts.of(np.mean((x[:, None] - x) ** 2, axis=2))
    found = shared_sender_covariance(a, sent, parts.products(parts))
    assert found == pytest.approx(covariances.sum() - np.trace(covariances), rel=1e-10)


def test_the_differences_of_the_two_halves_are_multiplied() -> None:
    x = np.random.default_rng(1).normal(size=(5, 8))
    even, odd = (Parts.of(np.mean((x[:, None, half::2] - x[:, half::2]) ** 2, axis=2)) for half in (0, 1))
    np.testing.assert_allclose(squared_differences(x, np.ones_like(x)), even.products(odd), rtol=1e-10)


def test_where_nodes_differ_alike_nothing_is_found() -> None:
    """400 draws of 2 of 6 nodes a coordinate: the mean of both parts is 0 within 4.5 standard errors."""
    rng, found = np.random.default_rng(2), []
    for _ in range(400):
        sent = np.argsort(rng.random((6, 60)), axis=0) < 2
        found.append(squared_differences(sent * rng.normal(size=(6, 60)), sent.astype(float)))
    z = np.mean(found, axis=0) / (np.std(found, axis=0, ddof=1) / 20.0)
    assert np.all(np.abs(z) < 4.5)
