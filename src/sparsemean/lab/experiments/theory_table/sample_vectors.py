"""Vectors on which statements are measured: drawn ones of low to high correlation, and real ones."""

from __future__ import annotations

import numpy as np

from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.lab.weather import load_weather

NODES, DIM = 10, 100


def correlated(common: float, seed: int = 0) -> Doubles:
    """(10, 100): a vector that all share, ``common`` times, plus one of each node's own.

    >>> correlated(0.0).shape
    (10, 100)
    """
    rng = np.random.default_rng(seed)
    shared, own = rng.normal(size=DIM), rng.normal(size=(NODES, DIM))
    return np.asarray(common * shared + own)


def weather_day(number: int = 0) -> Doubles:
    """(37, 89): one day at the weather stations."""
    vectors: Doubles = load_weather().vectors[number].astype(np.float64)
    return vectors


def affordable(trials: int, vectors: Doubles) -> int:
    """The number of trials, less for more nodes, so that all statements take about as long."""
    return max(20, trials * NODES // len(vectors))


def described(vectors: Doubles) -> str:
    """Size and correlation of the vectors as text."""
    n, d = vectors.shape
    r1, r2 = theory.correlation(vectors)
    return f"n = {n}, d = {d}, R2/R1 = {r2 / r1:.2f}"
