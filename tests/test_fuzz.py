"""The frame decoder and bytes that nobody should send: only our errors, quickly, and in little memory.

Every truncation and every flipped bit of every golden frame, as it is and, but for most bits of its values, with length
and checksum set right; every field of the header at its extremes; and mutants of what a coverage-guided fuzzer kept
(``soak/fuzz.py``, which goes on for as long as one likes): more than 100,000 inputs in all.
"""

from __future__ import annotations

import json
import random
import struct
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import SchemeName
from sparsemean.wire.values import value_kind

GOLDEN = Path(__file__).parent / "golden"
FRAMES = sorted((GOLDEN / "wire" / "v1").glob("*.bin"))
HEADER = 64
BASE, TIMES = 50_000, 400  # bytes that may be held: tables and errors, and so many for each byte of the frame
FIELDS = [(4, "<B"), (5, "<B"), (6, "<B"), (7, "<B"), (32, "<Q"), (40, "<Q"), (48, "<Q"), (56, "<I")]
WORDS = [0, 1, 2, 255, 1 << 31, 1 << 40, (1 << 42) - 1, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]
MUTANTS = 15_000

Target = tuple[sm.Run, str]
Inputs = Iterable[tuple[Target, bytes]]


def target_of(path: Path) -> Target:
    story = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return sm.Run.from_json(json.dumps(story["run"])), story["node"]


TARGETS = {path.stem: target_of(path) for path in FRAMES}
BIG: tuple[SchemeName, ...] = ("identity", "rand-k", "top-k", "wangni", "induced")
GIANTS = {f"giant-{name}": (sm.Run(sm.named(name, k=0.5), 1 << 40), "a") for name in BIG}


def sealed(frame: bytes, length: int | None = None) -> bytes:
    """The frame with its length, unless another is given, and its checksum set right."""
    body = frame[HEADER:]
    start = frame[:48] + struct.pack("<Q", len(body) if length is None else length) + frame[56:60]
    return start + struct.pack("<I", zlib.crc32(start + body)) + body


def answer(run: sm.Run, node: str, blob: bytes) -> str:
    """How the decoder takes it: the name of a PayloadError, or "taken", in which case we should have written it so."""
    try:
        header, body = codec.open_frame(run, node, blob)
        payload = codec.read_payload(run, node, header, body)
    except sm.PayloadError as refused:
        return type(refused).__name__
    if value_kind(run.scheme.values).exact:
        assert codec.pack(run, node, header.round, payload, header.basis) == blob
    return "taken"


def answers(inputs: Inputs) -> dict[str, int]:
    """How often each answer was given; none took a second of work."""
    found: dict[str, int] = {}
    for (run, node), blob in inputs:
        began = time.thread_time()
        given = answer(run, node, blob)
        assert time.thread_time() - began < 1.0, blob.hex()
        found[given] = found.get(given, 0) + 1
    return found


def held_too_much(inputs: Inputs) -> list[str]:
    """Inputs for which more memory was held than their length allows."""
    found = []
    for (run, node), blob in inputs:
        tracemalloc.start()
        answer(run, node, blob)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        if held > BASE + TIMES * len(blob):
            found.append(f"{held} bytes for {len(blob)}: {blob[:100].hex()}")
    return found


def golden() -> Inputs:
    for path in FRAMES:
        yield TARGETS[path.stem], path.read_bytes()


def truncations() -> Inputs:
    for target, blob in golden():
        yield from ((target, blob[:size]) for size in range(len(blob)))


def flipped_bits(nth: int = 1) -> Inputs:
    """All bits of the header, each n-th of the rest."""
    for target, blob in golden():
        whole = int.from_bytes(blob, "little")
        for bit in [*range(8 * HEADER), *range(8 * HEADER, 8 * len(blob), nth)]:
            yield target, (whole ^ 1 << bit).to_bytes(len(blob), "little")


