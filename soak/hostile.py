"""One hostile node against a server with a journal: what is remembered of the others does not change by a bit.

The hostile node knows the run, sends in its own name and round after round: damaged frames, sealed nonsense, extreme
values, what other nodes sent or would send, and frames of other rounds and runs. Every payload must be taken as its
own, or be refused with a PayloadError.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import hashlib
import random
import struct
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import sparsemean as sm
from sparsemean import codec

SCHEMES = ("rand-k-temporal", "rand-k-temporal-window", "rand-k-hybrid", "top-k-temporal", "diana", "lag")
DIM, HONEST, ROUNDS = 200, 8, 50
BAD = "mallory"


def sealed(head: bytes, body: bytes) -> bytes:
    """A frame whose length and checksum are right."""
    start = head[:48] + struct.pack("<Q", len(body)) + head[56:60]
    return start + struct.pack("<I", zlib.crc32(start + body)) + body


def remembered(server: sm.Server, nodes: list[str]) -> dict[str, str]:
    """A digest of the rows of each node, as the memory keeps them."""
    memory = server._rounds.estimator.memory
    tables = (
        [memory] if hasattr(memory, "_rows") else [each for each in vars(memory).values() if hasattr(each, "_rows")]
    )
    digests = {}
    for node in nodes:
        rows = [table._rows[node].arrays for table in tables if node in table._rows]
        joined = b"".join(array.tobytes() for arrays in rows for array in arrays.values())
        digests[node] = hashlib.blake2b(joined).hexdigest()
    return digests


class Mallory:
    """A node that knows the run and has seen what others sent."""

    def __init__(self, run: sm.Run, seen: list[bytes], seed: int) -> None:
        self.run, self.seen, self.rng = run, seen, random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        other = sm.Run(run.scheme, run.dim, run.seed + 1)
        self.foreign = [sm.Client(other, BAD).encode(np.ones(run.dim), round) for round in range(3)]

    def payloads(self, round: int, count: int) -> Iterator[bytes]:
        """A round's worth of bad ideas, and at times an honest frame, or nobody's bytes would ever be taken."""
        rng, dim = self.rng, self.run.dim
        for _ in range(count):
            vector = self.numbers.normal(size=dim) * 10.0 ** rng.randrange(-30, 30)
            honest = sm.Client(self.run, BAD).encode(vector, round)
            kind = rng.randrange(9)
            if kind == 0:
                yield honest
            elif kind == 1:  # what others sent, or would send
                yield rng.choice(
                    [*self.seen, sm.Client(self.run, f"node-{rng.randrange(HONEST)}").encode(vector, round)]
                )
            elif kind == 2:
                yield rng.choice(
                    [*self.foreign, sm.Client(self.run, BAD).encode(vector, max(0, round + rng.choice((-3, 2))))]
                )
            elif kind == 3:
                yield sealed(honest[:60], rng.randbytes(rng.randrange(300)))
            elif kind == 4:
                yield honest[: rng.randrange(len(honest))]
            elif kind == 5:  # another's name in the header, sealed
                theirs = codec.node_digest(f"node-{rng.randrange(HONEST)}")
                yield sealed(honest[:24] + theirs + honest[32:60], honest[64:])
            else:
                data = bytearray(honest)
                for _ in range(rng.randrange(1, 5)):
                    data[rng.randrange(4, len(data))] = rng.randrange(256)
                yield sealed(bytes(data[:60]), bytes(data[64:])) if kind < 8 else bytes(data)


def attack(name: str, payloads: int, folder: Path, seed: int) -> collections.Counter[str]:
    """How the payloads were answered."""
    run = sm.Run(sm.named(name, k=20), DIM, seed=seed)
    rng = np.random.default_rng(seed)
    nodes, answers = [f"node-{i}" for i in range(HONEST)], collections.Counter[str]()
    with sm.Server(run, journal=folder, durability="round") as server:
        clients, seen = {node: sm.Client(run, node) for node in nodes}, []
        for round in range(5):
            for node, client in clients.items():
                seen.append(client.encode(rng.normal(size=DIM), round))
                client.delivered(server.accept(node, seen[-1]))
            server.close_round()
        before, mallory = remembered(server, nodes), Mallory(run, seen, seed)
        while answers.total() < payloads:
            for blob in mallory.payloads(server.round, min(payloads // ROUNDS, payloads - answers.total())):
                try:
                    receipt = server.accept(BAD, blob)
                    answers["taken"] += 1
                    if receipt.node != BAD:
                        sys.exit("a receipt names another node")
                except sm.PayloadError as refused:
                    answers[type(refused).__name__] += 1
            ended = server.close_round().nodes if BAD in server._rounds.roster.accepted else server.skip_round() or ()
            if not set(ended) <= {BAD} or remembered(server, nodes) != before:
                sys.exit(f"{name}: what is remembered of another node changed in round {server.round}")
            print(f"\r{name}: {answers.total():,} of {payloads:,} payloads", end="")
            sys.stdout.flush()
    with sm.Server(run, journal=folder, durability="round") as server:  # and from the journal it is the same
        if remembered(server, nodes) != before:
            sys.exit(f"{name}: what is remembered of another node changed in the journal")
    print()
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--payloads", type=int, default=100_000, help="for each scheme")
    parser.add_argument("--schemes", nargs="*", default=SCHEMES)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began, tables = time.monotonic(), {}
    for name in args.schemes:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            tables[name] = attack(name, args.payloads, folder, args.seed)
    kinds = sorted(set().union(*tables.values()))
    print(f"{'':24}" + "".join(f"{kind:>20}" for kind in kinds))
    for name, answers in tables.items():
        print(f"{name:24}" + "".join(f"{answers[kind]:20,}" for kind in kinds))
    print(f"no other node's memory changed; {time.monotonic() - began:,.0f} s")


if __name__ == "__main__":
    main()
