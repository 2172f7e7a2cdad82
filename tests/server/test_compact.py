"""A server of compact frames: what it refuses and by which name, what it needs no secret for, what it never shows."""

from __future__ import annotations

import io
import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.journal.contents import contents, faults
from sparsemean.schemes import scheme_name
from sparsemean.wire.secret import Secret

DIM = 40
SECRETS = {node: (node * 16).encode() for node in "abcd"}
VECTORS = np.random.default_rng(4).normal(size=(6, 4, DIM))
SCHEMES: dict[str, dict[str, Any]] = {
    "rand-k-spatial-avg": {"k": 10, "values": "int4"},
    "rand-k-balanced": {"k": 10, "values": "int4"},
    "rand-k-epochs-hybrid": {"k": 10, "values": "int8"},
    "rand-k-hybrid": {"k": 10},
    "top-k-temporal": {"k": 10},
    "diana": {"k": 10},
    "lag": {},
    "auto": {"bytes": 20},
    "auto broadcast": {"bytes": 20, "node": "broadcast"},
    "auto stateful": {"bytes": 20, "node": "stateful"},
}


def run_of(name: str, frame: str = "compact", **options: Any) -> sm.Run:
    scheme = sm.named(scheme_name(name.split()[0]), **({"k": None} | SCHEMES[name] | options))
    return sm.Run(scheme, DIM, seed=2, frame=frame)


def client_of(run: sm.Run, node: str) -> sm.Client:
    return sm.Client(run, node, secret=SECRETS[node])


class Played:
    """A server, its clients, and the rounds they play."""

    def __init__(self, run: sm.Run, nodes: str = "abcd", **settings: Any) -> None:
        secrets = None if run.compact is None else SECRETS
        self.run, self.server = run, sm.Server(run, **({"secrets": secrets} | settings))
        self.clients = {node: client_of(run, node) if secrets else sm.Client(run, node) for node in nodes}

    def send(self, node: str) -> bytes:
        """The node's payload of the open round, accepted and delivered."""
        blob = self.made(node)
        self.clients[node].delivered(self.server.accept(node, blob))
        return blob

    def made(self, node: str) -> bytes:
        server = self.server
        plan = server.plans(list(self.clients))[node]
        return self.clients[node].encode(self.vector(node), server.round, plan, server.reference)

    def vector(self, node: str) -> Doubles:
        """What the node has in the open round."""
        return np.array(VECTORS[self.server.round % len(VECTORS), "abcd".index(node)])

    def play(self, rounds: int) -> list[sm.Estimate]:
        found = []
        for _ in range(rounds):
            for node in self.clients:
                self.send(node)
            found.append(self.server.close_round())
        return found


@pytest.mark.parametrize("name", SCHEMES)
def test_rounds_are_to_the_bit_those_of_full_frames(name: str) -> None:
    run = run_of(name)
    more = {"bytes": 20 + 64 - run.header_bytes} if run.auto else {}
    full, compact = Played(run_of(name, "full", **more)).play(4), Played(run).play(4)
    assert [each.mean.tolist() for each in full] == [each.mean.tolist() for each in compact]
    assert full[0].bytes == compact[0].bytes + 4 * (64 - run.header_bytes)


def refusal(server: sm.Server, node: str, blob: bytes, weight: float = 1.0) -> type[sm.SparseMeanError]:
    """The error of this payload, which must not change the server nor show a secret."""
    before = server.digest()
    with pytest.raises(sm.PayloadError) as refused:
        server.accept(node, blob, weight)
    assert server.digest() == before
    shown = f"{refused.value!r} {refused.value}"
    assert not any(secret.decode() in shown or secret.hex() in shown for secret in SECRETS.values())
    return refused.type


def flipped(blob: bytes, bit: int) -> bytes:
    return (int.from_bytes(blob, "little") ^ 1 << bit).to_bytes(len(blob), "little")


