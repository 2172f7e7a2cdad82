"""Error feedback: what was not sent is kept, stays bounded, and the running sum comes out right."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName, ValueName
from sparsemean._types import Doubles, Floats
from sparsemean.encoders import State, Stateful
from sparsemean.payload import Layout, Payload
from sparsemean.sampling import Key

DIM, K, ROUNDS = 50, 5, 1_000


def stream(rounds: int = ROUNDS) -> Doubles:
    """A constant vector with noise."""
    rng = np.random.default_rng(8)
    return rng.normal(size=DIM) + 0.2 * rng.normal(size=(rounds, DIM))


def remembered_errors(encoder: Stateful, vectors: Doubles) -> tuple[Doubles, Doubles]:
    """‖e‖² after every round, and the sum of all that was sent."""
    state, sent, sizes = encoder.start(DIM), np.zeros(DIM), []
    for t, vector in enumerate(vectors):
        payload = encoder.encode(vector, Key(4, t, "a"), state)
        assert payload is not None
        sent += payload.dense(DIM)
        state = encoder.advance(vector, payload, state)
        sizes.append(float(np.sum(state["error"] ** 2)))
    return np.array(sizes), sent


@pytest.mark.parametrize(
    "inner", [sm.TopK(K), sm.RandK(K), sm.RTopK(K), sm.Wangni(K), sm.Induced(sm.TopK(2), sm.RandK(3)), sm.RandK(1)]
)
def test_the_error_stays_bounded_and_the_running_sum_is_off_by_no_more(inner: sm.Encoder) -> None:
    """E‖e‖² ≤ 4(1 − δ)/δ² · max‖x‖² with δ = 1/(1 + ω), or k/d where biased (Karimireddy et al. 2019, Lemma 3).

    The average over the rounds keeps that bound, and no round exceeds it tenfold.
    """
    vectors = stream()
    sizes, sent = remembered_errors(sm.ErrorFeedback(inner), vectors)
    omega = inner.omega(DIM)
    delta = K / DIM if omega is None else 1.0 / (1.0 + omega)
    bound = 4 * (1 - delta) / delta**2 * np.sum(vectors**2, axis=1).max()
    assert sizes.mean() <= bound
    assert sizes.max() <= 10 * bound
    np.testing.assert_allclose(np.sum((vectors.sum(axis=0) - sent) ** 2), sizes[-1], rtol=1e-9)
    assert np.median(sizes[-100:]) < 3 * np.median(sizes[400:500]), "it settles"


@dataclass(frozen=True)
class FullScale(Stateful):
    """Error feedback around the unbiased, d/k times scaled sample: the mistake the division by 1 + ω avoids."""

    encoder: sm.RandK

    @property
    def facts(self):
        return sm.ErrorFeedback(self.encoder).facts

    def layout(self, dim: int) -> tuple[Layout, ...]:
        return self.encoder.layout(dim)

    def omega(self, dim: int) -> None:
        return None

    def start(self, dim: int) -> State:
        return {"error": np.zeros(dim)}

    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        return self.encoder.encode(vector + state["error"], key, {})

    def advance(self, vector: Floats, payload: Payload | None, state: State) -> State:
        assert payload is not None
        return {"error": vector + state["error"] - payload.dense(vector.size)}


def test_with_the_full_scale_it_explodes() -> None:
    """E‖e‖² grows by 1/p − 1 = 9 each round."""
    sizes, _ = remembered_errors(FullScale(sm.RandK(K)), stream(60))
    bounded, _ = remembered_errors(sm.ErrorFeedback(sm.RandK(K)), stream(60))
    assert sizes[-1] > 1e15
    assert bounded.max() < 1e5


@pytest.mark.parametrize("name", ["error-feedback-top-k", "error-feedback-rand-k"])
@pytest.mark.parametrize("values", ["float32", "float64"])
def test_through_the_bytes_the_sums_of_the_means_differ_by_the_mean_of_what_is_kept(
    name: SchemeName, values: ValueName
) -> None:
    """Rounding to float32 is fed back too, so even then nothing is lost for good."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(3, DIM)) + 0.2 * rng.normal(size=(60, 3, DIM))
    run = sm.Run(sm.named(name, k=K, values=values), DIM)
    server, clients = sm.Server(run), [sm.Client(run, str(i)) for i in range(3)]
    total = np.zeros(DIM)
    for batch in vectors:
        for client, vector in zip(clients, batch, strict=True):
            client.delivered(server.accept(client.node, client.encode(vector, server.round)))
        estimate = server.close_round()
        total += estimate.mean
        assert estimate.error is None
    kept = np.mean([client._state["error"] for client in clients], axis=0)
    np.testing.assert_allclose(total + kept, vectors.sum(axis=(0, 1)) / 3, rtol=0, atol=1e-11)


def test_values_travel_without_the_scale_of_the_sample() -> None:
    assert [layout.scale for layout in sm.ErrorFeedback(sm.RandK(K)).layout(DIM)] == [1.0]
    assert [layout.scale for layout in sm.ErrorFeedback(sm.Wangni(K)).layout(DIM)] == [K / DIM]
    inner = sm.Induced(sm.TopK(2), sm.RandK(3))
    scales = [layout.scale for layout in sm.ErrorFeedback(inner).layout(DIM)]
    shrink = 1 / (1 + (DIM / 3 - 1) * (1 - 2 / DIM))
    assert scales == pytest.approx([shrink, DIM / 3 * shrink])
    plain = inner.encode(np.arange(DIM, dtype=float), Key(0, 0, "a"), {})
    wrapped = sm.ErrorFeedback(inner).encode(np.arange(DIM, dtype=float), Key(0, 0, "a"), {"error": np.zeros(DIM)})
    assert plain is not None
    assert wrapped is not None
    for a, b, scale in zip(plain.parts, wrapped.parts, scales, strict=True):
        assert np.array_equal(replace(a, scale=scale).values, b.values)
        assert b.scale == scale


def test_a_second_state_is_refused() -> None:
    with pytest.raises(sm.IncompatibleScheme, match="stateless"):
        sm.ErrorFeedback(sm.ErrorFeedback(sm.TopK(1)))


def test_what_is_left_over_decays():
    """SparseLoCo's accumulator: e ← βe + x − what was sent, with what is sent taken from βe + x."""
    feedback, (x, y) = sm.ErrorFeedback(sm.TopK(1), decay=0.5), np.array([[4.0, 2.0], [0.0, 0.5]])
    state = feedback.start(2)
    first = feedback.encode(x, Key(0, 0, "a"), state)
    state = feedback.advance(x, first, state)
    np.testing.assert_array_equal(state["error"], [0.0, 2.0])
    second = feedback.encode(y, Key(0, 1, "a"), state)
    assert second is not None
    np.testing.assert_array_equal(second.dense(2), [0.0, 1.5])


def test_all_that_is_left_over_counts_where_nothing_is_said():
    plain, explicit = (sm.Run(sm.Scheme(sm.ErrorFeedback(sm.TopK(1), *more)), 5) for more in ((), (1.0,)))
    assert plain.digest == explicit.digest
    assert "decay" not in plain.to_json()
    assert (
        sm.Run.from_json((told := sm.Run(sm.named("error-feedback-chunked-top-k", k=2, decay=0.95), 5)).to_json())
        == told
    )
    for wrong in (0.0, 1.5, float("nan")):
        with pytest.raises(sm.InvalidInput, match="decay"):
            sm.ErrorFeedback(sm.TopK(1), wrong)
