"""Sixty thousand payloads nobody would send: each is refused on purpose, or is a payload like any other."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean.wire import varint

DIM = 60
HEADER = 64
SCHEMES = {
    "identity": sm.named("identity"),
    "rand-k": sm.named("rand-k", k=6),
    "rand-k-temporal": sm.Scheme(sm.RandK(6), sm.Spatial("avg"), sm.PerNode(3), values="float64"),
    "top-k": sm.named("top-k", k=6),
    "top-k, bitmap": sm.named("top-k-temporal", k=0.5),
    "wangni": sm.named("wangni", k=12),
    "wangni, float64": sm.named("wangni", k=30, values="float64"),
    "induced": sm.named("induced", k=8),
    "diana": sm.named("diana", k=6),
    "lag": sm.named("lag"),
}
EACH = 60_000 // len(SCHEMES)
BYTES = np.array([0x00, 0x01, 0x02, 0x06, 0x07, 0x08, 0x3B, 0x3C, 0x7F, 0x80, 0x81, 0xFF], np.uint8)
WORDS = [0, 1, 2, 3, DIM - 1, DIM, DIM + 1, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
FIELDS = [(4, "<B"), (5, "<B"), (6, "<B"), (7, "<B"), (32, "<Q"), (40, "<Q"), (48, "<Q"), (56, "<I")]


def seal(head: bytes, body: bytes) -> bytes:
    """A frame with its length and checksum set right, so that what is wrong deeper down is reached."""
    start = head[:48] + struct.pack("<Q", len(body)) + head[56:60]
    return start + struct.pack("<I", zlib.crc32(start + body)) + body


def server_of(run: sm.Run) -> tuple[sm.Server, dict[str, sm.Client]]:
    """Two rounds of memory, and one payload of three taken in round 2."""
    rng = np.random.default_rng(3)
    server, clients = sm.Server(run), {node: sm.Client(run, node) for node in "abc"}
    for round in range(2):
        for node, client in clients.items():
            client.delivered(server.accept(node, client.encode(rng.normal(size=DIM) + 1.0, round)))
        server.close_round()
    server.accept("c", clients["c"].encode(rng.normal(size=DIM), 2))
    return server, clients


def honest_frames(clients: dict[str, sm.Client]) -> list[bytes]:
    """What node a might send in round 2, short and long."""
    rng = np.random.default_rng(4)
    few = np.where(rng.random(DIM) < 0.05, rng.normal(size=DIM), 0.0)
    ties = rng.choice([1.0, -1.0, 5.0], DIM)
    vectors = [rng.normal(size=DIM), rng.standard_cauchy(DIM), few, ties, np.zeros(DIM), np.ones(DIM)]
    return [clients["a"].encode(vector, 2) for vector in vectors]


class Mutator:
    """Damages frames in every way that a line, a disk or an adversary might."""

    def __init__(self, frames: list[bytes], strangers: list[bytes], seed: int) -> None:
        self.frames, self.strangers, self.rng = frames, strangers, np.random.default_rng(seed)

    def pick(self, choices: list[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def edit(self, data: bytes) -> bytes:
        """One to four small edits: bits, telling bytes, insertions, deletions, repetitions, noise."""
        rng = self.rng
        edited = bytearray(data)
        for _ in range(int(rng.integers(1, 5))):
            if not edited:
                return rng.bytes(int(rng.integers(0, 20)))
            # Half of the edits go to the first bytes, where lists have their counts and modes.
            at = int(rng.integers(min(len(edited), 8) if rng.random() < 0.5 else len(edited)))
            kind = rng.integers(7)
            if kind == 0:
                edited[at] ^= 1 << int(rng.integers(8))
            elif kind == 1:
                edited[at] = BYTES[rng.integers(BYTES.size)]
            elif kind == 2:
                edited[at:at] = rng.bytes(int(rng.integers(1, 5)))
            elif kind == 3:
                del edited[at : at + int(rng.integers(1, 5))]
            elif kind == 4:
                edited[at:at] = edited[at : at + int(rng.integers(1, 9))]
            elif kind == 5:
                edited[at : at + 4] = struct.pack("<f", self.pick([np.nan, np.inf, -np.inf, 3e38, -0.0, 1e-45, 1.0]))
            else:
                edited[at : at + 1] = varint.pack(np.array([self.pick([0, 127, 128, DIM, 1 << 20, (1 << 42) - 1])]))
        return bytes(edited)

    def mutant(self) -> bytes:
        rng = self.rng
        frame: bytes = self.pick(self.frames)
        kind = rng.integers(12)
        if kind == 0:  # bits, unrepaired
            return self.edit(frame)
        if kind == 1:
            return frame[: int(rng.integers(len(frame)))]
        if kind == 2:
            return rng.bytes(int(rng.integers(0, 200)))
        if kind == 3:  # a splice
            other: bytes = self.pick([*self.frames, *self.strangers])
            at = int(rng.integers(len(frame)))
            return frame[:at] + other[int(rng.integers(len(other))) :]
        if kind == 4:  # a stranger's frame, whole or with our header
            other = self.pick(self.strangers)
            return other if rng.random() < 0.3 else seal(frame[:60], other[HEADER:])
        if kind in (5, 6):  # a header field, sealed
            at, form = self.pick(FIELDS)
            word = self.pick(WORDS) & (1 << 8 * struct.calcsize(form)) - 1
            head = bytearray(frame[:60])
            struct.pack_into(form, head, at, word)
            body = frame[HEADER:] if rng.random() < 0.6 else b""
            if at != 48:
                return seal(bytes(head), body)
            return bytes(head) + struct.pack("<I", zlib.crc32(bytes(head) + body)) + body
        if kind == 7:  # noise as a body, sealed
            return seal(frame[:60], rng.bytes(int(rng.integers(0, 120))))
        return seal(frame[:60], self.edit(frame[HEADER:]))


@pytest.mark.parametrize("name", SCHEMES)
def test_mutated_payloads_are_refused_without_a_trace_or_are_payloads_like_any_other(name):
    run = sm.Run(SCHEMES[name], DIM, seed=9)
    server, clients = server_of(run)
    strangers = []
    for other in SCHEMES.values():
        other_run = sm.Run(other, DIM, seed=9)
        strangers.append(sm.Client(other_run, "a").encode(np.arange(DIM), 2))
    strangers += [sm.Client(run, node).encode(np.ones(DIM), round) for node, round in (("a", 1), ("b", 2), ("a", 3))]
    mutator = Mutator(honest_frames(clients), strangers, seed=1 + sum(name.encode()))
    before = server.digest()
    refused: dict[type, int] = {}
    sound = taken = 0
    for trial in range(EACH):
        blob = mutator.mutant()
        try:
            header, body = codec.open_frame(run, "a", blob)
            payload = codec.read_payload(run, "a", header, body)
        except sm.SparseMeanError:
            payload = header = None
        if header is not None:  # sound, and so exactly what we should have written
            sound += 1
            assert codec.pack(run, "a", header.round, payload, header.basis) == blob
            if sound % 20:
                continue
        try:
            server.accept("a", blob)
        except sm.PayloadError as error:
            refused[type(error)] = refused.get(type(error), 0) + 1
            if trial % 100 == 0:
                assert server.digest() == before
        else:
            assert header is not None
            taken += 1
            assert server.digest() != before
            assert np.all(np.isfinite(server.close_round().mean))
            server, _ = server_of(run)
            assert server.digest() == before
    assert server.digest() == before
    # The mutants reach every layer.
    wanted = {sm.MalformedPayload, sm.ForeignPayload, sm.WrongRound, sm.NonFiniteValues, sm.OutOfStep}
    assert wanted <= set(refused)
    assert refused[sm.MalformedPayload] > EACH / 4
    assert taken > 10
    server.accept("a", clients["a"].encode(np.ones(DIM), 2))
    assert server.close_round().nodes == ("c", "a")


def integer(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(0x80 | number & 0x7F)
        number >>= 7
    return bytes([*out, number])


HUGE = [1 << 20, 1 << 31, 1 << 39, (1 << 40) - 1, 1 << 41, (1 << 42) - 1, 1 << 62, (1 << 63) - 1, (1 << 64) - 1]
GIANT = {
    "identity": sm.named("identity", values="float64"),
    "rand-k": sm.named("rand-k", k=0.5),
    "top-k": sm.named("top-k", k=0.5),
    "wangni": sm.named("wangni", k=0.5),
    "induced": sm.named("induced", k=0.5),
}


def peak_of_refusal(run: sm.Run, blob: bytes) -> int:
    """Most memory held while the payload is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(sm.PayloadError):
            codec.read_payload(run, "a", *codec.open_frame(run, "a", blob))
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", GIANT)
def test_declared_sizes_allocate_nothing(name):
    """In a run of 2^40 dimensions anything may be announced; what is held depends on what was sent alone."""
    run = sm.Run(GIANT[name], 1 << 40)
    head = codec.pack(run, "a", 0, None)[:60]
    head = head[:5] + bytes([0, head[6], len(run.layout)]) + head[8:]
    bodies = [b"", bytes(100), b"\xff" * 100, b"\x7f" * 100]
    for huge in HUGE:
        count = integer(huge)
        bodies += [count, count + b"\0\x01\x05", count + b"\x01" + count, b"\x01\0" + count + b"\x05"]
        bodies += [b"\x01\x01" + count + b"\xff" * 50, b"\x01\0" + integer(len(count)) + count + bytes(8)]
        # One coordinate, one level, and then a list of larger values that is announced only.
        bodies += [b"\x01\0\x01\x05" + struct.pack("<f", 1.0) + count + b"\x01" + count]
    for body in bodies:
        blob = seal(head, body)
        assert peak_of_refusal(run, blob) < 20_000 + 300 * len(blob), body[:20].hex()


