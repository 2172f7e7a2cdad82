"""accept and close_round from asyncio, through threads: cancelled tasks, payloads twice or in conflict, and Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName

DIM, NODES, ROUNDS, WAIT = 300, 200, 3, 600.0
NAMES = [f"node-{i}" for i in range(NODES)]
EXPECTED = (sm.ConflictingPayload, sm.WrongRound, sm.OutOfStep)  # what may come back for a payload
Answer = sm.Receipt | BaseException


def run_named(scheme: SchemeName) -> sm.Run:
    return sm.Run(sm.named(scheme, k=30), DIM, seed=5)


def vector(node: str, round: int) -> Any:
    return np.cos(np.arange(DIM) * (1 + round) / 7.0) + NAMES.index(node) / NODES


def weight(node: str) -> float:
    return 1.0 + NAMES.index(node) % 3


class Traffic:
    """One round of nodes that all send at once; what the server took is told by its receipts and its estimate."""

    def __init__(self, server: sm.Server, clients: dict[str, sm.Client], pool: ThreadPoolExecutor) -> None:
        self.server, self.clients, self.pool = server, clients, pool
        self.round = server.round
        self.sent: dict[str, dict[str, bytes]] = {}  # by node, and by the digest in the receipt
        self.receipts: dict[str, sm.Receipt] = {}

    async def accept(self, node: str, blob: bytes) -> sm.Receipt:
        loop = asyncio.get_running_loop()
        if NAMES.index(node) % 2:
            receipt = await loop.run_in_executor(self.pool, self.server.accept, node, blob, weight(node))
        else:
            receipt = await asyncio.to_thread(self.server.accept, node, blob, weight(node))
        assert isinstance(receipt, sm.Receipt)
        assert (receipt.node, receipt.round) == (node, self.round)
        self.sent.setdefault(node, {})[receipt.digest] = blob
        self.receipts[node] = receipt
        return receipt

    async def send(self, node: str) -> sm.Receipt:
        """As a node does: begin afresh where the server knows another state, which a cancelled task may cause."""
        client = self.clients[node]
        try:
            receipt = await self.accept(node, client.encode(vector(node, self.round), self.round))
        except sm.OutOfStep:
            client.reset()
            receipt = await self.accept(node, client.encode(vector(node, self.round), self.round))
        client.delivered(receipt)
        return receipt

    async def send_again(self, node: str) -> sm.Receipt:
        first = await self.send(node)
        again = await asyncio.gather(*(self.accept(node, self.sent[node][first.digest]) for _ in range(3)))
        assert set(again) == {first}
        return first

    async def send_in_conflict(self, node: str) -> Answer:
        """Two payloads of a node that keeps no state: one of them counts."""
        other = sm.Client(self.server.run, node).encode(-vector(node, self.round), self.round)
        answers = await asyncio.gather(self.send(node), self.accept(node, other), return_exceptions=True)
        taken = [answer for answer in answers if isinstance(answer, sm.Receipt)]
        refused = [answer for answer in answers if isinstance(answer, EXPECTED)]
        assert len(taken) <= 1  # none where the round closed before they came
        assert len(taken) + len(refused) == 2
        return [*taken, *refused][0]

    async def send_and_cancel(self, node: str, chance: random.Random) -> Answer:
        """Nobody knows whether it was taken; some ask, by sending it once more."""
        client = self.clients[node]
        blob = client.encode(vector(node, self.round), self.round)
        task = asyncio.create_task(self.accept(node, blob))
        await asyncio.sleep(chance.random() * 0.02)
        task.cancel()
        (answer,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(answer, (sm.Receipt, asyncio.CancelledError, *EXPECTED))
        self.sent.setdefault(node, {})[""] = blob
        return await self.send(node) if chance.random() < 0.5 else answer

    async def play(self, chance: random.Random, conflicts: bool) -> sm.Estimate:
        """The estimate; a thread closes the round as soon as nine of ten have come, whoever they are."""
        kinds: dict[str, Callable[[str], Any]] = {}
        for node in chance.sample(NAMES, NODES):
            ways = [self.send, self.send_again, self.send_in_conflict if conflicts else self.send]
            kinds[node] = ways[len(kinds) % 3]
        cancelled = chance.sample(NAMES, NODES // 10)
        for node in cancelled:
            kinds[node] = lambda node: self.send_and_cancel(node, chance)
        closing = asyncio.create_task(
            asyncio.to_thread(self.server.close_round, 1, NODES - len(cancelled), WAIT),
        )
        answers = await asyncio.gather(*(send(node) for node, send in kinds.items()), return_exceptions=True)
        for answer in answers:
            assert isinstance(answer, (sm.Receipt, asyncio.CancelledError, *EXPECTED)), answer
        return await closing

    def replay(self, plain: sm.Server, estimate: sm.Estimate) -> sm.Estimate:
        """What a server makes of the same payloads, one after the other in the order they were taken."""
        assert set(self.receipts) <= set(estimate.nodes)
        for node in estimate.nodes:
            digest = self.receipts[node].digest if node in self.receipts else ""
            plain.accept(node, self.sent[node][digest], weight(node))
        return plain.close_round()


@pytest.mark.parametrize(
    ("scheme", "journal"),
    [
        ("rand-k-spatial-avg", None),
        ("rand-k-temporal", "accept"),
        ("rand-k-temporal", "round"),
        ("diana", None),
        ("diana", "round"),
    ],
)
def test_estimates_are_those_of_payloads_taken_one_after_the_other(
    scheme: SchemeName, journal: str | None, tmp_path: Path
):
    run, chance = run_named(scheme), random.Random(1)
    options: dict[str, Any] = {} if journal is None else {"journal": tmp_path / "j", "durability": journal}
    plain, clients = sm.Server(run), {node: sm.Client(run, node) for node in NAMES}

    async def main() -> None:
        with sm.Server(run, **options) as server, ThreadPoolExecutor(16) as pool:
            for _ in range(ROUNDS):
                traffic = Traffic(server, clients, pool)
                estimate = await asyncio.wait_for(traffic.play(chance, conflicts=scheme != "diana"), 2 * WAIT)
                assert len(estimate.nodes) >= NODES - NODES // 10
                expected = traffic.replay(plain, estimate)
                assert estimate.mean.tobytes() == expected.mean.tobytes()
                assert estimate.counts.tobytes() == expected.counts.tobytes()
                assert (estimate.nodes, estimate.bytes) == (expected.nodes, expected.bytes)
                assert (estimate.error, estimate.error_se) == (expected.error, expected.error_se)
            await asyncio.get_running_loop().shutdown_default_executor()  # cancelled tasks leave threads behind
            pool.shutdown()
            for node in list(
                server._rounds.roster.accepted
            ):  # none: a payload of a round that is over cannot be in the next
                pytest.fail(f"{node} is in a round that nobody sent for")
            assert server.digest() == plain.digest()

    asyncio.run(main())
    if journal is not None:
        with sm.Server(run, **options) as server:
            assert server.digest() == plain.digest()


def program(folder: str, notes: str, manner: str) -> None:
    """Rounds without end, until Ctrl-C. Each receipt and each estimate is noted as soon as there is one."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell leaves it ignored
    run = run_named("rand-k-temporal")
    clients = {node: sm.Client(run, node) for node in NAMES}
    journal: dict[str, Any] = {} if manner == "memory" else {"journal": folder}
    server = sm.Server(run, **journal)
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def accept(node: str, blob: bytes) -> None:
        receipt = server.accept(node, blob, weight(node))
        os.write(file, json.dumps(["took", receipt.round, receipt.node]).encode() + b"\n")

    def close() -> None:
        estimate = server.close_round()
        os.write(file, json.dumps(["closed", estimate.round, list(estimate.nodes)]).encode() + b"\n")

    async def main() -> None:
        loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(16) if manner == "at once" else None
        while server.round < 1000:
            blobs = {node: client.encode(vector(node, server.round), server.round) for node, client in clients.items()}
            await asyncio.gather(*(loop.run_in_executor(pool, accept, node, blob) for node, blob in blobs.items()))
            await loop.run_in_executor(pool, close)

    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        if manner == "at once":
            os._exit(7)  # with threads in the middle of whatever they do
        if manner == "memory":
            check(server, notes_in(Path(notes)))
        server.close()
        sys.exit(7)


