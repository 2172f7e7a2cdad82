"""Few-bit values through whole schemes: the error says what rounding adds, and node states stay in step."""

from __future__ import annotations

import io
import itertools
import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import checks, theory
from sparsemean._names import SchemeName, ValueName
from sparsemean._types import Doubles
from sparsemean.evaluation import exact_error, truth
from sparsemean.wire import frame
from sparsemean.wire.values import KINDS

Z = 4.5
NODES, DIM, K, SEEDS = 6, 40, 10, 60
FEW_BITS = [name for name, kind in KINDS.items() if not kind.exact]
DITHERED: list[ValueName] = ["int8", "int4", "2-bit", "1-bit"]
NAMES = [f"node-{i}" for i in range(NODES)]


@dataclass(frozen=True)
class Case:
    """Schemes without a memory: the same samples with and without rounding."""

    encoder: sm.Encoder
    decoder: sm.Decoder
    weighted: bool = False

    @property
    def blocks(self) -> tuple[int, ...]:
        return (10, 30) if self.weighted else (DIM,)


CASES = {
    "identity": Case(sm.Identity(), sm.Mean()),
    "rand-k": Case(sm.RandK(K), sm.Mean()),
    "max": Case(sm.RandK(K), sm.Spatial("max")),
    "opposed, weights, blocks": Case(sm.RandK(K), sm.Spatial(-0.5), weighted=True),
    "several shares": Case(sm.OneOf((sm.RandK(K), sm.RandK(3 * K))), sm.Spatial("avg"), weighted=True),
}


def vectors_and_weights(case: Case) -> tuple[Doubles, Doubles]:
    rng = np.random.default_rng(8)
    vectors = rng.normal(size=DIM) + rng.normal(size=(NODES, DIM))
    weights = np.ones((NODES, len(case.blocks)))
    if case.weighted:
        weights = rng.uniform(0.5, 2.0, size=weights.shape)
        weights[0, -1] = 0.0
    return vectors, weights


def estimate(case: Case, values: ValueName, seed: int) -> sm.Estimate:
    run = sm.Run(sm.Scheme(case.encoder, case.decoder, values=values), DIM, seed, case.blocks)
    vectors, weights = vectors_and_weights(case)
    encoders = [run.encoders[i % len(run.encoders)] for i in range(NODES)]
    (found,) = sm.simulate(run, vectors[None], weights, encoders)
    return found


def numbers(found: sm.Estimate) -> tuple[float, ...]:
    """What is said: the error, what rounding adds to it, R1, R2."""
    assert found.error is not None
    assert found.rounding is not None
    assert found.correlation is not None
    return found.error, found.rounding, found.correlation.r1, found.correlation.r2


@cache
def played(name: SchemeName, values: ValueName) -> tuple[Doubles, Doubles]:
    """The mean of every seed, shape (seeds, d), and ``numbers``, shape (4, seeds)."""
    estimates = [estimate(CASES[name], values, seed) for seed in range(SEEDS)]
    return np.array([found.mean for found in estimates]), np.array([numbers(found) for found in estimates]).T


def squared(differences: Doubles) -> Doubles:
    return np.asarray(np.sum(differences**2, axis=1))


def assert_zero_on_average(differences: Doubles, what: str, rounding: float = 1e-12) -> None:
    z = differences.mean() / (differences.std() / math.sqrt(differences.size) + rounding / Z)
    assert abs(z) < Z, f"{what}: {differences.mean():.4g} off, z = {z:.1f}"


@pytest.mark.parametrize("values", ["int4", "1-bit"])
@pytest.mark.parametrize("name", CASES)
def test_the_error_tells_what_rounding_adds(name: str, values: str) -> None:
    """Against the same samples unrounded, seed by seed, so that little but the rounding is left; |z| < 4.5."""
    vectors, weights = vectors_and_weights(CASES[name])
    w = np.repeat(weights, CASES[name].blocks, axis=1)
    mean = np.sum(w * vectors, axis=0) / w.sum(axis=0)
    means, (said, rounding, r1, r2) = played(name, values)
    means_64, (said_64, rounding_64, r1_64, r2_64) = played(name, "float64")
    assert np.all(rounding_64 == 0.0)
    added = squared(means - means_64)
    assert added.mean() > 15 * added.std() / math.sqrt(SEEDS), "enough for 60 seeds to see"
    assert_zero_on_average(added - rounding, "what rounding adds")
    assert_zero_on_average(squared(means - mean) - squared(means_64 - mean) - added, "rounding is independent")
    assert_zero_on_average(said - said_64 - rounding, "what it is said to add")
    assert_zero_on_average(said - squared(means - mean), "the error")
    assert_zero_on_average(r1 - r1_64, "R1")
    assert_zero_on_average(r2 - r2_64, "R2")


