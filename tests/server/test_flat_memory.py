"""A round's memory does not depend on how many nodes come: totals of the vector's length, and one batch."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName, ValueName

DIM, K = 500_000, 5_000  # long enough that powers are kept at one tile in eight; draws of more than 4,096 are not kept
BATCH = 1 << 20
RETURNED = 12 * DIM  # the mean in double precision and the counts, which the estimate holds
A_NODE = 1_500  # bytes that are remembered of each node of a round: its name, receipt and weight


@cache
def peak(scheme: SchemeName, values: ValueName, nodes: int) -> int:
    """Bytes at the worst moment of a round whose payloads come one by one, as tracemalloc sees them.

    That is all that Python and NumPy allocate. A first round in advance loads and compiles.
    """
    run = sm.Run(sm.named(scheme, k=K, values=values), DIM)
    vector = np.random.default_rng(0).standard_normal(DIM).astype(np.float32)
    sent = [sm.Client(run, str(i)).encode(vector, 0) for i in range(3)]
    server = sm.Server(run)
    server.accept_many((str(i), blob) for i, blob in enumerate(sent))
    server.close_round()

    def payloads() -> Iterator[tuple[str, bytes]]:
        for i in range(nodes):
            yield str(i), sm.Client(run, str(i)).encode(vector, 0)

    server = sm.Server(run, batch_bytes=BATCH)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        server.accept_many(payloads())
        estimate = server.close_round()
        assert len(estimate.nodes) == nodes
        assert estimate.mean.nbytes + estimate.counts.nbytes == RETURNED
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("scheme", ["rand-k-spatial-avg", "rand-k-spatial-adaptive"])
def test_a_spatial_round_takes_20_bytes_a_coordinate_and_a_batch_besides_what_it_returns(scheme: str) -> None:
    for nodes in (4, 100, 1_000):
        assert peak(scheme, "float32", nodes) - RETURNED <= 20 * DIM + BATCH + A_NODE * nodes


def test_and_it_is_flat_from_4_to_1000_nodes() -> None:
    """Of 20 MB in payloads one batch waits at a time; what is left to grow is the list of who came."""
    grown = peak("rand-k-spatial-avg", "float32", 1_000) - peak("rand-k-spatial-avg", "float32", 4)
    assert grown <= BATCH + A_NODE * 1_000
