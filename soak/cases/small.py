"""Small runs whose payloads are encoded beforehand; servers are made and asked through public calls only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import sparsemean as sm
from sparsemean.errors import OutOfStep, SparseMeanError

DIM, NODES = 40, ("a", "b", "c", "d")
WEIGHTS = {"a": 1.0, "b": 0.5, "c": 2.0, "d": 1.0}
WHERE = "/dev/shm" if Path("/dev/shm").is_dir() else None
# One payload waits, a second one is folded into the totals together with it.
BATCH_BYTES = 60


def run_of(name: str) -> sm.Run:
    """A run of the scheme with this name, with vectors of two blocks."""
    return sm.Run(sm.named(name, k=0.25), DIM, seed=3, blocks=[DIM - 15, 15])


def server_of(run: sm.Run, folder: Path | None = None) -> sm.Server:
    """A server, with a journal in this folder or without one."""
    return sm.Server(run, journal=folder, batch_bytes=BATCH_BYTES)


@dataclass(frozen=True)
class Move:
    """One call of a server: ``accept``, ``accept_many``, ``close_round``, ``skip_round``, ``forget`` or ``close``."""

    kind: str
    payloads: tuple[tuple[str, bytes], ...] = ()
    node: str = ""

    def play(self, server: sm.Server) -> Any:
        """Make the call."""
        if self.kind == "accept":
            ((node, blob),) = self.payloads
            return server.accept(node, blob, WEIGHTS[node])
        if self.kind == "accept_many":
            return server.accept_many(self.payloads, WEIGHTS)
        if self.kind == "close_round":
            return server.close_round()
        if self.kind == "skip_round":
            return server.skip_round()
        if self.kind == "forget":
            return server.forget(self.node)
        return server.close()


def moves(run: sm.Run, script: Iterable[str]) -> Iterator[Move]:
    """The calls of a script, each encoded after those before it were played.

    "a" is accept of a payload of node a, "abc" accept_many of three payloads, "-a" forget of node a; other words are
    the names of calls.
    """
    server, clients = server_of(run), {node: sm.Client(run, node) for node in NODES}
    for word in script:
        if word in ("close_round", "skip_round", "close"):
            move = Move(word)
        elif word.startswith("-"):
            move = Move("forget", node=word[1:])
        else:
            payloads = tuple((node, _submitted(server, clients[node])) for node in word)
            yield Move("accept" if len(word) == 1 else "accept_many", payloads)
            continue
        if word != "close":
            move.play(server)
        yield move


def _submitted(server: sm.Server, client: sm.Client) -> bytes:
    """What the node sends until the server accepts it: a node that was forgotten begins afresh."""
    noise = np.random.default_rng((NODES.index(client.node), server.round)).normal(size=DIM)
    vector = np.sin(np.arange(DIM) + NODES.index(client.node)) + 0.3 * noise
    blob = client.encode(vector, server.round)
    try:
        client.delivered(server.accept(client.node, blob, WEIGHTS[client.node]))
    except OutOfStep:
        client.reset()
        return _submitted(server, client)
    return blob


def plain(thing: object) -> object:
    """Estimates and receipts as values that are equal where the originals are equal to the bit."""
    if isinstance(thing, np.ndarray):
        return (str(thing.dtype), thing.shape, thing.tobytes())
    if isinstance(thing, float):
        return thing.hex()
    if isinstance(thing, list | tuple):
        return tuple(plain(item) for item in thing)
    if isinstance(thing, SparseMeanError):
        return f"{type(thing).__name__}: {thing}"
    if isinstance(thing, sm.Estimate | sm.Receipt | sm.Correlation):
        return (type(thing).__name__, *(plain(getattr(thing, field.name)) for field in fields(thing)))
    return thing
