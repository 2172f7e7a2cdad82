"""Lazy nodes (LAG) send exactly when they moved, and the server lets their last vector stand in where they did not."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.encoders import State
from sparsemean.lab.weather import load_weather
from sparsemean.sampling import Key

HEADER = 64


def test_a_node_sends_iff_it_moved_by_more_than_the_share() -> None:
    encoder, rng = sm.Lazy(sm.Identity(), moved=0.2), np.random.default_rng(0)
    state: State = encoder.start(10)
    vector, sends = rng.normal(size=10), []
    for t in range(200):
        vector = vector + 0.3 * rng.normal(size=10)
        moved = np.sum((vector - state["remembered"]) ** 2) / np.sum(vector**2)
        payload = encoder.encode(vector, Key(0, t, "a"), state)
        assert (payload is not None) == (t == 0 or moved > 0.2)
        state = encoder.advance(vector, payload, state)
        if payload is not None:
            assert np.array_equal(state["remembered"], vector)
        sends.append(payload is not None)
    assert 10 < sum(sends) < 190


def test_the_boundary_itself_does_not_count_as_moved() -> None:
    encoder = sm.Lazy(sm.Identity(), moved=0.25)
    state = {"remembered": np.array([1.0, 1.0]), "sent": np.ones(1)}
    assert encoder.encode(np.array([2.0, 2.0]), Key(0, 0, "a"), state) is None
    assert encoder.encode(np.array([2.0, 2.0000001]), Key(0, 0, "a"), state) is not None


def test_a_node_never_heard_sends_even_zeros() -> None:
    run = sm.Run(sm.named("lag"), dim=3)
    server, client = sm.Server(run), sm.Client(run, "a")
    blob = client.encode(np.zeros(3), 0)
    assert len(blob) == run.payload_bytes
    client.delivered(server.accept("a", blob))
    assert server.close_round().mean.tolist() == [0.0] * 3
    assert len(client.encode(np.zeros(3), 1)) == HEADER


def test_without_a_receipt_the_node_compares_with_what_the_server_has() -> None:
    run = sm.Run(sm.named("lag", moved=0.1), dim=3)
    server, client = sm.Server(run), sm.Client(run, "a")
    client.delivered(server.accept("a", client.encode([1.0, 2.0, 3.0], 0)))
    server.close_round()
    assert len(client.encode([9.0, 9.0, 9.0], 1)) > HEADER  # lost on its way
    server.skip_round()
    assert len(client.encode([9.0, 9.0, 9.0], 2)) > HEADER
    assert len(client.encode([1.0, 2.0, 3.0], 2)) == HEADER


def test_with_a_sample_the_memory_stands_in_at_the_other_coordinates() -> None:
    encoder = sm.Lazy(sm.TopK(1), moved=0.1)
    run = sm.Run(sm.Scheme(encoder, memory=sm.PerNode(), values="float64"), dim=2)
    server, client = sm.Server(run), sm.Client(run, "a")
    means = []
    for t, vector in enumerate(([3.0, 1.0], [0.5, 1.0], [0.5, 1.0], [0.5, 1.0])):
        client.delivered(server.accept("a", client.encode(vector, t)))
        means.append(server.close_round().mean.tolist())
    assert means == [[3.0, 0.0], [3.0, 1.0], [3.0, 1.0], [3.0, 1.0]]


@pytest.mark.parametrize("moved", [0.0, 0.3, 1.0])
def test_on_the_weather_some_stations_skip_some_days_and_bytes_say_so(moved: float) -> None:
    weather = load_weather()
    days, stations, dim = weather.vectors.shape
    run = sm.Run(sm.named("lag", moved=moved), dim)
    server, clients = sm.Server(run), [sm.Client(run, name) for name in weather.stations]
    remembered, sends, errors = np.zeros((stations, dim)), [], []
    for day in range(days):
        vectors = weather.vectors[day].astype(np.float64)
        blobs = [client.encode(vector, day) for client, vector in zip(clients, vectors, strict=True)]
        for client, blob in zip(clients, blobs, strict=True):
            client.delivered(server.accept(client.node, blob))
        estimate = server.close_round()
        sent = np.array([len(blob) > HEADER for blob in blobs])
        far = np.sum((vectors - remembered) ** 2, axis=1) > moved * np.sum(vectors**2, axis=1)
        assert np.array_equal(sent, far | (day == 0))
        assert estimate.bytes == HEADER * stations + 4 * dim * sent.sum() == sum(map(len, blobs))
        remembered[sent] = vectors[sent]
        np.testing.assert_allclose(estimate.mean, remembered.mean(axis=0), rtol=0, atol=1e-12)
        sends.append(sent.mean())
        errors.append(np.sum((estimate.mean - vectors.mean(axis=0)) ** 2) / np.sum(vectors.mean(axis=0) ** 2))
    later = np.mean(sends[1:])
    if moved == 0.0:
        assert later == 1.0
        assert max(errors) < 1e-25
    else:
        assert 0.05 < later < 0.95, "choose moved so that both happen"
        assert max(errors) < moved


@pytest.mark.parametrize("inner", [sm.Wangni(2), sm.Induced(sm.TopK(1), sm.RandK(1)), sm.Difference(sm.RandK(1))])
def test_values_the_server_cannot_remember_are_refused(inner: sm.Encoder) -> None:
    with pytest.raises(sm.IncompatibleScheme):
        sm.Lazy(inner)


@pytest.mark.parametrize("moved", [-0.1, float("inf"), float("nan")])
def test_moved_is_a_share(moved: float) -> None:
    with pytest.raises(sm.InvalidInput, match="moved"):
        sm.Lazy(sm.Identity(), moved)
