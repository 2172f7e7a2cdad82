"""Rounds over HTTP end as the same rounds in one process do, to the bit, whoever dies on the way."""

from __future__ import annotations

import io
import signal
import threading

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.integrations.http import HttpNode, NotAdmitted, Unreachable
from sparsemean.integrations.http.service.tokens import Tokens

from .serving import NODES, serving

pytestmark = pytest.mark.xdist_group("http")  # one service at a time

DIM, ROUNDS = 300, 4
VECTORS = np.random.default_rng(5).normal(size=(ROUNDS, 3, DIM)) + 1.0


def in_process(run: sm.Run) -> list[np.ndarray]:
    """The means of these rounds, without any service."""
    server, clients = sm.Server(run), {node: sm.Client(run, node) for node in NODES}
    means: list[np.ndarray] = []
    for t in range(ROUNDS):
        plans = server.plans(NODES) if run.planned else dict.fromkeys(NODES, None)
        for i, (node, client) in enumerate(clients.items()):
            reference = server.reference if run.relative else None
            blob = client.encode(VECTORS[t, i], t, plans[node], reference, server.sketch(node))
            client.delivered(server.accept(node, blob))
        means.append(server.close_round().mean)
    return means


def play(nodes: dict[str, HttpNode], rounds: range) -> list[np.ndarray]:
    """The means that the last node hears of these rounds; nodes send one after the other."""
    means = []
    for t in rounds:
        for i, node in enumerate(nodes.values()):
            node.send(VECTORS[t, i], t)
        found = node.mean(t)
        assert found is not None
        assert found.round == t
        means.append(found.mean)
    return means


SCHEMES = {
    "spatial": sm.named("rand-k-spatial-avg", k=60),
    "temporal": sm.named("rand-k-temporal", k=60, values="int8"),
    "balanced": sm.named("rand-k-balanced-hybrid", k=60),
    "auto": sm.named("auto", bytes=200),
    "broadcast": sm.named("auto", bytes=200, node="broadcast"),
    "stateful": sm.named("auto", bytes=200, node="stateful"),
}


@pytest.mark.parametrize("name", SCHEMES)
def test_the_means_are_those_of_one_process(tmp_path, name):
    run = sm.Run(SCHEMES[name], dim=DIM, seed=3)
    expected = in_process(run)
    with serving(tmp_path, run, "--wanted", 3, "--minimum", 3) as service:
        means = play({node: service.node(node) for node in NODES}, range(ROUNDS))
    for mean, other in zip(means, expected, strict=True):
        np.testing.assert_array_equal(mean, other.astype(np.float32))