def notes_in(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def check(server: sm.Server, notes: Iterable[Any]) -> None:
    """The state is that of the rounds that ended and the payloads that were taken, nothing more and nothing less."""
    run, notes = server.run, list(notes)
    plain, ended = sm.Server(run), {round: nodes for what, round, nodes in notes if what == "closed"}
    last = server.last_estimate()
    if last is not None:
        ended.setdefault(last.round, list(last.nodes))  # which nobody may have been told
    assert sorted(ended) == list(range(server.round))
    mean = None
    for round in sorted(ended):
        assert {node for what, of, node in notes if (what, of) == ("took", round)} <= set(ended[round])
        take(plain, ended[round])
        mean = plain.close_round().mean
    if last is not None and mean is not None:
        assert last.mean.tobytes() == mean.tobytes()
    taken = list(server._rounds.roster.accepted)
    assert {node for what, of, node in notes if (what, of) == ("took", server.round)} <= set(taken)
    take(plain, taken)
    assert server.digest() == plain.digest()
    absent = [node for node in NAMES if node not in taken]
    for each in (server, plain):
        take(each, absent)
    assert server.close_round().mean.tobytes() == plain.close_round().mean.tobytes()


def take(server: sm.Server, nodes: Iterable[str]) -> None:
    for node in nodes:
        blob = sm.Client(server.run, node).encode(vector(node, server.round), server.round)
        assert isinstance(server.accept(node, blob, weight(node)), sm.Receipt)


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize(
    ("manner", "notes"),  # of 201 a round
    [
        ("journal", 1),
        ("journal", 260),
        ("at once", 150),
        ("memory", 260),
    ],
)
def test_after_ctrl_c_the_state_is_that_before_or_after_each_call(manner: str, notes: int, tmp_path: Path) -> None:
    folder, noted = tmp_path / "j", tmp_path / "notes"
    command = [sys.executable, __file__, str(folder), str(noted), manner]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as child:
        try:
            latest = time.monotonic() + WAIT
            while (not noted.exists() or noted.read_bytes().count(b"\n") < notes) and time.monotonic() < latest:
                assert child.poll() is None, child.communicate()[1]
                time.sleep(0.001)
            child.send_signal(signal.SIGINT)
            _, said = child.communicate(timeout=WAIT)
        finally:
            child.kill()
    assert child.returncode == 7, said
    # asyncio may complain of a future that it has just cancelled, and that "returned NoneType".
    told = said.replace("returned NoneType", "")
    assert not any(word in told for word in ("BrokenServer", "AssertionError", "None")), said
    found = notes_in(noted)
    assert len(found) >= notes, f"{len(found)} of {notes} notes after {WAIT:g} s"
    if manner != "memory":
        with sm.Server(run_named("rand-k-temporal"), journal=folder) as server:
            check(server, found)


if __name__ == "__main__":
    program(*sys.argv[1:])
