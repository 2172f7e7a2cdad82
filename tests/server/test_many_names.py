"""New names in every round, more than there is room for: nothing grows, and those without room are told so.

python tests/server/test_many_names.py rand-k-temporal 100000 # the full size, with time and memory, in some minutes
"""

from __future__ import annotations

import gc
import logging
import re
import resource
import sys
import tempfile
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName
from sparsemean.schemes import scheme_name

DIM, ROUNDS, NAMES = 64, 20, 200
SCHEMES = ("rand-k-spatial-avg", "diana")  # other memories in rows are in tests/journal/test_limits.py
VECTOR = np.linspace(1.0, 2.0, DIM)
TRACED, MEASURED = 13, (16, 19)  # all that is held after round 16 was allocated since round 13


@dataclass
class Flood:
    """A server that hears from new names in every round, in odd rounds one by one and in even rounds at once."""

    server: sm.Server
    folder: Path | None
    answers: list[Counter[str]] = field(default_factory=list)
    files: list[int] = field(default_factory=list)
    reports: list[sm.RoundReport] = field(default_factory=list)

    def send(self, payloads: dict[str, bytes]) -> None:
        many = self.server.round % 2 == 0
        found = (answer for _, answer in self.server.accept_many(payloads)) if many else self._one_by_one(payloads)
        self.answers.append(Counter(type(answer).__name__ for answer in found))
        if self.folder is not None:
            self.files.append(sum(path.stat().st_size for path in self.folder.iterdir()))

    def _one_by_one(self, payloads: dict[str, bytes]) -> Iterator[sm.Receipt | Exception]:
        for node, blob in payloads.items():
            try:
                yield self.server.accept(node, blob)
            except Exception as error:  # which must be RoundFull
                yield error


def run_named(scheme: SchemeName) -> sm.Run:
    return sm.Run(sm.named(scheme, k=6), DIM, seed=3)


def node_bytes(run: sm.Run, **journal: Any) -> int:
    """What one node takes of ``memory_bytes``, as the server itself says."""
    with pytest.raises(sm.InvalidInput) as refused:
        sm.Server(run, memory_bytes=1, **journal)
    found = re.search(r"one node takes (\d+) bytes", str(refused.value))
    assert found is not None
    return int(found[1])


def begun(run: sm.Run, room: int, folder: Path | None) -> Flood:
    """A server that has room for so many nodes."""
    journal: dict[str, Any] = {} if folder is None else {"journal": folder, "durability": "round"}
    reports: list[sm.RoundReport] = []
    server = sm.Server(run, memory_bytes=room * node_bytes(run, **journal), on_round=[reports.append], **journal)
    return Flood(server, folder, reports=reports)


def payloads_of(run: sm.Run, round: int, names: int) -> dict[str, bytes]:
    nodes = (f"round-{round}-name-{i}" for i in range(names))
    return {node: sm.Client(run, node).encode(VECTOR, round) for node in nodes}


def resident() -> int:
    """Bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def play(run: sm.Run, floods: list[Flood], names: int) -> list[int]:
    """Twenty rounds of new names; the bytes that Python holds after those that are measured."""
    held = []
    try:
        for round in range(ROUNDS):
            if round == TRACED:
                tracemalloc.start()
            payloads = payloads_of(run, round, names)
            for flood in floods:
                flood.send(payloads)
                flood.server.close_round()
            del payloads
            if round in MEASURED:
                gc.collect()
                held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return held


@pytest.mark.parametrize("scheme", SCHEMES)
def test_new_names_without_end_fill_neither_memory_nor_disk(
    scheme: SchemeName, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "sparsemean")  # or pytest keeps what is logged
    run, room, folder = run_named(scheme), 3 * NAMES // 4, tmp_path / "j"
    floods = [begun(run, room, None), begun(run, room, folder)]
    before, after = play(run, floods, NAMES)
    # In three rounds each of the servers took 450 new nodes, whose names alone are 70 bytes each: 63,000 in all.
    assert after - before < 48_000
    for flood in floods:
        assert flood.answers == [Counter(Receipt=room, RoundFull=NAMES - room)] * ROUNDS
        assert [report.forgotten for report in flood.reports] == [0, *[room] * (ROUNDS - 1)]
    assert max(floods[1].files[15:]) <= 1.1 * max(floods[1].files[:15])
    digests = [flood.server.digest() for flood in floods]
    assert digests[0] == digests[1]
    floods[1].server.close()
    with sm.Server(run, journal=folder, memory_bytes=room * node_bytes(run, journal=folder)) as again:
        assert again.digest() == digests[0]
        for server in (floods[0].server, again):
            assert_comes_back_as_new(server, "round-0-name-0")


def assert_comes_back_as_new(server: sm.Server, node: str) -> None:
    """Nothing is known of the node, and its estimate is that of a server which never heard of anybody."""
    run, client, fresh = server.run, sm.Client(server.run, node), sm.Server(server.run, round=server.round)
    assert not np.any(server.expected(node))
    if run.scheme.encoder.facts.in_step:
        client.delivered(sm.Server(run).accept(node, client.encode(VECTOR, 0)))
        with pytest.raises(sm.OutOfStep):
            server.accept(node, client.encode(VECTOR, server.round))
        client.reset()
    blob = client.encode(VECTOR, server.round)
    for each in (server, fresh):
        each.accept(node, blob)
    np.testing.assert_allclose(server.close_round().mean, fresh.close_round().mean, rtol=0, atol=1e-9)


def full_size(scheme: SchemeName, names: int, rounds: int = ROUNDS) -> None:
    """Print what each round takes: seconds of the processor, the memory of the process, and the size of the folder."""
    run, room = run_named(scheme), 3 * names // 4
    for journal in (False, True):
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            flood = begun(run, room, Path(folder) / "j" if journal else None)
            stack.enter_context(flood.server)
            print(f"{scheme}, {names} names a round, room for {room}, {'with' if journal else 'without'} a journal")
            for round in range(rounds):
                payloads = payloads_of(run, round, names)
                started = time.process_time()
                flood.send(payloads)
                took = time.process_time() - started
                started = time.process_time()
                flood.server.close_round()
                closed = time.process_time() - started
                del payloads
                gc.collect()
                files = f"{flood.files[-1] / 1e6:8.1f} MB of files" if journal else ""
                print(
                    f"{round:3}: {took:6.2f} s accept, {closed:6.2f} s close, {resident() / 1e6:7.1f} MB now{files}",
                    flush=True,
                )
            assert flood.answers == [Counter(Receipt=room, RoundFull=names - room)] * rounds
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{peak * 1024 / 1e6:.1f} MB at most")


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # that nodes were forgotten
    full_size(scheme_name(sys.argv[1]), int(sys.argv[2]))