@pytest.mark.parametrize("name", ["rand-k-spatial-avg", "rand-k-balanced", "diana"])
def test_each_wrong_payload_has_its_error(name: str) -> None:
    played = Played(run_of(name))
    run, server = played.run, played.server
    played.play(2)
    a, b = played.send("a"), played.made("b")

    def made(round: int, secret: bytes | None = SECRETS["b"]) -> bytes:
        elsewhere = server if round == 2 else sm.Server(run, round=round)
        return sm.Client(run, "b", secret=secret).encode(played.vector("b"), round, elsewhere.plan("b"))

    assert refusal(server, "b", a) in (sm.MalformedPayload, sm.ForeignPayload)
    assert refusal(server, "b", flipped(b, 8 * len(b) - 3)) is sm.MalformedPayload
    assert refusal(server, "b", b[:-1]) is sm.MalformedPayload
    assert refusal(server, "b", b[:3]) is sm.MalformedPayload
    assert refusal(server, "b", made(2, None)) is sm.ForeignPayload
    assert refusal(server, "b", made(2, SECRETS["c"])) in (sm.MalformedPayload, sm.ForeignPayload)
    assert refusal(server, "b", made(0)) is sm.WrongRound
    assert refusal(server, "b", made(3)) is sm.WrongRound
    assert refusal(server, "b", made(20)) is sm.WrongRound
    assert refusal(server, "a", a, weight=2.0) is sm.ConflictingPayload
    assert refusal(server, "stranger", b) is sm.ForeignPayload
    other = client_of(run, "a").encode(-played.vector("a"), 2, server.plan("a"))
    assert refusal(server, "a", other) is sm.ConflictingPayload
    assert server.accept("b", b) == server.accept("b", b)
    assert server.close_round().nodes == ("a", "b")


@pytest.mark.parametrize("name", SCHEMES)
def test_a_repeated_payload_has_its_receipt_until_the_next_round_ends(name: str) -> None:
    played = Played(run_of(name))
    played.play(2)
    blob = played.send("a")
    receipt = played.server.accept("a", blob)
    played.server.close_round()
    assert played.server.accept("a", blob) == receipt
    assert refusal(played.server, "b", blob) is not None
    played.play(1)
    assert refusal(played.server, "a", blob) is sm.WrongRound


@pytest.mark.parametrize("name", ["diana", "lag", "auto stateful"])
def test_a_node_out_of_step_is_told_so_and_begins_afresh(name: str) -> None:
    played = Played(run_of(name))
    played.play(2)
    played.server.accept("a", played.made("a"))  # the receipt is lost
    played.server.close_round()
    assert refusal(played.server, "a", played.made("a")) is sm.OutOfStep
    played.clients["a"].reset()
    played.play(2)
    played.server.forget("a")  # and here the server loses what the node keeps
    assert refusal(played.server, "a", played.made("a")) is sm.OutOfStep
    played.clients["a"].reset()
    played.play(1)


def test_another_reference_is_out_of_step() -> None:
    played = Played(sm.Run(sm.Scheme(sm.Relative(sm.RandK(10)), values="int8"), DIM, seed=2, frame="compact"))
    played.play(2)
    reference = played.server.reference
    assert reference is not None
    client = played.clients["a"]
    assert refusal(played.server, "a", client.encode(played.vector("a"), 2, None, reference + 1)) is sm.OutOfStep
    played.server.accept("a", client.encode(played.vector("a"), 2, None, reference))
    played.server.accept("b", played.clients["b"].encode(played.vector("b"), 2))  # has not heard it
    assert played.server.close_round().nodes == ("a", "b")


@pytest.mark.parametrize("name", SCHEMES)
def test_a_journal_is_read_without_secrets_and_holds_none(name: str, tmp_path: Path) -> None:
    played = Played(run_of(name), journal=tmp_path)
    played.play(2)
    kept = [played.send(node) for node in "abc"]
    before = played.server.digest()
    played.server.close()
    assert faults(tmp_path) == []
    assert contents(tmp_path).waiting_bytes == sum(map(len, kept))
    for path in tmp_path.iterdir():
        held = path.read_bytes()
        assert not any(secret in held or secret.hex().encode() in held for secret in SECRETS.values())
    with sm.Server(played.run, journal=tmp_path) as again:
        assert again.digest() == before
        assert again.accept("b", kept[1]).round == 2
        assert refusal(again, "d", played.clients["d"].encode(played.vector("d"), 2, again.plan("d"))) is not None
    with sm.Server(played.run, journal=tmp_path, secrets=SECRETS) as again:
        played.server = again
        played.send("d")
        assert again.close_round().nodes == tuple("abcd")


