"""Memories of more than one process may have, shared out among Ray actors with a cap each.

    pip install 'sparsemean[ray,server]'
    python examples/ray/beyond_one_process.py

Every node is remembered by itself (``rand-k-temporal``), which takes 4·n·d bytes, and its payload is held until the
round ends. By default a process may have three quarters of that. One ``Server`` with this cap refuses the nodes it has
no room for; a ``RayServer`` takes them all, with two shards or more.
``--address`` joins a cluster that runs already, where sparsemean is installed on every host.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import ray

import sparsemean as sm
from sparsemean.integrations.ray import RayServer

MB = 1e6
HEAD = "round  nodes  payloads MB  encode s  accept s  close s   true error  server says        shard MB   peak MB"


class Nodes:
    """Vectors that move slowly and have much in common; made anew when asked for, so that nobody holds all of them."""

    def __init__(self, run: sm.Run, nodes: int) -> None:
        self.clients = [sm.Client(run, f"node-{number}") for number in range(nodes)]
        self.common = np.random.default_rng(0).standard_normal(run.dim, np.float32)

    def vector(self, number: int, round: int) -> npt.NDArray[np.float32]:
        own = np.random.default_rng([number, 1]).standard_normal(self.common.size, np.float32)
        return self.common * np.float32(1 + 0.01 * round) + own * np.float32(0.5)

    def round(self, round: int) -> tuple[dict[str, bytes], npt.NDArray[np.float64]]:
        """All payloads, and the exact mean, which no server knows."""
        mean, payloads = np.zeros(self.common.size), {}
        for number, client in enumerate(self.clients):
            vector = self.vector(number, round)
            payloads[client.node] = client.encode(vector, round)
            mean += vector
        return payloads, mean / len(self.clients)


def refused_by_one(run: sm.Run, cap: int, payloads: dict[str, bytes]) -> int:
    """How many of the nodes one process with this cap has no room for."""
    answers = sm.Server(run, memory_bytes=cap).accept_many(payloads)
    return sum(isinstance(answer, sm.RoundFull) for _, answer in answers)


def play(server: RayServer, nodes: Nodes, rounds: int) -> None:
    """A line for each round."""
    print(HEAD)
    for round in range(rounds):
        begun = time.perf_counter()
        payloads, exact = nodes.round(round)
        encoded = time.perf_counter()
        answers = server.accept_many(payloads)
        taken = time.perf_counter()
        refused = [answer for _, answer in answers if isinstance(answer, sm.SparseMeanError)]
        if refused:
            sys.exit(
                f"The shards refused {len(refused)} of {len(answers)} nodes. {type(refused[0]).__name__}: {refused[0]} "
                "(here --cap), or take more --shards"
            )
        estimate = server.close_round()
        closed = time.perf_counter()
        usage = server.usage()
        off = math.sqrt(float(np.mean((estimate.mean - exact) ** 2)))
        says = "unknown" if estimate.error is None else f"{math.sqrt(max(estimate.error, 0.0) / exact.size):.4f}"
        print(
            f"{round:5}  {len(estimate.nodes):5}  {estimate.bytes / MB:11.1f}  {encoded - begun:8.1f}  "
            f"{taken - encoded:8.2f}  {closed - taken:7.2f}  {off:11.4f}  {says:>11}  "
            f"{max(each.arrays for each in usage) / MB:14.0f}  {max(each.peak for each in usage) / MB:8.0f}",
            flush=True,
        )


@contextmanager
def cluster(address: str | None, shards: int) -> Iterator[None]:
    """The cluster at that address, or one on this machine for as long as it is needed."""
    with nullcontext() if address else tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder:
        here: dict[str, Any] = {
            "include_dashboard": False,
            "object_store_memory": 200_000_000,
            "num_cpus": shards,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": folder,
        }
        ray.init(address, logging_level=logging.ERROR, log_to_driver=False, **({} if address else here))
        try:
            yield
        finally:
            ray.shutdown()


def compare(chosen: argparse.Namespace) -> None:
    """One process, then shards with the same cap each."""
    run = sm.Run(sm.named("rand-k-temporal", k=chosen.share), chosen.dim, seed=1)
    everything = chosen.nodes * (4 * chosen.dim + run.payload_bytes)
    cap = everything * 3 // 4 if chosen.cap is None else int(chosen.cap * MB)
    nodes = Nodes(run, chosen.nodes)
    refused = refused_by_one(run, cap, nodes.round(0)[0])
    print(
        f"{chosen.nodes} nodes × {chosen.dim} coordinates: {everything / MB:.3g} MB of memories and payloads, "
        f"and a cap of {cap / MB:.3g} MB for a process.\n"
        f"One Server has no room for {refused} of the nodes. {chosen.shards} shards:\n"
    )
    with cluster(chosen.address, chosen.shards):
        begun = time.perf_counter()
        with RayServer(run, shards=chosen.shards, memory_bytes=cap, journal=chosen.journal) as server:
            print(f"(shards ready in {time.perf_counter() - begun:.1f} s)")
            play(server, nodes, chosen.rounds)
    print(
        "\nErrors are root mean squares per coordinate. Shard MB are the arrays of the largest shard, peak MB\n"
        "the most that the process of one has taken, Ray and Python included."
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--nodes", type=int, default=64)
    options.add_argument("--dim", type=int, default=1 << 20)
    options.add_argument("--share", type=float, default=0.1, help="of the coordinates that a node sends")
    options.add_argument("--shards", type=int, default=4)
    options.add_argument("--rounds", type=int, default=4)
    options.add_argument("--cap", type=float, help="MB that one process may hold; by default three quarters of all")
    options.add_argument("--journal", help="a folder that makes rounds durable")
    options.add_argument("--address", help="of a cluster; without it Ray runs on this machine")
    try:
        compare(options.parse_args())
    except sm.SparseMeanError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
