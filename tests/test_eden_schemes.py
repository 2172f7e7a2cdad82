"""Values "eden-b" through whole schemes: rotated, unbiased, with an error that says what rounding adds."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import checks
from sparsemean._names import SchemeName, ValueName
from sparsemean._types import Doubles
from sparsemean.kernels import compiled_eden  # noqa: F401  loaded, so that small calls are compiled ones
from sparsemean.lab.byte_budget import finest_eden, largest_k
from sparsemean.wire.values import value_name

Z = 4.5
NODES, DIM, K, SEEDS = 4, 1300, 700, 60
CASES = {
    "identity": (sm.Identity(), sm.Mean(), (DIM,)),
    "rand-k": (sm.RandK(K), sm.Mean(), (DIM,)),
    "max, weights, blocks": (sm.RandK(K), sm.Spatial("max"), (400, 900)),
    "several shares": (sm.OneOf((sm.RandK(K), sm.RandK(1200))), sm.Spatial("avg"), (DIM,)),
}


def vectors_and_weights(blocks: tuple[int, ...]) -> tuple[Doubles, Doubles]:
    rng = np.random.default_rng(8)
    vectors = rng.normal(size=DIM) + rng.normal(size=(NODES, DIM))
    weights = rng.uniform(0.5, 2.0, size=(NODES, len(blocks))) if len(blocks) > 1 else np.ones((NODES, 1))
    return vectors, weights


@cache
def played(name: str, values: ValueName) -> tuple[Doubles, Doubles, Doubles]:
    """Means, errors and what rounding is said to add, one for each seed."""
    encoder, decoder, blocks = CASES[name]
    vectors, weights = vectors_and_weights(blocks)
    found = []
    for seed in range(SEEDS):
        run = sm.Run(sm.Scheme(encoder, decoder, values=values), DIM, seed, blocks)
        found += sm.simulate(run, vectors[None], weights, [run.encoders[i % len(run.encoders)] for i in range(NODES)])
    said = np.array([[each.error, each.rounding] for each in found], np.float64).T
    return np.array([each.mean for each in found]), *said


def assert_zero_on_average(differences: Doubles, what: str) -> None:
    z = differences.mean() / (differences.std() / math.sqrt(differences.size) + 1e-12)
    assert abs(z) < Z, f"{what}: {differences.mean():.4g} off, z = {z:.1f}"


@pytest.mark.parametrize("values", ["eden-1", "eden-2.5"])
@pytest.mark.parametrize("name", CASES)
def test_the_error_tells_what_rounding_adds(name: str, values: str) -> None:
    """Against the same samples unrounded, seed by seed; |z| < 4.5."""
    vectors, weights = vectors_and_weights(CASES[name][2])
    w = np.repeat(weights, CASES[name][2], axis=1)
    mean = np.sum(w * vectors, axis=0) / w.sum(axis=0)
    means, said, rounding = played(name, values)
    exact, said_exact, _ = played(name, "float64")
    added, off = np.sum((means - exact) ** 2, axis=1), np.sum((means - mean) ** 2, axis=1)
    assert added.mean() > 15 * added.std() / math.sqrt(SEEDS), "enough for 60 seeds to see"
    assert_zero_on_average(added - rounding, "what rounding adds")
    assert_zero_on_average(off - np.sum((exact - mean) ** 2, axis=1) - added, "rounding is independent")
    assert_zero_on_average(said - off, "the error")
    assert_zero_on_average(said - said_exact - rounding, "what it is said to add")
    assert_zero_on_average((means - exact).sum(axis=1), "bias")


@pytest.mark.parametrize(
    ("name", "values"), [("identity", "eden-1"), ("rand-k-spatial-avg", "eden-2.0625"), ("wangni", "eden-3")]
)
def test_named_schemes_keep_what_they_declare(name: SchemeName, values: ValueName) -> None:
    checks.check_scheme(sm.named(name, k=0.9, values=values), dim=600, nodes=3, trials=30)


@pytest.mark.parametrize("name", ["diana", "error-feedback-top-k", "lag"])
def test_states_stay_in_step(name: SchemeName) -> None:
    run = sm.Run(sm.named(name, k=600, values="eden-4"), 700, seed=2)
    client, server, rng = sm.Client(run, "a"), sm.Server(run), np.random.default_rng(4)
    vector, left = rng.normal(size=700), []
    for _ in range(6):
        client.delivered(server.accept("a", client.encode(vector, server.round)))
        left.append(np.sum((server.close_round().mean - vector) ** 2) / np.sum(vector**2))
    assert client.encode(vector, server.round) == sm.Client.restore(run, "a", client.save()).encode(
        vector, server.round
    )
    if name == "diana":
        assert left[-1] < 0.3 * left[0]


def test_units_do_not_matter() -> None:
    """Powers of two are exact: mean, error and rounding scale to the last bit."""
    vectors, scheme = (
        np.random.default_rng(0).normal(size=(6, 700)),
        sm.named("rand-k-spatial-avg", 600, values="eden-3"),
    )
    one, other = sm.estimate_mean(vectors, scheme), sm.estimate_mean(vectors * 2.0**60, scheme)
    assert np.array_equal(one.mean * 2.0**60, other.mean)
    assert one.rounding
    assert other.rounding == one.rounding * 4.0**60


def test_a_run_is_bound_to_its_rate_and_has_one_size() -> None:
    run = sm.Run(sm.named("identity", values=value_name("eden-2.0625")), 5000)
    assert sm.Run.from_json(run.to_json()) == run
    assert run.payload_fixed
    assert run.payload_bytes == 64 + 2 * 4 + (4096 * 33 // 16 + 904 * 2 + 8 * (904 // 128)) // 8
    other = sm.Run(sm.named("identity", values="eden-2"), 5000)
    with pytest.raises(sm.ForeignPayload):
        sm.Server(run).accept("a", sm.Client(other, "a").encode(np.ones(5000), 0))


def test_a_balanced_draw_has_no_common_scale_for_rotated_values() -> None:
    run = sm.Run(sm.named("rand-k-balanced", 0.5, values="eden-2"), 2000)
    assert not run.common_scale
    (first, second) = sm.simulate(run, np.random.default_rng(0).normal(size=(2, 6, 2000)))
    assert first.bytes == second.bytes == 6 * run.payload_bytes


@pytest.mark.parametrize("limit", [700, 1000, 4000])
def test_a_byte_budget_is_used_up(limit: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(3, 3000))
    finest = sm.Run(sm.named("identity", values=finest_eden(3000, limit)), 3000).payload_bytes
    assert limit - 3000 / 16 / 8 - 3 < finest <= limit or finest_eden(3000, limit) == "eden-8"
    k = largest_k(lambda k: sm.named("rand-k", k, values="eden-3"), limit, vectors, 1, 2)
    sizes = [sm.Run(sm.named("rand-k", each, values="eden-3"), 3000).payload_bytes for each in (k, min(k + 1, 3000))]
    assert sizes[0] <= limit
    assert sizes[1] > limit or k == 3000