@pytest.mark.parametrize("values", ["int4", "1-bit"])
@pytest.mark.parametrize("name", CASES)
def test_the_correlation_is_that_of_the_vectors_not_of_their_roundings(name: str, values: str) -> None:
    """R1 and R2 of y_i = n w_i x_i/Σw, summed over blocks; |z| < 4.5."""
    case = CASES[name]
    vectors, weights = vectors_and_weights(case)
    exact = [0.0, 0.0]
    for block, x in enumerate(np.split(vectors, np.cumsum(case.blocks)[:-1], axis=1)):
        w = weights[:, block]
        y = np.count_nonzero(w) * w[:, None] * x / w.sum()
        exact = [total + part for total, part in zip(exact, theory.correlation(y), strict=True)]
    _, (_, _, r1, r2) = played(name, values)
    assert_zero_on_average(r1 - exact[0], "R1", 1e-9)
    assert_zero_on_average(r2 - exact[1], "R2", 1e-9)


@pytest.mark.parametrize("values", DITHERED)
def test_for_whole_vectors_rounding_is_all_there_is_and_known_beforehand(values: ValueName) -> None:
    """Σ s²/12 over all values, s = 2A/(L − 1), A the largest magnitude rounded up to eight bits; over n²."""
    vectors, _ = vectors_and_weights(CASES["identity"])
    largest = np.abs(vectors).max(axis=1)
    unit = 2.0 ** (np.floor(np.log2(largest)) - 7)
    steps = 2 * np.ceil(largest / unit) * unit / (2 ** {"int8": 8, "int4": 4, "2-bit": 2, "1-bit": 1}[values] - 1)
    found = estimate(CASES["identity"], values, seed=1)
    assert found.rounding == pytest.approx(DIM * np.sum(steps**2) / 12 / NODES**2, rel=1e-12)
    assert (found.error, found.error_se) == pytest.approx((found.rounding, 0.0), rel=1e-14)


