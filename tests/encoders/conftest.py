"""Control over what encoders draw, so that their law can be enumerated instead of sampled."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

from sparsemean._types import Doubles, Floats
from sparsemean.encoders import Encoder
from sparsemean.sampling import Key

Law = tuple[Doubles, Doubles]
"""Chances, and the vector that the payload stands for with each of them."""


def encoded(encoder: Encoder, vector: Floats) -> Doubles:
    payload = encoder.encode(vector, Key(0, 0, "a"), {})
    assert payload is not None
    return payload.dense(vector.size)


@pytest.fixture
def all_samples(monkeypatch: pytest.MonkeyPatch) -> Callable[[Encoder, Floats, int], Law]:
    """The law of an encoder with one RandK, by giving it every sample of k coordinates in turn."""

    def law(encoder: Encoder, vector: Floats, k: int) -> Law:
        vectors = []
        for sample in map(np.array, itertools.combinations(range(vector.size), k)):
            monkeypatch.setattr("sparsemean.sampling.draws.sample_of", lambda key, d, k, sample=sample: sample)
            monkeypatch.setattr("sparsemean.sampling.draws.gathered", lambda at, vector: vector[at])
            vectors.append(encoded(encoder, vector))
        return np.full(len(vectors), 1.0 / len(vectors)), np.array(vectors)

    return law


@pytest.fixture
def all_starts(monkeypatch: pytest.MonkeyPatch) -> Callable[[Encoder, Floats], Law]:
    """The law of an encoder with one Wangni, whose only chance is a start uniform in [0, 1).

    The payload is piecewise constant in it; the pieces are found by bisection inside each cell of a grid.
    """

    def law(encoder: Encoder, vector: Floats) -> Law:
        def at(start: float) -> Doubles:
            word = np.array([int(start * 2.0**53) << 11], np.uint64)
            monkeypatch.setattr("sparsemean.encoders.wangni.words", lambda key, label, count: word)
            return encoded(encoder, vector)

        grid = np.linspace(0.0, 1.0 - 2.0**-53, 1 + 16 * vector.size)
        cells = list(itertools.pairwise((start, at(start)) for start in grid))
        pieces: list[tuple[float, Doubles]] = []
        while cells:
            (low, left), (high, right) = cells.pop()
            if np.array_equal(left, right) or high - low < 1e-15:
                pieces.append((high - low, left))
            else:
                middle = ((low + high) / 2, at((low + high) / 2))
                cells += [((low, left), middle), (middle, (high, right))]
        return np.array([chance for chance, _ in pieces]), np.array([vector for _, vector in pieces])

    return law