def test_a_journal_of_full_frames_is_another(tmp_path: Path) -> None:
    sm.Server(run_of("diana"), journal=tmp_path).close()
    with pytest.raises(sm.errors.ForeignJournal, match="frame"):
        sm.Server(run_of("diana", "full"), journal=tmp_path)


def test_verify_sees_a_payload_of_another_round(tmp_path: Path) -> None:
    played = Played(run_of("rand-k-spatial-avg"), journal=tmp_path)
    rounds = played.server._rounds
    blob = client_of(played.run, "a").encode(VECTORS[0, 0], 7)
    rounds._journal.accept(0, [("a", np.ones(1).tobytes(), blob)])  # type: ignore[attr-defined]
    assert faults(tmp_path) == ["record 0 of round 0 holds a payload of round 7"]
    played.server.close()


def test_many_at_once_and_a_function_for_the_secrets() -> None:
    run = run_of("rand-k-spatial-avg")
    server = sm.Server(run, secrets=SECRETS.get)
    blobs = {node: client_of(run, node).encode(VECTORS[0, i], 0) for i, node in enumerate("abcd")}
    answers = server.accept_many([*blobs.items(), ("d", blobs["c"]), ("e", blobs["a"]), ("a", blobs["a"])])
    told = [answer.node if isinstance(answer, sm.Receipt) else type(answer).__name__ for _, answer in answers]
    assert told == ["a", "b", "c", "d", "MalformedPayload", "ForeignPayload", "a"]
    assert server.close_round().nodes == tuple("abcd")


def test_a_saved_client_goes_on_with_its_secret_and_only_with_it() -> None:
    played = Played(run_of("diana"))
    played.play(2)
    saved = played.clients["a"].save()
    assert SECRETS["a"] not in saved
    played.clients["a"] = sm.Client.restore(played.run, "a", saved, secret=SECRETS["a"])
    assert played.play(1)[0].nodes == tuple("abcd")
    for wrong in (None, SECRETS["b"]):
        with pytest.raises(sm.InvalidInput, match="secret"):
            sm.Client.restore(played.run, "a", saved, secret=wrong)


@pytest.mark.parametrize(
    ("secret", "why"),
    [(b"", "0; draw"), (b"x" * 15, "15; draw"), (b"x" * 33, "33; draw"), ("x" * 16, "not str"), (7, "not int")],
)
def test_what_can_be_no_secret_is_refused_and_not_repeated(secret: Any, why: str) -> None:
    run = run_of("rand-k-spatial-avg")
    for wrong in (lambda: sm.Client(run, "a", secret=secret), lambda: sm.Server(run, secrets={"a": secret})):
        with pytest.raises(sm.InvalidInput, match=why) as refused:
            wrong()
        assert "xx" not in str(refused.value)


def test_secrets_are_for_compact_frames() -> None:
    run = run_of("rand-k-spatial-avg", "full")
    for wrong in (lambda: sm.Client(run, "a", secret=b"x" * 16), lambda: sm.Server(run, secrets={"a": b"x" * 16})):
        with pytest.raises(sm.InvalidInput, match='frame="compact"'):
            wrong()
    with pytest.raises(sm.InvalidInput, match="a dict of node and bytes, or a function"):
        sm.Server(run_of("rand-k-spatial-avg"), secrets=[b"x" * 16])  # type: ignore[arg-type]


def test_nothing_shows_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        played = Played(run_of("diana"))
        played.play(1)
        refusal(played.server, "a", b"nonsense")
    client = played.clients["a"]
    shown = " ".join(map(repr, [client, vars(client), vars(played.server), played.run])) + caplog.text
    shown += played.run.to_json()
    assert not any(secret.decode() in shown or secret.hex() in shown for secret in SECRETS.values())
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dump(Secret(SECRETS["a"]), io.BytesIO())
