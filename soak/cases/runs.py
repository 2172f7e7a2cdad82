"""Runs of a server whose every step is known beforehand, so that a server that died can be told where to go on."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import sparsemean as sm
from sparsemean.errors import OutOfStep
from sparsemean.journal import journal as journal_module
from sparsemean.server.fingerprint import fingerprint

DIM, NODES = 400, 8


@dataclass(frozen=True)
class Payload:
    """What a node submits."""

    node: str
    blob: bytes
    weight: float


@dataclass(frozen=True)
class Step:
    """``accept`` of one payload or, by as many threads, of several; ``close``, ``skip``, or ``forget`` of a node."""

    kind: str
    round: int
    payloads: tuple[Payload, ...] = ()
    node: str = ""

    def play(self, server: sm.Server) -> str:
        """Do it; what came of it, as a digest."""
        if self.kind == "close":
            return fingerprint(server.close_round())
        if self.kind == "skip":
            server.skip_round()
            return "skipped"
        if self.kind == "forget":
            server.forget(self.node)
            return "forgotten"
        if len(self.payloads) == 1:
            return fingerprint(_accepted(server, self.payloads[0]))
        threads = [threading.Thread(target=_accepted, args=(server, payload)) for payload in self.payloads]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return fingerprint([_accepted(server, payload) for payload in self.payloads])


def _accepted(server: sm.Server, payload: Payload) -> sm.Receipt:
    return server.accept(payload.node, payload.blob, payload.weight)


@dataclass(frozen=True)
class Case:
    """A scheme and how its server is set up; rows are synced after ``unsynced`` bytes, ``most`` nodes have room."""

    name: str
    scheme: sm.Scheme
    durability: str = "accept"
    threads: int = 1
    unsynced: int = 1 << 28
    most: int | None = None
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def run(self) -> sm.Run:
        """For vectors of two blocks."""
        return sm.Run(self.scheme, DIM, seed=11, blocks=[DIM - 150, 150])

    def server(self, folder: Path | None = None) -> sm.Server:
        """The server, with a journal in this folder or without one."""
        journal_module.UNSYNCED = self.unsynced
        server = sm.Server(self.run, journal=folder, durability=self.durability, **self.options)
        server._most_nodes = self.most or server._most_nodes
        return server


def cases() -> list[Case]:
    """Every kind of memory, both durabilities, a cap, rows that are synced all the time, several threads."""
    temporal = sm.named("rand-k-temporal", k=0.1)
    stale_hybrid = sm.Scheme(sm.RandK(0.1), sm.Spatial("learned"), sm.Hybrid(forget_after=3))
    return [
        Case("temporal, carry", temporal, unsynced=4000, options={"missing": "carry"}),
        Case("hybrid", sm.named("rand-k-hybrid", k=0.1), unsynced=0),
        Case("hybrid, stale", stale_hybrid, "round", unsynced=9000, options={"batch_bytes": 500}),
        Case("stale", sm.named("rand-k-temporal-stale", k=0.1, forget_after=3), "round", unsynced=6000),
        Case("window", sm.named("rand-k-temporal-window", k=0.1), options={"batch_bytes": 300}),
        Case("diana", sm.named("diana", k=0.1), "round", unsynced=0),
        Case("lag", sm.named("lag", moved=0.5), unsynced=20_000),
        Case("shared", sm.named("rand-k-temporal-shared-stable", k=0.3), "round"),
        Case("adaptive", sm.named("rand-k-spatial-adaptive", k=0.1)),
        Case("capped", temporal, "round", unsynced=3000, most=5),
        Case("threads", temporal, threads=6, unsynced=5000),
        Case("threads, hybrid", sm.named("rand-k-hybrid", k=0.1), "round", threads=6),
    ]


def steps(case: Case, rounds: int, seed: int) -> list[Step]:
    """A run of so many rounds: who comes, in which order and with which weight is drawn from the seed."""
    rng, server = np.random.default_rng(seed), case.server()
    clients = {f"node-{i}": sm.Client(case.run, f"node-{i}") for i in range(NODES)}
    vectors = {node: rng.normal(size=DIM) for node in clients}
    most = case.most or NODES
    found: list[Step] = []
    for round in range(rounds):
        if round and rng.random() < 0.25:
            found.append(Step("forget", round, node=str(rng.choice(list(clients)))))
            found[-1].play(server)
        present = [str(node) for node in rng.permutation(list(clients))[: rng.integers(1, most + 1)]]
        payloads = []
        for node in present:
            vectors[node] = vectors[node] + 0.3 * rng.normal(size=DIM)
            payloads.append(_submitted(server, clients[node], vectors[node], float(rng.choice([1.0, 0.5, 2.0]))))
        size = case.threads
        found += [Step("accept", round, tuple(payloads[at : at + size])) for at in range(0, len(payloads), size)]
        found.append(Step("skip" if rng.random() < 0.15 else "close", round))
        found[-1].play(server)
    return found


def _submitted(server: sm.Server, client: sm.Client, vector: np.ndarray[Any, Any], weight: float) -> Payload:
    """What the client sends until the server accepts it: a node that was forgotten begins afresh."""
    payload = Payload(client.node, client.encode(vector, server.round), weight)
    try:
        client.delivered(_accepted(server, payload))
    except OutOfStep:
        client.reset()
        return _submitted(server, client, vector, weight)
    return payload