@pytest.mark.parametrize("name", ["top-k", "wangni", "induced"])
def test_what_is_held_is_a_small_multiple_of_what_was_sent(name):
    dim = 1 << 17
    run = sm.Run(sm.named(name, k=dim), dim)
    head = codec.pack(run, "a", 0, None)[:60]
    head = head[:5] + bytes([0, head[6], len(run.layout)]) + head[8:]
    count = run.layout[0].count
    half = count // 8
    for body in (
        integer(count) + b"\x01" + integer(dim // 8) + b"\xff" * half + bytes(dim // 8 - half),
        integer(count) + b"\x01" + integer(dim // 8) + b"\xff" * (dim // 8),
        integer(3) + b"\x01" + integer(dim // 8) + b"\xff" * (dim // 8),
        integer(dim // 8) + b"\0" + integer(dim // 8) + bytes(dim // 8),
        integer(dim // 8) + b"\0" + integer(dim // 8) + b"\x7f" * (dim // 8),
    ):
        blob = seal(head, body)
        assert peak_of_refusal(run, blob) < 20_000 + 300 * len(blob)


@pytest.mark.parametrize("length", HUGE)
def test_a_declared_length_allocates_nothing(length):
    run = sm.Run(sm.named("identity"), DIM)
    blob = bytearray(sm.Client(run, "a").encode(np.ones(DIM), 0))
    blob[48:56] = struct.pack("<Q", length)
    blob[60:64] = struct.pack("<I", zlib.crc32(bytes(blob[:60] + blob[64:])))
    assert peak_of_refusal(run, bytes(blob)) < 20_000
