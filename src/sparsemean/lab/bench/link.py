"""When does it pay? Encode, send and decode against sending whole float32 vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sparsemean.client import Client
from sparsemean.lab.bench.rows import Case
from sparsemean.lab.bench.timing import in_turn
from sparsemean.server import Server


@dataclass(frozen=True)
class Break:
    """Seconds of a round over a link of so many bits a second for each node, and the speed at which both are even.

    Nodes encode and send at the same time; the server decodes once all are there.
    """

    case: Case
    ours: float
    dense: float
    bytes_sent: int
    bytes_dense: int
    even_bits: float


def over_a_link(case: Case, bits: float, repeats: int = 5) -> Break:
    """One round of the case over the link.

    >>> over_a_link(Case("rand-k", 10_000, 0.1, 4), 1e6, repeats=1).bytes_sent
    4064
    """
    run = case.run
    vectors = np.random.default_rng(0).standard_normal((case.nodes, case.dim), np.float32)
    client = Client(run, "0")
    blobs = [Client(run, str(i)).encode(vector, 0) for i, vector in enumerate(vectors)]

    def decode() -> None:
        server = Server(run)
        for i, blob in enumerate(blobs):
            server.accept(str(i), blob)
        server.close_round()

    times = in_turn(
        {"encode": lambda: client.encode(vectors[0], 0), "decode": decode, "dense": lambda: vectors.mean(axis=0)},
        repeats,
    )
    work, dense = times["encode"].median + times["decode"].median, times["dense"].median
    sent, whole = max(map(len, blobs)), 4 * case.dim
    even = 8.0 * (whole - sent) / (work - dense) if work > dense else math.inf
    return Break(case, work + 8.0 * sent / bits, dense + 8.0 * whole / bits, sent, whole, even)
