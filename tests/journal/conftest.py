"""A small run with memory, its payloads, and servers of it that are closed in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm

DIM, NODES = 40, ("a", "b", "c")


@pytest.fixture
def run() -> sm.Run:
    return sm.Run(sm.named("rand-k-temporal", k=0.25), DIM, seed=3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
def opened(run: sm.Run, folder: Path) -> Iterator[Callable[..., sm.Server]]:
    """Opens servers, of ``run`` and with ``folder`` unless told otherwise."""
    servers: list[sm.Server] = []

    def make(run: sm.Run = run, journal: Path = folder, **options: Any) -> sm.Server:
        servers.append(sm.Server(run, journal=journal, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def payload() -> Callable[..., bytes]:
    """What a node sends in a round."""

    def make(run: sm.Run, node: str, round: int) -> bytes:
        vector = np.random.default_rng((ord(node[0]), round)).normal(size=run.dim)
        return sm.Client(run, node).encode(vector, round)

    return make


@pytest.fixture
def play(payload: Callable[..., bytes]) -> Callable[..., list[sm.Estimate]]:
    """Plays whole rounds."""

    def rounds(server: sm.Server, count: int, nodes: tuple[str, ...] = NODES) -> list[sm.Estimate]:
        found = []
        for _ in range(count):
            for node in nodes:
                server.accept(node, payload(server.run, node, server.round))
            found.append(server.close_round())
        return found

    return rounds