@pytest.mark.parametrize("values", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_numbers_that_are_not_rounded_add_nothing(name: SchemeName, values: ValueName) -> None:
    assert estimate(CASES[name], values, seed=0).rounding == 0.0


def test_fewer_bits_add_more() -> None:
    kinds: list[ValueName] = ["float16", "bfloat16", *DITHERED]
    added = [estimate(CASES["max"], values, seed=0).rounding or 0.0 for values in kinds]
    assert all(0 < less < more for less, more in itertools.pairwise(added))
    assert added[3] / added[2] == pytest.approx(17**2)
    assert added[4] / added[2] == pytest.approx(85**2)
    assert added[5] / added[2] == pytest.approx(255**2)


@pytest.mark.parametrize("name", ["top-k", "wangni", "induced", "error-feedback-top-k", "lag"])
def test_where_no_formula_holds_nothing_is_said(name: SchemeName) -> None:
    found = sm.estimate_mean(np.random.default_rng(0).normal(size=(3, 10)), sm.named(name, k=3, values="int8"))
    assert (found.error, found.rounding, found.correlation) == (None, None, None)


MEMORIES = [
    sm.Scheme(sm.RandK(K), memory=sm.PerNode(), values="int4"),
    sm.Scheme(sm.RandK(K), sm.Spatial("max"), sm.PerNode(), "1-bit"),
    sm.Scheme(sm.RandK(K), sm.Spatial("learned"), sm.Hybrid(), "int4"),
    sm.Scheme(sm.RandK(K), sm.Spatial("learned"), sm.SharedStable(), "1-bit"),
]


@pytest.mark.parametrize("scheme", MEMORIES, ids=repr)
def test_what_is_remembered_may_be_rounded_too(scheme: sm.Scheme) -> None:
    """Second of two rounds, given what is remembered of the first: error, R1, R2 of the innovations; |z| < 4.5."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=DIM) + rng.normal(size=(NODES, DIM))
    errors, said, r1, r2 = [], [], [], []
    for seed in range(60):
        run = sm.Run(scheme, DIM, seed)
        server = sm.Server(run)
        for batch in (0.8 * vectors, vectors):
            exact = exact_error(server, NAMES, batch)
            innovation = truth(batch - np.array([server.expected(node) for node in NAMES]), None, run.ranges)
            for node, vector in zip(NAMES, batch, strict=True):
                server.accept(node, sm.Client(run, node).encode(vector, server.round))
            found = server.close_round()
        assert exact is not None
        said_error, rounding, said_r1, said_r2 = numbers(found)
        errors.append(np.sum((found.mean - vectors.mean(axis=0)) ** 2) - exact - rounding)
        said.append(said_error - exact - rounding)
        r1.append(said_r1 - innovation.r1.sum())
        r2.append(said_r2 - innovation.r2.sum())
    for differences, what in ((errors, "the error"), (said, "what is said of it"), (r1, "R1"), (r2, "R2")):
        assert_zero_on_average(np.array(differences), what)


STATEFUL = ["diana", "error-feedback-top-k", "error-feedback-rand-k", "lag"]


def state_of(client: sm.Client) -> dict[str, Any]:
    with np.load(io.BytesIO(client.save()), allow_pickle=False) as arrays:
        return {name.removeprefix("state_"): arrays[name] for name in arrays if name.startswith("state_")}


@pytest.mark.parametrize(
    ("name", "values"),
    [("diana", values) for values in FEW_BITS] + [(name, few) for name in STATEFUL[1:] for few in ("int8", "1-bit")],
)
def test_node_states_stay_in_step_through_saving_restoring_and_losses(name: SchemeName, values: ValueName) -> None:
    """Both sides take the rounded values: bit for bit where the server keeps the state, in the sum where it does not.

    Each client is restored before each round; now and then a payload is lost, or its receipt is.
    """
    options = {"moved": 0.3} if name == "lag" else {}
    run = sm.Run(sm.named(name, k=8, values=values, **options), 30, seed=2)
    server = sm.Server(run)
    rng = np.random.default_rng(4)
    vectors, total, sent = rng.normal(size=(3, 30)), np.zeros(30), np.zeros(30)
    saved = {node: sm.Client(run, node).save() for node in NAMES[:3]}
    straight = {node: sm.Client(run, node) for node in NAMES[:3]}
    skipped = 0
    for t in range(14):
        came = 0
        for i, node in enumerate(saved):
            vectors[i] += 0.15 * rng.normal(size=30)
            client = sm.Client.restore(run, node, saved[node])
            blob = client.encode(vectors[i], t)
            assert blob == straight[node].encode(vectors[i], t)
            skipped += len(blob) == frame.HEADER_BYTES
            if came and rng.random() < 0.2:
                continue  # lost on its way; the state stays as it was
            receipt = server.accept(node, blob)
            if rng.random() < 0.3:  # the receipt is lost with the process, and the payload is sent again
                client = sm.Client.restore(run, node, saved[node])
                assert server.accept(node, client.encode(vectors[i], t)) == receipt
            client.delivered(receipt)
            straight[node].delivered(receipt)
            saved[node] = client.save()
            came += 1
            total += vectors[i]
        sent += came * server.close_round().mean
        states = {node: state_of(sm.Client.restore(run, node, blob)) for node, blob in saved.items()}
        for node, state in states.items():
            if name in ("diana", "lag"):
                assert np.array_equal(state["h" if name == "diana" else "remembered"], server.expected(node))
            assert all(np.array_equal(array, state_of(straight[node])[key]) for key, array in state.items())
        if name.startswith("error-feedback"):
            left = sum(state["error"] for state in states.values())
            np.testing.assert_allclose(sent + left, total, rtol=0, atol=1e-9 * max(1.0, float(np.abs(left).max())))
    assert (skipped > 3) == (name == "lag" and values != "1-bit"), "one bit is too far off to be kept"


def test_differences_are_rounded_ever_finer_and_values_are_not() -> None:
    """Nodes that stand still: DIANA sends what is left of the difference, so its rounding vanishes with it."""
    vectors = np.random.default_rng(0).normal(size=(5, 24))
    rounds = np.broadcast_to(vectors, (80, 5, 24))
    errors = {}
    for name in ("diana", "rand-k-temporal"):
        *_, last = sm.simulate(sm.Run(sm.named(name, k=8, values="int8"), 24), rounds)
        assert last.rounding is not None
        errors[name] = float(np.sum((last.mean - vectors.mean(axis=0)) ** 2)), last.rounding
    assert max(errors["diana"]) < 1e-3 * min(errors["rand-k-temporal"])


@pytest.mark.parametrize("exponent", [-60, 60])
@pytest.mark.parametrize("values", [*DITHERED, "bfloat16"])
def test_units_do_not_matter(values: ValueName, exponent: int) -> None:
    """Powers of two are exact: mean, error and rounding scale to the last bit."""
    vectors, scheme = (
        np.random.default_rng(0).normal(size=(6, 40)),
        sm.named("rand-k-spatial-avg", k=0.5, values=values),
    )
    one, other = sm.estimate_mean(vectors, scheme), sm.estimate_mean(vectors * 2.0**exponent, scheme)
    assert np.array_equal(one.mean * 2.0**exponent, other.mean)
    assert one.error is not None
    assert one.rounding is not None
    assert (other.error, other.rounding) == (one.error * 4.0**exponent, one.rounding * 4.0**exponent)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("rand-k", "float16"),
        ("rand-k-spatial-adaptive-unbiased", "int4"),
        ("rand-k-temporal-window", "1-bit"),
        ("top-k", "int4"),
        ("wangni", "1-bit"),
        ("induced", "int4"),
        ("diana", "int4"),
        ("lag", "int8"),
    ],
)
def test_named_schemes_keep_what_they_declare(name: SchemeName, values: ValueName) -> None:
    checks.check_scheme(sm.named(name, k=0.25, values=values), dim=16, nodes=4, trials=50)
