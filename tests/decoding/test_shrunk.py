"""Shrunk estimates: the innovation times B/(B + V), an error that is told as it is, a memory that does not notice."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName, ValueName
from sparsemean._types import Doubles
from sparsemean.decoding import Shrunk
from sparsemean.server.clip import Clip
from sparsemean.simulation import play_round

N, DIM = 8, 120


def vectors(seed: int = 0, rounds: int = 3) -> Doubles:
    """Nodes with a common part that drifts, and parts of their own."""
    rng = np.random.default_rng(seed)
    common, own = rng.normal(size=(rounds, 1, DIM)), rng.normal(size=(1, N, DIM))
    return 0.5 * np.cumsum(common, axis=0) + 0.6 * own + 0.3 * rng.normal(size=(rounds, N, DIM))


def shrunk(scheme: sm.Scheme) -> sm.Scheme:
    return sm.Scheme(scheme.encoder, Shrunk(scheme.decoder), scheme.memory, scheme.values)


def factor(plain: sm.Estimate, nodes: int, present: float = 1.0) -> tuple[float, float]:
    """(B/(B + V), the error it leaves) from what the unshrunk estimate says of itself."""
    assert plain.error is not None
    assert plain.correlation is not None
    b, spread = (
        present**2 * each / nodes**2 for each in (plain.correlation.r1 + plain.correlation.r2, plain.correlation.r2_se)
    )
    s = max(b, 0.0) / (max(b, 0.0) + plain.error)
    return s, s**2 * plain.error + (1 - s) ** 2 * (b + 2 * spread**2 / (max(b, 0.0) + plain.error))


@pytest.mark.parametrize(
    ("draw", "memory", "values"),
    [
        (sm.Independent(), None, "int8"),
        (sm.Independent(), sm.SharedStable(), "float64"),
        (sm.Balanced(), sm.PerNode(), "float64"),
        (sm.Balanced(), sm.Hybrid(), "int8"),
    ],
    ids=repr,
)
def test_the_innovation_is_shrunk_and_the_memory_learns_as_without(
    draw: sm.Draw, memory: sm.Memory | None, values: ValueName
) -> None:
    scheme = sm.Scheme(sm.RandK(0.3, draw=draw), sm.Spatial("learned"), memory, values)
    runs = [sm.Run(each, DIM, seed=5) for each in (scheme, shrunk(scheme))]
    assert sm.Run.from_json(runs[1].to_json()) == runs[1]
    assert runs[0].digest == runs[1].digest, "nodes need not know"
    servers = [sm.Server(run) for run in runs]
    clients = [sm.Client(runs[0], str(i)) for i in range(N)]
    weights = np.linspace(0.5, 2.0, N)
    for batch in vectors():
        expected = [weights @ np.array([server.expected(client.node) for client in clients]) for server in servers]
        np.testing.assert_array_equal(expected[0], expected[1])
        base = expected[0] / weights.sum()
        plain, small = (play_round(server, clients, batch, weights) for server in servers)
        s, error = factor(plain, N)
        assert 0.0 < s < 1.0
        np.testing.assert_allclose(small.mean, base + s * (plain.mean - base), rtol=1e-9, atol=1e-12)
        assert small.error == pytest.approx(error)
        assert small.rounding == pytest.approx(s**2 * (plain.rounding or 0.0))
        assert (small.error_se, small.correlation) == (None, plain.correlation)


def test_each_block_has_a_factor_of_its_own() -> None:
    """A block by itself is one whose neighbour has no weight."""
    scheme = sm.Scheme(sm.RandK(0.3), sm.Mean(), values="float64")
    blocks, batch = (50, 70), vectors()[0] * np.repeat([1.0, 0.1], [50, 70])
    small = sm.simulate(sm.Run(shrunk(scheme), DIM, 2, blocks), batch[None])[0]
    run, told = sm.Run(scheme, DIM, 2, blocks), 0.0
    for block, inside in enumerate((slice(0, 50), slice(50, DIM))):
        alone = sm.simulate(run, batch[None], np.tile(np.arange(2) == block, (N, 1)).astype(float))[0]
        s, error = factor(alone, N)
        np.testing.assert_allclose(small.mean[inside], s * alone.mean[inside], rtol=1e-12)
        told += error
    assert small.error == pytest.approx(told)


def test_those_who_came_are_shrunk_and_absent_ones_stand_as_remembered() -> None:
    scheme = sm.Scheme(sm.RandK(0.3), sm.Mean(), sm.PerNode(), "float64")
    servers = [sm.Server(sm.Run(each, DIM, 1), missing="carry") for each in (scheme, shrunk(scheme))]
    clients = [sm.Client(servers[0].run, str(i)) for i in range(N)]
    first, second, _ = vectors()
    for server in servers:
        play_round(server, clients, first, np.ones(N))
    base = np.mean([servers[0].expected(str(i)) for i in range(N)], axis=0)
    plain, small = (play_round(server, clients[:5], second[:5], np.ones(5)) for server in servers)
    s, error = factor(plain, 5, present=5 / N)
    np.testing.assert_allclose(small.mean, base + s * (plain.mean - base), rtol=1e-9)
    assert small.error == pytest.approx(error)


def test_where_r2_is_unknown_nothing_is_shrunk() -> None:
    scheme = sm.Scheme(sm.RandK(DIM // N, draw=sm.Balanced()), sm.Mean())
    plain, small = (sm.estimate_mean(vectors()[0], each) for each in (scheme, shrunk(scheme)))
    np.testing.assert_array_equal(plain.mean, small.mean)
    assert small.error_is_bound
    assert small.error == plain.error


@pytest.mark.parametrize("draw", [sm.Independent(), sm.Balanced()], ids=repr)
def test_the_stated_error_is_that_of_the_shrunk_estimate(draw: sm.Draw) -> None:
    """B is a tenth of V, where fitting s to the noise of B would make a plain s²V + (1 − s)²B a sixth too small."""
    rng = np.random.default_rng(0)
    own = rng.normal(size=(10, 200))
    batch = 0.3 * rng.normal(size=200) + own - own.mean(axis=0)
    scheme = sm.Scheme(sm.RandK(30, draw=draw), sm.Spatial(0.5))
    truth = batch.mean(axis=0)
    plain = sm.simulate(sm.Run(scheme, 200), np.broadcast_to(batch, (40, *batch.shape)))
    small = sm.simulate(sm.Run(shrunk(scheme), 200), np.broadcast_to(batch, (400, *batch.shape)))
    plain_errors, errors = (np.array([np.sum((each.mean - truth) ** 2) for each in all_]) for all_ in (plain, small))
    off = np.array([each.error for each in small], float) - errors
    spread, error = off.std() / 20, errors.mean()
    assert error < 0.2 * plain_errors.mean()
    assert abs(off.mean()) < 3 * spread + 0.03 * error
    assert spread < 0.04 * error, "a sixth would show"


@pytest.mark.parametrize(
    ("name", "shrunk"),
    [("rand-k-hybrid", "rand-k-hybrid-shrunk"), ("rand-k-balanced-hybrid", "rand-k-balanced-hybrid-shrunk")],
)
def test_the_named_ones_have_less_error_than_what_they_shrink(name: SchemeName, shrunk: SchemeName) -> None:
    batch, errors = vectors(1), []
    for scheme in (sm.named(name, k=0.2), sm.named(shrunk, k=0.2)):
        last = [sm.simulate(sm.Run(scheme, DIM, seed), batch)[2].mean for seed in range(16)]
        errors.append(np.sum((np.array(last) - batch[2].mean(axis=0)) ** 2, axis=1))
    gained = errors[0] - errors[1]
    assert gained.mean() > 4.5 * gained.std() / np.sqrt(16)


def test_no_bound_is_stated_of_what_follows_the_round_itself() -> None:
    run = sm.Run(sm.named("rand-k-hybrid-shrunk", k=0.2), DIM)
    assert Clip(norm=1.0).bound(run, N).length == np.inf