def test_nodes_that_send_at_the_same_time(tmp_path):
    """The order in which they come changes the last bit of a sum, and nothing else."""
    run = sm.Run(SCHEMES["stateful"], dim=DIM, seed=3)
    expected = in_process(run)
    failures: list[BaseException] = []

    def send(i: int, node: HttpNode) -> None:
        try:
            for (told, _), mean in zip(node.play(VECTORS[:, i]), expected, strict=True):
                found = node.mean(told.number)
                assert found is not None
                np.testing.assert_allclose(found.mean, mean, rtol=1e-5, atol=1e-5)
        except BaseException as failure:
            failures.append(failure)

    with serving(tmp_path, run, "--wanted", 3, "--minimum", 3) as service:
        threads = [threading.Thread(target=send, args=(i, service.node(node))) for i, node in enumerate(NODES)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_a_killed_service_goes_on_from_its_journal(tmp_path):
    run = sm.Run(SCHEMES["stateful"], dim=DIM, seed=3)
    expected = in_process(run)
    settings = ("--wanted", 3, "--minimum", 3, "--journal", tmp_path / "journal")
    with serving(tmp_path, run, *settings) as service:
        nodes = {node: service.node(node, state=tmp_path / f"{node}.state") for node in NODES}
        means = play(nodes, range(2))
        nodes["a"].send(VECTORS[2, 0], 2)  # acknowledged, so it must count
        service.stop(signal.SIGKILL)
        service.start()
        assert service.json("/v1/round", service.tokens["a"])["came"]
        nodes["a"] = service.node("a", state=tmp_path / "a.state")  # the node died too
        means += play(nodes, range(2, 4))
        history = service.json("/v1/history")["rounds"]
    assert [row["round"] for row in history] == [0, 1, 2, 3]
    for mean, other in zip(means, expected, strict=True):
        np.testing.assert_array_equal(mean, other.astype(np.float32))


def test_a_mean_of_few_bits_is_what_all_go_by(tmp_path):
    run = sm.Run(SCHEMES["broadcast"], dim=DIM)
    with serving(tmp_path, run, "--wanted", 3, "--minimum", 3, "--broadcast-values", "int8") as service:
        means = play({node: service.node(node) for node in NODES}, range(ROUNDS))
        exact = np.load(io.BytesIO(service.ask("GET", "/v1/estimate.npy", service.tokens["a"])[2]))
        refused = [row["refused"] for row in service.json("/v1/history")["rounds"]]
    assert 0 < np.abs(means[-1] - exact).max() < 0.05 * np.abs(exact).max()
    assert refused == [{}] * ROUNDS  # none was out of step with what the service goes by


def test_a_round_waits_for_the_minimum_and_ends_at_the_deadline(tmp_path):
    run = sm.Run(SCHEMES["spatial"], dim=DIM)
    with serving(tmp_path, run, "--minimum", 2, "--wanted", 3, "--deadline", 1.0) as service:
        a, b = service.node("a"), service.node("b")
        a.send(VECTORS[0, 0])
        told = a.round()
        assert told.came
        assert told.number == 0  # the deadline alone makes no mean
        b.send(VECTORS[0, 1])
        heard = a.mean(0)
        assert heard is not None
        assert heard.round == 0
        assert service.json("/v1/estimate")["nodes"] == 2


def test_the_operator_pauses_skips_closes_and_forgets(tmp_path):
    run = sm.Run(SCHEMES["temporal"], dim=DIM)
    with serving(tmp_path, run, "--wanted", 3, "--minimum", 1, "--journal", tmp_path / "j") as service:
        a = service.node("a")
        a.send(VECTORS[0, 0])
        assert service.operate("close") == (200, {"done": "close", "round": 1})
        a.send(VECTORS[1, 0])
        assert service.operate("skip") == (200, {"done": "skip", "round": 2})
        status, told = service.operate("close")
        assert (status, told["error"]) == (409, "TooFewNodes")
        assert service.operate("pause")[0] == 200
        status, headers, _ = service.ask("PUT", "/v1/payload", service.tokens["a"], b"x")
        assert status == 503
        assert int(headers["retry-after"]) > 0
        assert service.ask("GET", "/ready")[0] == 503
        assert service.ask("GET", "/health")[0] == 200
        assert service.operate("resume")[0] == 200
        a.send(VECTORS[2, 0])
        status, told = service.operate("forget", node="a")
        assert (status, told["error"]) == (400, "InvalidInput")  # it is in the open round
        assert service.operate("close")[0] == 200
        assert service.operate("forget", node="a")[0] == 200
        rows = service.json("/v1/history")["rounds"]
    assert [(row["round"], row["skipped"]) for row in rows] == [(0, False), (1, True), (2, False)]


def test_by_default_a_round_is_of_all_who_have_a_token_now(tmp_path):
    run = sm.Run(SCHEMES["spatial"], dim=DIM)
    with serving(tmp_path, run, "--deadline", 3000) as service:
        a, b = service.node("a"), service.node("b")
        a.send(VECTORS[0, 0])
        b.send(VECTORS[0, 1])
        assert a.round().number == 0
        Tokens(tmp_path / "tokens.json").revoke("c")
        assert service.process is not None
        service.process.send_signal(signal.SIGHUP)
        assert a.round(0).number == 1


def test_tokens_are_rotated_revoked_and_read_again(tmp_path):
    run = sm.Run(SCHEMES["spatial"], dim=DIM)
    with serving(tmp_path, run, "--wanted", 9) as service:
        status, told = service.operate("rotate", node="a")
        assert status == 200
        with pytest.raises(NotAdmitted, match="not known, expired or revoked"):
            service.node("a").send(VECTORS[0, 0])
        service.tokens["a"] = told["token"]
        assert service.node("a").send(VECTORS[0, 0]).node == "a"
        Tokens(tmp_path / "tokens.json").revoke("b")
        assert service.node("b").name == "b"  # not read yet
        assert service.process is not None
        service.process.send_signal(signal.SIGHUP)
        for _ in range(200):
            if service.ask("GET", "/v1/run", service.tokens["b"])[0] == 401:
                break
        with pytest.raises(NotAdmitted):
            _ = service.node("b").name
        assert told["token"] not in service.log()


def test_a_service_that_stops_lets_everybody_go_and_keeps_what_it_has(tmp_path):
    run = sm.Run(SCHEMES["spatial"], dim=DIM)
    with serving(tmp_path, run, "--wanted", 3, "--journal", tmp_path / "j", "--durability", "round") as service:
        a = service.node("a", patience=1.0)
        a.send(VECTORS[0, 0])
        waited: list[BaseException] = []

        def wait() -> None:
            try:
                a.mean(0)
            except Unreachable as gone:
                waited.append(gone)

        thread = threading.Thread(target=wait)
        thread.start()
        assert service.stop() == 0
        thread.join()
        assert waited
        assert "stopped" in service.log()
    with sm.Server(run, journal=tmp_path / "j") as server:
        assert server.came == ("a",)


def test_weights_are_the_tokens_unless_the_operator_lets_nodes_say_them(tmp_path):
    run = sm.Run(sm.named("identity"), dim=2)
    for folder, more in (("by-token", ()), ("by-node", ("--weights-by-node",))):
        (tmp_path / folder).mkdir()
        with serving(tmp_path / folder, run, "--wanted", 2, *more, nodes=("a",)) as service:
            tokens = Tokens(service.folder / "tokens.json")
            service.tokens["heavy"] = tokens.add("heavy", weight=3.0)
            service.stop()
            service.start()
            service.node("a").send([0.0, 0.0])
            if more:
                service.node("heavy", weight=1.0).send([4.0, 8.0])
            else:
                with pytest.raises(sm.InvalidInput, match="leave out Sparsemean-Weight"):
                    service.node("heavy", weight=1.0).send([4.0, 8.0])
                service.node("heavy").send([4.0, 8.0])
            heard = service.node("a").mean(0)
            assert heard is not None
            np.testing.assert_array_equal(heard.mean, [2.0, 4.0] if more else [3.0, 6.0])
