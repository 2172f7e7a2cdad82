"""How many payloads a second several fronts and shards take, and what a payload costs in each kind of process.

    python scripts/measure_ray_fronts.py [--rounds 3] [--payloads 1024] [--fronts 0 1 2 4] [--shards 1 2 4] [--journal]

For docs/ray.md. Seconds of processor time are those of the processes; rates are of this machine, with whatever else it
does. It starts a Ray of its own, which listens on all addresses: run it where nobody else can reach it.
"""

from __future__ import annotations

import argparse
import logging
import pickle
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import ray

import sparsemean as sm
from sparsemean.integrations.ray import RayServer
from sparsemean.integrations.ray.offers import Delivered, Offer
from sparsemean.integrations.ray.pieces import pieces
from sparsemean.integrations.ray.ranges import Sharding
from sparsemean.integrations.ray.round_end import RoundEnd
from sparsemean.integrations.ray.sequencer import Sequencer
from sparsemean.integrations.ray.shard import Shard
from sparsemean.payload import Part, Payload
from sparsemean.server.local import Entry
from sparsemean.server.roster import Acceptance


def processor_time(_: object) -> float:
    return time.process_time()


def spent(actors: Any) -> float:
    times: list[float] = ray.get([actor.__ray_call__.remote(processor_time) for actor in actors])
    return sum(times)


def played(
    run: sm.Run, blobs: dict[int, dict[str, bytes]], call: int, fronts: int, shards: int, journal: Path | None
) -> list[tuple[float, float, float, float]]:
    """Of each round: payloads a second, and microseconds of processor time a payload here, in fronts and in shards.

    Payloads come in calls of so many.
    """
    found = []
    with RayServer(run, shards=shards, fronts=fronts, journal=journal) as server:
        for round, payloads in blobs.items():
            pairs, actors = list(payloads.items()), server._sharded.shards.actors
            parts = [dict(pairs[i : i + call]) for i in range(0, len(pairs), call)]
            stored = [ray.put(part) for part in parts] if fronts else []
            before = time.process_time(), spent(server.fronts), spent(actors)
            started = time.perf_counter()
            if fronts:
                made = [server.fronts[i % fronts].accept_many.remote(part) for i, part in enumerate(stored)]
                answers = [answer for each in made for answer in ray.get(each)]
            else:
                answers = [answer for part in parts for answer in server.accept_many(part)]
            seconds = time.perf_counter() - started
            after = time.process_time(), spent(server.fronts), spent(actors)
            assert all(isinstance(answer, sm.Receipt) for _, answer in answers)
            here, there, shard = ((b - a) / len(pairs) * 1e6 for a, b in zip(before, after, strict=True))
            found.append((len(pairs) / seconds, here, there, shard))
            server.skip_round()
            assert round == server.round - 1
    return found


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    started = time.process_time()
    yield
    seconds[name] = time.process_time() - started


def of_a_billion(shards: int, payloads: int = 256) -> str:
    """What a payload of k = 10⁴ of d = 10⁹ costs: in a front, on its way to one of so many shards, and in that one."""
    run = sm.Run(sm.named("rand-k-temporal-shared-stable", k=10_000), dim=10**9)
    made = Sharding(run, shards, "drop", 0, 1 << 24, None, True, None)
    shard, sequencer, (layout,) = Shard(made, 1), Sequencer(shards), run.layouts[0]
    for batch in range(2):  # the first loads compiled loops, and does not count
        entries: list[Entry] = []
        seconds: dict[str, float] = {}
        for number in range(payloads):
            receipt = sm.Receipt(f"node-{batch}-{number}", 0, 32 * "0")
            (chosen,) = layout.drawn(run.key(receipt.node, 0, None), run.dim)
            part = Part(chosen.where, np.ones(10_000, np.float32), chosen.scale, 0.0)
            entries.append(Entry(Acceptance(receipt, np.ones(1), 40_064, 0), False, Payload((part,))))
        with timed(seconds, "cut"):
            cut = [pieces(run, made.bounds, entry, None) for entry in entries]
        with timed(seconds, "written for a shard"):
            written = pickle.dumps([row[1] for row in cut], protocol=5)
        with timed(seconds, "read by it"):
            column = pickle.loads(written)
        with timed(seconds, "checked and drawn"):
            shard.accept(batch * payloads - 1, 0, column)
        with timed(seconds, "added"):
            shard._ready()._fold()
        offers = [Offer(entry.acceptance, 0, 0, None) for entry in entries]
        with timed(seconds, "sequenced"):
            told = pickle.loads(pickle.dumps(offers, protocol=5))
            ticket = sequencer.issue(0, 0, told)
            sequencer.note(Delivered(ticket, [(batch + 1) * payloads - 1] * shards))
            assert len(sequencer.settled()) == 1
    last = 2 * payloads - 1
    with timed(seconds, "end"):
        shard.end(RoundEnd(last, "close", shard.summary(last), 10**7))
    end = seconds.pop("end")
    each = ", ".join(f"{name} {spent / payloads * 1e6:.0f}" for name, spent in seconds.items())
    arrays = shard.usage().arrays
    size = f"{len(written) // payloads} bytes to a shard, which has arrays of {arrays / 1e9:.2f} GB"
    return f"d = 10⁹, {shards} shards, µs a payload: {each}; {size}; {end:.1f} s to end the round"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--payloads", type=int, default=1024)
    parser.add_argument("--call", type=int, default=64, help="payloads of a call")
    parser.add_argument("--fronts", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--journal", action="store_true")
    told = parser.parse_args()
    run = sm.Run(sm.named("rand-k-temporal-shared-stable", k=10_000), dim=1 << 20)
    vector = np.random.default_rng(0).normal(size=run.dim).astype(np.float32)
    nodes = [f"node-{i}" for i in range(told.payloads)]
    rounds = range(told.rounds + 1)  # the first loads compiled loops, and does not count
    blobs = {round: {node: sm.Client(run, node).encode(vector, round) for node in nodes} for round in rounds}
    print(f"{told.payloads} payloads of {len(blobs[0][nodes[0]])} bytes a round, d = {run.dim}; best of {told.rounds}")
    print("fronts shards  payloads/s   µs a payload: here  fronts  shards")
    ray.init(num_cpus=16, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    for fronts in told.fronts:
        for shards in told.shards:
            with tempfile.TemporaryDirectory() as folder:
                journal = Path(folder) / "journal" if told.journal else None
                found = played(run, blobs, told.call, fronts, shards, journal)[1:]
            rate = max(each[0] for each in found)
            here, there, shard = (min(each[i] for each in found) for i in (1, 2, 3))
            print(f"{fronts:6} {shards:6} {rate:11.0f} {here:19.0f} {there:7.0f} {shard:7.0f}", flush=True)
    ray.shutdown()
    for shards in (16, 64):
        print(of_a_billion(shards), flush=True)


if __name__ == "__main__":
    main()
