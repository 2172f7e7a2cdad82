"""The paper's O(d) memory multiplies its own error by the feedback factor, and the server says so where it diverges."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import theory
from sparsemean._types import Doubles
from sparsemean.memory import Memory, MemoryFacts, MemorySpec, MemoryState


def play(server: sm.Server, vectors: Doubles, rounds: int) -> list[sm.Estimate]:
    estimates = []
    for _ in range(rounds):
        for i, vector in enumerate(vectors):
            node = f"node-{i}"
            server.accept(node, sm.Client(server.run, node).encode(vector, server.round))
        estimates.append(server.close_round())
    return estimates


def shared(k: int, T: str | float, dim: int, seed: int = 0) -> sm.Server:
    return sm.Server(sm.Run(sm.Scheme(sm.RandK(k), sm.Spatial(T), sm.Shared(), "float64"), dim, seed))


SETTINGS = [(n, k, T) for n in (1, 2, 10) for k in (1, 5, 9, 10, 11, 33, 34, 49, 50, 51, 100) for T in ("one", "max")]


@pytest.mark.parametrize(("n", "k", "T"), SETTINGS)
def test_the_warning_appears_exactly_where_the_factor_is_one_or_more(n: int, k: int, T: str) -> None:
    factor = theory.feedback_factor(T, n, k / 100)
    vectors = np.random.default_rng(0).normal(size=(n, 100))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        play(shared(k, T, 100), vectors, 2)
    told = [warning for warning in caught if issubclass(warning.category, sm.DivergenceWarning)]
    assert len(told) == len(caught) == (factor >= 1)
    if told:
        assert f"{factor:.3g}" in str(told[0].message)


def test_the_settings_above_lie_on_both_sides() -> None:
    factors = [theory.feedback_factor(T, n, k / 100) for n, k, T in SETTINGS]
    assert sum(f >= 1 for f in factors) > 8
    assert sum(f < 1 for f in factors) > 8
    assert any(f == 1.0 for f in factors), "one node that sends half is on the boundary"


def test_every_server_warns_once_and_points_at_the_caller() -> None:
    vectors = np.ones((10, 100))
    for _ in range(2):
        server = shared(1, "one", 100)
        with pytest.warns(sm.DivergenceWarning, match="diverge") as told:
            play(server, vectors, 5)
        assert len(told) == 1
        assert told[0].filename == __file__


@pytest.mark.parametrize("memory", [sm.PerNode(), sm.Window(2), None])
def test_other_memories_never_warn(memory: sm.Memory | None) -> None:
    server = sm.Server(sm.Run(sm.Scheme(sm.RandK(1), memory=memory), dim=100))
    play(server, np.ones((10, 100)), 5)


@pytest.mark.filterwarnings("ignore::sparsemean.DivergenceWarning")
@pytest.mark.parametrize(("n", "k", "T"), [(10, 5, "one"), (10, 20, "one"), (3, 20, "max"), (5, 100, "max")])
def test_the_error_grows_by_the_factor_each_round(n: int, k: int, T: str) -> None:
    """Equal vectors, so that nothing but the fed-back error is left: E‖e_{t+1}‖² = f‖e_t‖² given e_t; |z| < 4."""
    dim, rounds = 500, 3
    factor = theory.feedback_factor(T, n, k / dim)
    growth = []
    for seed in range(25):
        vector = np.random.default_rng(seed).normal(size=dim)
        estimates = play(shared(k, T, dim, seed), np.tile(vector, (n, 1)), rounds)
        errors = np.array([np.sum(vector**2), *(np.sum((e.mean - vector) ** 2) for e in estimates)])
        # In later rounds few coordinates carry the error, and the ratios are far from normal.
        growth.extend(errors[1:] / errors[:-1])
    z = (np.mean(growth) - factor) / (np.std(growth) / math.sqrt(len(growth)))
    assert abs(z) < 4, f"{np.mean(growth):.4g} measured, {factor:.4g} by the formula"


def test_ten_nodes_and_a_hundredth_diverge_and_a_tenth_with_max_does_not() -> None:
    vectors = np.random.default_rng(1).normal(size=500) + 0.1 * np.random.default_rng(2).normal(size=(10, 500))
    truth = vectors.mean(axis=0)
    with pytest.warns(sm.DivergenceWarning, match=r"9\.9 each round"):
        diverging = play(shared(5, "one", 500), vectors, 30)
    assert np.sum((diverging[-1].mean - truth) ** 2) > 1e10 * np.sum(truth**2)
    settling = play(shared(50, "max", 500), vectors, 30)
    assert np.sum((settling[-1].mean - truth) ** 2) < 0.05 * np.sum(truth**2)


@dataclass(frozen=True)
class Faded(Memory):
    """Half of the last estimate; a quarter of its squared error comes back."""

    feedback: float

    @property
    def facts(self) -> MemoryFacts:
        return MemoryFacts(needs_raw=True, feedback=self.feedback)

    def start(self, spec: MemorySpec) -> MemoryState:
        return sm.Shared().start(spec)


@pytest.mark.parametrize(("feedback", "warns"), [(0.0, False), (0.25, False), (1.0, True)])
def test_a_memory_of_your_own_that_feeds_errors_back_is_warned_of(feedback: float, warns: bool) -> None:
    run = sm.Run(sm.Scheme(sm.RandK(10), memory=Faded(feedback)), 25)  # d/k − 1 over n: 1.5 for one node
    server = sm.Server(run)
    server.accept("a", sm.Client(run, "a").encode(np.ones(25), 0))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        server.close_round()
    assert any(issubclass(each.category, sm.DivergenceWarning) for each in seen) == warns
