"""Every named scheme passes the conformance checks, and members that break a promise do not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import checks
from sparsemean._names import SchemeName
from sparsemean._types import Doubles, Floats
from sparsemean.decoding.decoders import Belief
from sparsemean.decoding.totals import RoundTotals
from sparsemean.encoders import EncoderFacts, State, Stateful
from sparsemean.payload import Layout, Part, Payload
from sparsemean.sampling import Key

DIM, TRIALS = 16, 60
OPTIONS: dict[str, dict[str, Any]] = {"rand-k-spatial-opt": {"ratio": 3.0}}


@pytest.mark.parametrize("name", sm.names())
def test_every_named_scheme_keeps_what_it_declares(name: SchemeName) -> None:
    checks.check_scheme(sm.named(name, k=0.25, **OPTIONS.get(name, {})), dim=DIM, nodes=4, trials=TRIALS)


def encoder_named(name: SchemeName) -> sm.Encoder:
    return sm.named(name, k=0.25, **OPTIONS.get(name, {})).encoder


@pytest.mark.parametrize("encoder", dict.fromkeys(map(encoder_named, sm.names())), ids=repr)
def test_every_encoder_of_a_named_scheme_does_so_over_two_thousand_payloads(encoder: sm.Encoder) -> None:
    checks.check_encoder(encoder, DIM)


@pytest.mark.parametrize(
    "scheme",
    [
        sm.Scheme(sm.RandK(DIM), sm.Spatial("max")),
        sm.Scheme(sm.RandK(1), sm.Spatial("avg"), sm.PerNode(), "float64"),
        sm.Scheme(sm.RandK(0.25), sm.Spatial(table=(1, 2, 2, 3, 3, 4))),
        sm.Scheme(sm.RandK(0.25, shared=True)),
        sm.Scheme(sm.Induced(sm.RTopK(2), sm.Wangni(3)), values="float64"),
        sm.Scheme(sm.Difference(sm.TopK(2)), memory=sm.Offset()),
        sm.Scheme(sm.ErrorFeedback(sm.Induced(sm.TopK(2), sm.RandK(2)))),
        sm.Scheme(sm.Lazy(sm.RandK(3), 0.2), memory=sm.PerNode()),
    ],
    ids=repr,
)
def test_other_compositions_do_too(scheme: sm.Scheme) -> None:
    checks.check_scheme(scheme, dim=DIM, trials=TRIALS)


@dataclass(frozen=True)
class Tampered(sm.Encoder):
    """RandK with a fault of choice; it declares what RandK declares."""

    fault: str
    k: int = 4

    @property
    def _honest(self) -> sm.RandK:
        return sm.RandK(self.k)

    @property
    def facts(self) -> EncoderFacts:
        return replace(self._honest.facts, unbiased=self.fault != "modest")

    def layout(self, dim: int) -> tuple[Layout, ...]:
        (layout,) = self._honest.layout(dim)
        scale = {"wrong scale": 1.1 * layout.scale, "no scale": 1.0}.get(self.fault, layout.scale)
        return (replace(layout, scale=scale),)

    def omega(self, dim: int) -> float:
        return self._honest.omega(dim) * (0.5 if self.fault == "boastful" else 1.0)

    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        (part,) = self._honest.encode(vector, key, state).parts
        (layout,) = self.layout(vector.size)
        if self.fault == "not pure":
            part = replace(part, values=part.values + np.random.default_rng().normal())
        if self.fault == "too many":
            others = np.setdiff1d(np.arange(vector.size), part.coordinates)[:1]
            chosen = np.concatenate([part.coordinates, others])
            part = Part(chosen, vector[chosen])
        if self.fault == "twice":
            chosen = np.concatenate([part.coordinates[:1], part.coordinates[:-1]])
            part = Part(chosen, vector[chosen])
        if self.fault == "other scale":
            layout = replace(layout, scale=2.0)
        if self.fault == "silent":
            return None
        return Payload((replace(part, scale=layout.scale),))


def test_without_a_fault_the_tampered_encoder_passes() -> None:
    """So what fails below is the fault."""
    checks.check_scheme(sm.Scheme(Tampered("none"), sm.Spatial("max")), dim=DIM, trials=TRIALS)


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("wrong scale", "unbiased, but in all"),
        ("no scale", "unbiased, but coordinate"),
        ("not pure", "two payloads"),
        ("too many", "5 values where the layout says 4"),
        ("twice", "comes twice"),
        ("other scale", "scale"),
        ("boastful", "exceeds"),
        ("modest", "ω is None"),
        ("silent", "first payload"),
    ],
)
def test_an_encoder_with_a_fault_is_found_out(fault: str, says: str) -> None:
    with pytest.raises(sm.CheckFailed, match=says):
        checks.check_scheme(sm.Scheme(Tampered(fault)), dim=DIM)


@dataclass(frozen=True)
class Crooked(sm.Decoder):
    """Spatial("max") with its mean bent by a function of (n, share)."""

    bend: Callable[[int, float], float]

    @property
    def reweights(self) -> bool:
        return True

    adapts = False
    unbiased = True

    def T(self, belief: Belief, n: int) -> str:
        return "max"

    def innovation(self, totals: RoundTotals, shares: tuple[float, ...], beliefs: tuple[Belief, ...]) -> Doubles:
        return sm.Spatial("max").innovation(totals, shares, beliefs) * self.bend(int(totals.nodes[0]), shares[0])


def zero_truncated(n: int, p: float) -> float:
    """E[1/(1 + Binomial(n − 1, p))] over E[1/M | M ≥ 1]: from the right β̄ to the one the paper seems to print."""
    m = np.arange(1, n + 1)
    given_sent = np.array([math.comb(n - 1, i - 1) * p ** (i - 1) * (1 - p) ** (n - i) for i in m])
    truncated = np.array([math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in m]) / (1 - (1 - p) ** n)
    return float(np.sum(given_sent / m) / np.sum(truncated / m))


def test_without_a_bend_the_crooked_decoder_passes() -> None:
    checks.check_scheme(sm.Scheme(sm.RandK(4), Crooked(lambda n, p: 1.0)), dim=DIM, trials=TRIALS)


@pytest.mark.parametrize("bend", [zero_truncated, lambda n, p: 1.15, lambda n, p: 0.85])
def test_a_decoder_with_another_beta_bar_is_found_out(bend) -> None:
    with pytest.raises(sm.CheckFailed, match=r"estimate is declared unbiased|squared error|Estimate\.error"):
        checks.check_scheme(sm.Scheme(sm.RandK(4), Crooked(bend)), dim=DIM, trials=350)


@dataclass(frozen=True)
class Misdeclared(sm.Decoder):
    """An honest mean that claims the error of another T."""

    reweights = True
    adapts = False
    unbiased = True

    def T(self, belief: Belief, n: int) -> float:
        return -0.9

    def innovation(self, totals: RoundTotals, shares: tuple[float, ...], beliefs: tuple[Belief, ...]) -> Doubles:
        return sm.Mean().innovation(totals, shares, beliefs)


def test_an_error_formula_that_is_not_its_own_is_found_out() -> None:
    with pytest.raises(sm.CheckFailed, match="squared error"):
        checks.check_scheme(sm.Scheme(sm.RandK(4), Misdeclared()), dim=DIM, trials=TRIALS)


@dataclass(frozen=True)
class Forgetful(Stateful):
    """Sends other bytes when asked again, because encoding moves its state."""

    calls: ClassVar = {"count": 0}

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=False, uniform=False, unbiased=False)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return (Layout("all", dim),)

    def omega(self, dim: int) -> None:
        return None

    def start(self, dim: int) -> State:
        return {}

    def advance(self, vector: Floats, payload: Payload | None, state: State) -> State:
        return state

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        self.calls["count"] += 1
        return Payload((Part(np.arange(vector.size), vector + self.calls["count"]),))


def test_an_encoder_that_moves_on_by_itself_is_found_out() -> None:
    with pytest.raises(sm.CheckFailed, match="idempotent"):
        checks.check_bytes(sm.Scheme(Forgetful()), checks.example_vectors(2, DIM))


def test_the_example_vectors_are_what_the_checks_need() -> None:
    vectors = checks.example_vectors(6, DIM)
    assert np.array_equal(vectors, checks.example_vectors(6, DIM))
    r1, r2 = sm.theory.correlation(vectors)
    assert 0.2 < r2 / r1 < 5
    assert np.all(vectors[:, -1] == 0)
    assert np.all(vectors[:, :-1] != 0)


@dataclass(frozen=True)
class Jumbled(sm.Encoder):
    """Lists two coordinates, the larger one first."""

    @property
    def facts(self) -> EncoderFacts:
        return EncoderFacts(raw=True, uniform=False, unbiased=False)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return (Layout("listed", 2),)

    def omega(self, dim: int) -> None:
        return None

    def encode(self, vector: Floats, key: Key, state: State) -> Payload:
        return Payload((Part(np.array([3, 1]), vector[[3, 1]]),))


def test_coordinates_that_an_encoder_lists_out_of_order_are_refused() -> None:
    with pytest.raises(sm.InvalidInput, match="out of order; sort them"):
        sm.Client(sm.Run(sm.Scheme(Jumbled()), 5), "a").encode(np.arange(5.0), 0)
