"""A server's state as bytes: another server goes on from it, to the bit; what is no such state is refused."""

from __future__ import annotations

import numpy as np
import pytest

import sparsemean as sm

DIM, NODES = 600, ("a", "b", "c")
VECTORS = np.random.default_rng(3).normal(size=(6, 3, DIM)) + 1.0
SCHEMES = {
    "plain": sm.named("rand-k-spatial-adaptive-unbiased", k=60),
    "hybrid": sm.named("rand-k-hybrid", k=60, values="int8"),
    "stale": sm.named("rand-k-temporal-stale", k=60, forget_after=2),
    "window": sm.named("rand-k-temporal-window", k=60, size=2),
    "stable": sm.named("rand-k-temporal-shared-stable", k=60),
    "epochs": sm.named("rand-k-epochs-hybrid", k=60),
    "diana": sm.named("diana", k=60),
    "feedback": sm.named("error-feedback-chunked-top-k", k=60, values="2-bit"),
    "auto": sm.named("auto", bytes=300),
    "broadcast": sm.named("auto", bytes=300, node="broadcast"),
    "stateful": sm.named("auto", bytes=300, node="stateful"),
}


def play(server: sm.Server, clients: dict[str, sm.Client], rounds: range) -> list[np.ndarray]:
    means = []
    for t in rounds:
        plans, reference = server.plans(NODES), server.reference
        for i, (node, client) in enumerate(clients.items()):
            blob = client.encode(VECTORS[t, i], t, plans[node], reference, server.sketch(node))
            client.delivered(server.accept(node, blob))
        means.append(server.close_round().mean)
    return means


def clients_of(run: sm.Run) -> dict[str, sm.Client]:
    return {node: sm.Client(run, node) for node in NODES}


@pytest.mark.filterwarnings("ignore::sparsemean.errors.DivergenceWarning")
@pytest.mark.parametrize("name", SCHEMES)
def test_a_restored_server_goes_on_to_the_bit(name):
    run = sm.Run(SCHEMES[name], DIM, 7)
    server, clients = sm.Server(run), clients_of(run)
    play(server, clients, range(3))
    saved, kept = server.save(), {node: client.save() for node, client in clients.items()}
    straight = play(server, clients, range(3, 6))
    other = sm.Server(run)
    other.restore(saved)
    assert other.save() == saved
    again = play(other, {node: sm.Client.restore(run, node, kept[node]) for node in NODES}, range(3, 6))
    np.testing.assert_array_equal(again, straight)
    assert other.digest() == server.digest()


def test_what_is_no_state_of_this_server_is_refused_and_changes_nothing():
    run = sm.Run(SCHEMES["hybrid"], DIM, 7)
    server = sm.Server(run)
    play(server, clients_of(run), range(2))
    saved, before = server.save(), server.digest()
    flipped = bytearray(saved)
    flipped[len(saved) // 2] ^= 1
    for wrong in (b"", b"rubbish", saved[:-5], bytes(flipped)):
        with pytest.raises(sm.InvalidInput, match=r"not a state written by Server\.save"):
            server.restore(wrong)
    for other in (sm.Server(sm.Run(SCHEMES["hybrid"], DIM, 8)), sm.Server(run, missing="carry")):
        with pytest.raises(sm.InvalidInput, match="another run, or of a server with other settings"):
            other.restore(saved)
    assert server.digest() == before


def test_an_open_round_with_payloads_and_a_server_with_a_journal_are_not_saved(tmp_path):
    run = sm.Run(SCHEMES["plain"], DIM, 7)
    server = sm.Server(run)
    saved = server.save()
    server.accept("a", sm.Client(run, "a").encode(VECTORS[0, 0], 0))
    for refused in (server.save, lambda: server.restore(saved)):
        with pytest.raises(sm.InvalidInput, match="round"):
            refused()
    with sm.Server(run, journal=tmp_path / "journal") as durable:
        for refused in (durable.save, lambda: durable.restore(saved)):
            with pytest.raises(sm.InvalidInput, match="journal"):
                refused()
