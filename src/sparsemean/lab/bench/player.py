"""Whole rounds of one case: nodes encode, the server accepts and closes, nodes get receipts."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np

from sparsemean._types import Floats
from sparsemean.client import Client
from sparsemean.errors import DivergenceWarning
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.timing import Clock
from sparsemean.results import Estimate, Receipt
from sparsemean.server import Server

ENCODE, DECODE, TRIP = "encode", "server round", "round trip"
WHATS = (ENCODE, DECODE, TRIP)


def vectors_for(case: Case, free: int) -> Floats:
    """One vector for each node where they fit into an eighth of the memory, else as many; at least two.

    The rows are the same numbers, shifted: making billions of random ones would take longer than measuring.
    """
    rows = max(2, min(case.nodes, free // 8 // (4 * case.dim)))
    base = np.random.default_rng(0).standard_normal(case.dim, np.float32)
    vectors = np.empty((rows, case.dim), np.float32)
    for i in range(rows):
        cut = i * 997 % case.dim
        vectors[i, : case.dim - cut], vectors[i, case.dim - cut :] = base[cut:], base[:cut]
    return vectors


class Player:
    """One server and its nodes. In every round a node has another vector, so that lazy ones send something.

    ``estimate`` is that of the last round.
    """

    estimate: Estimate

    def __init__(self, case: Case, vectors: Floats) -> None:
        self.nodes, self.vectors = case.nodes, vectors
        self.server = Server(case.run)
        self.clients = [Client(case.run, str(i)) for i in range(case.nodes)]

    def encode(self) -> list[bytes]:
        """The payloads of the open round."""
        now, rows = self.server.round, len(self.vectors)
        plans = self.server.plans(client.node for client in self.clients)
        return [
            client.encode(self.vectors[(i + now) % rows], now, plans[client.node])
            for i, client in enumerate(self.clients)
        ]

    def decode(self, blobs: list[bytes]) -> list[Receipt]:
        """The whole round at the server: accept each (checksum, finite check), decode, close."""
        answers = self.server.accept_many(zip((client.node for client in self.clients), blobs, strict=True))
        receipts = [answer for _, answer in answers if isinstance(answer, Receipt)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)
            self.estimate = self.server.close_round()
        return receipts

    def deliver(self, receipts: list[Receipt]) -> None:
        """The nodes hear that their payloads arrived."""
        for client, receipt in zip(self.clients, receipts, strict=True):
            client.delivered(receipt)

    def clock(self, of: str = "") -> Clock:
        """One round: seconds to encode one vector, of the server's round, and of both for all nodes."""

        def clock() -> dict[str, float]:
            start = time.perf_counter()
            blobs = self.encode()
            encoded = time.perf_counter()
            receipts = self.decode(blobs)
            end = time.perf_counter()
            self.deliver(receipts)
            return {
                ENCODE + of: (encoded - start) / self.nodes,
                DECODE + of: end - encoded,
                TRIP + of: end - start,
            }

        return clock

    def peaks(self) -> dict[str, int]:
        """Bytes allocated at the worst moment beyond what was there before, of a server that knows its nodes.

        As Python's tracemalloc sees it, that is: all that Python and NumPy allocate, nothing else.
        """
        self.deliver(self.decode(self.encode()))
        blobs: list[bytes] = []
        first, now, plans = self.clients[0], self.server.round, self.server.plans(map(str, range(self.nodes)))
        one = _peak(lambda: blobs.append(first.encode(self.vectors[now % 2], now, plans[first.node])))
        blobs = self.encode()
        receipts: list[Receipt] = []
        server = _peak(lambda: receipts.extend(self.decode(blobs)))
        self.deliver(receipts)
        return {ENCODE: one, DECODE: server, TRIP: max(one, server)}


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
