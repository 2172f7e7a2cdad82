"""A hostile node in a server with a journal: the others' memory stays as it is, and nobody is who the bytes say."""

from __future__ import annotations

import hashlib
import random
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec

DIM, NODES, PAYLOADS, ROUNDS = 60, ("a", "b", "c"), 1_500, 10
BAD = "mallory"


def sealed(head: bytes, body: bytes) -> bytes:
    start = head[:48] + struct.pack("<Q", len(body)) + head[56:60]
    return start + struct.pack("<I", zlib.crc32(start + body)) + body


def remembered(server: sm.Server) -> dict[str, str]:
    """A digest of what each honest node would be expected to send."""
    return {node: hashlib.blake2b(server.expected(node).tobytes()).hexdigest() for node in NODES}


def after_three_rounds(run: sm.Run, folder: Path) -> tuple[sm.Server, list[bytes]]:
    server, rng, seen = sm.Server(run, journal=folder), np.random.default_rng(1), []
    clients = {node: sm.Client(run, node) for node in NODES}
    for round in range(3):
        for node, client in clients.items():
            seen.append(client.encode(rng.normal(size=DIM), round))
            client.delivered(server.accept(node, seen[-1]))
        server.close_round()
    return server, seen


def bad_ideas(run: sm.Run, round: int, seen: list[bytes], rng: random.Random) -> Iterator[bytes]:
    """Damage, sealed nonsense, extreme values, other nodes' frames, names, rounds and runs."""
    numbers, other = np.random.default_rng(rng.randrange(1 << 30)), sm.Run(run.scheme, run.dim, run.seed + 1)
    while True:
        honest = sm.Client(run, BAD).encode(numbers.normal(size=DIM) * 10.0 ** rng.randrange(-30, 30), round)
        theirs = codec.node_digest(rng.choice(NODES))
        edited = bytearray(honest)
        for _ in range(rng.randrange(1, 5)):
            edited[rng.randrange(4, len(edited))] = rng.randrange(256)
        yield bytes(edited)
        yield sealed(bytes(edited[:60]), bytes(edited[64:]))
        yield sealed(honest[:60], rng.randbytes(rng.randrange(200)))
        yield honest[: rng.randrange(len(honest))]
        yield sealed(honest[:24] + theirs + honest[32:60], honest[64:])
        yield rng.choice(seen)
        yield sm.Client(run, rng.choice(NODES)).encode(np.ones(DIM), round)
        yield sm.Client(other, BAD).encode(np.ones(DIM), round)
        yield sm.Client(run, BAD).encode(np.ones(DIM), round + rng.choice((-3, -2, 1, 2)))
        yield honest


@pytest.mark.parametrize("name", ["rand-k-temporal", "rand-k-temporal-window", "top-k-temporal", "diana", "lag"])
def test_hostile_payloads_leave_what_is_remembered_of_others_as_it_is(name, tmp_path):
    run, rng = sm.Run(sm.named(name, k=12), DIM, seed=5), random.Random(6)
    server, seen = after_three_rounds(run, tmp_path)
    before, taken, refused = remembered(server), 0, set()
    for _ in range(ROUNDS):
        for _, blob in zip(range(PAYLOADS // ROUNDS), bad_ideas(run, server.round, seen, rng), strict=False):
            try:
                assert server.accept(BAD, blob).node == BAD
                taken += 1
            except sm.PayloadError as error:
                refused.add(type(error))
        assert server.close_round().nodes == (BAD,)
        assert remembered(server) == before
    assert taken >= ROUNDS
    assert {sm.MalformedPayload, sm.ForeignPayload, sm.WrongRound, sm.ConflictingPayload} <= refused
    server.close()
    with sm.Server(run, journal=tmp_path) as again:
        assert remembered(again) == before


def test_the_caller_names_the_node_and_the_bytes_never_do(tmp_path):
    run = sm.Run(sm.named("rand-k-temporal", k=12), DIM)
    server, _ = after_three_rounds(run, tmp_path)
    before, blob = server.digest(), sm.Client(run, "a").encode(np.ones(DIM), 3)
    for name in ("mallory", "b", "A", "a ", "a\0"):
        with pytest.raises(sm.ForeignPayload, match="not made by node"):
            server.accept(name, blob)
        renamed = sealed(blob[:24] + codec.node_digest(name) + blob[32:60], blob[64:])
        with pytest.raises(sm.ForeignPayload):
            server.accept("a", renamed)
        assert server.digest() == before
        if name not in NODES:
            assert not np.any(server.expected(name))
    # A frame with one's own name in it counts as one's own, whoever made it.
    stolen = sealed(blob[:24] + codec.node_digest("mallory") + blob[32:60], blob[64:])
    assert server.accept("mallory", stolen).node == "mallory"
    assert server.close_round().nodes == ("mallory",)
    server.close()


@pytest.mark.parametrize("name", ["rand-k", "rand-k-temporal", "top-k", "diana"])
def test_a_payload_replayed_in_another_round_or_run_is_refused(name, tmp_path):
    run = sm.Run(sm.named(name, k=12), DIM, seed=5)
    blob = sm.Client(run, "a").encode(np.ones(DIM), 0)
    with sm.Server(run, journal=tmp_path / "one") as server:
        receipt = server.accept("a", blob)
        server.close_round()
        before = server.digest()
        assert server.accept("a", blob) == receipt  # of the round just closed: answered, not counted
        assert server.digest() == before
        server.skip_round()
        with pytest.raises(sm.WrongRound, match="round 0 is over; the open round is 2"):
            server.accept("a", blob)
    for number, other in enumerate((sm.Run(run.scheme, DIM, 6), sm.Run(run.scheme, DIM, 5, blocks=[20, 40]))):
        with sm.Server(other, journal=tmp_path / f"other-{number}") as server:
            before = server.digest()
            with pytest.raises(sm.ForeignPayload, match="another"):
                server.accept("a", blob)
            assert server.digest() == before