def extremes() -> Inputs:
    for target, blob in golden():
        for at, form in FIELDS:
            for word in sorted({word & (1 << 8 * struct.calcsize(form)) - 1 for word in WORDS}):
                changed = bytearray(blob)
                struct.pack_into(form, changed, at, word)
                yield target, sealed(bytes(changed), word if at == 48 else None)


def kept_by_the_fuzzer() -> list[tuple[Target, bytes]]:
    known, lines = {**TARGETS, **GIANTS}, (GOLDEN / "fuzz_corpus.txt").read_text(encoding="utf-8").splitlines()
    return [(known[name], bytes.fromhex(frame)) for name, frame in map(str.split, lines)]


def with_own_header(target: Target, blob: bytes) -> bytes:
    """The body behind a header that fits it, since the fuzzer kept many a foreign one."""
    run, node = target
    head = codec.pack(run, node, 0, None)
    return head[:5] + bytes([0, head[6], len(run.layout)]) + head[8:] + blob[HEADER:]


def mutants(count: int) -> Inputs:
    """One to three edits of what the fuzzer kept, mostly behind the header, sealed nine times of ten."""
    rng, corpus = random.Random(8), kept_by_the_fuzzer()
    edits: list[Callable[[bytearray, int], None]] = [
        lambda data, at: data.__setitem__(at, data[at] ^ 1 << rng.randrange(8)),
        lambda data, at: data.__setitem__(at, rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)))),
        lambda data, at: data.__setitem__(slice(at, at), rng.randbytes(rng.randrange(1, 9))),
        lambda data, at: data.__delitem__(slice(at, at + rng.randrange(1, 9))),
        lambda data, at: data.__setitem__(slice(at, at), rng.choice(corpus)[1][HEADER:][: rng.randrange(1, 40)]),
    ]
    for _ in range(count):
        target, blob = rng.choice(corpus)
        data = bytearray(with_own_header(target, blob) if rng.random() < 0.7 else blob)
        for _ in range(rng.randrange(1, 4)):
            data = data or bytearray(1)
            low = HEADER if len(data) > HEADER and rng.random() < 0.9 else 0
            rng.choice(edits)(data, rng.randrange(low, max(low + 1, len(data))))
        yield target, sealed(bytes(data)) if len(data) >= HEADER and rng.random() < 0.9 else bytes(data)


@pytest.fixture(scope="module", autouse=True)
def compiled() -> None:
    """Compiled loops and tables are made once, which takes its time and memory."""
    for target, blob in golden():
        answer(*target, blob)


def test_every_truncation_and_every_flipped_bit_is_noticed():
    found = answers(truncations()), answers(flipped_bits())
    assert [set(each) for each in found] == [{"MalformedPayload"}] * 2
    assert sum(found[0].values()) + sum(found[1].values()) > 60_000


@pytest.mark.parametrize("inputs", [truncations, lambda: flipped_bits(5)], ids=["truncations", "flipped bits"])
def test_with_the_checksum_set_right_it_is_refused_or_is_a_payload_like_any_other(inputs):
    repaired = ((target, sealed(blob)) for target, blob in inputs() if len(blob) >= HEADER)
    found = answers(repaired)
    assert set(found) <= {"MalformedPayload", "ForeignPayload", "NonFiniteValues", "taken"}
    assert found["MalformedPayload"] > 1_000


def test_extreme_words_in_headers_are_refused_or_harmless():
    found = answers(extremes())
    assert set(found) == {"MalformedPayload", "ForeignPayload", "taken"}


def test_mutants_of_what_the_fuzzer_kept():
    found = answers(mutants(MUTANTS))
    assert set(found) == {"MalformedPayload", "ForeignPayload", "NonFiniteValues", "taken"}
    assert min(found.values()) > 20  # and so every layer is reached
    assert sum(found.values()) == MUTANTS


@pytest.mark.parametrize("inputs", [extremes, lambda: mutants(3_000), golden])
def test_memory_follows_what_was_sent_and_not_what_was_declared(inputs):
    assert held_too_much(inputs()) == []
