"""Many nodes with memory, some of whom come each round: how long a round takes, and whether memory and files stay flat.

The server runs with a journal and durability "round". Each round draws its nodes at random, so almost all of them are
others than the round before: the worst case for the sums of the memory. Encoding is not counted, since nodes do it.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import sparsemean as sm


def resident() -> float:
    """Megabytes of this process in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def held(folder: Path) -> tuple[int, float]:
    """Files in the journal, and their megabytes on the disk."""
    sizes = [path.stat().st_blocks * 512 for path in folder.iterdir()]
    return len(sizes), sum(sizes) / 1e6


class Nodes:
    """A common vector that wanders, and each node's own difference from it."""

    def __init__(self, run: sm.Run, number: int) -> None:
        self.run, self.number, self.rng = run, number, np.random.default_rng(5)
        self.common, self.own = self.rng.normal(size=run.dim), self.rng.normal(size=2 * run.dim)

    def payloads(self, round: int, come: int) -> dict[str, bytes]:
        """What those who come this round send."""
        self.common += 0.1 * self.rng.normal(size=self.run.dim)
        sent = {}
        for node in self.rng.choice(self.number, come, replace=False).tolist():
            at = node % self.run.dim
            vector = (self.common + 0.3 * self.own[at : at + self.run.dim]).astype(np.float32)
            sent[f"node-{node}"] = sm.Client(self.run, f"node-{node}").encode(vector, round)
        return sent


def fill(server: sm.Server, nodes: Nodes, come: int) -> None:
    """Let every node come once, so that all rows exist."""
    for start in range(0, nodes.number, come):
        vector = nodes.common.astype(np.float32)
        names = [f"node-{node}" for node in range(start, min(start + come, nodes.number))]
        server.accept_many({name: sm.Client(nodes.run, name).encode(vector, server.round) for name in names})
        server.close_round()
        print(f"\rfilling: {start + come:,} of {nodes.number:,} nodes, {resident():,.0f} MB resident", end="")
        sys.stdout.flush()
    print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheme", default="rand-k-temporal")
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--come", type=int, default=1_000)
    parser.add_argument("--dim", type=int, default=100_000)
    parser.add_argument("-k", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=2_000)
    parser.add_argument("--memory-bytes", type=int, default=1 << 37)
    parser.add_argument("--folder", type=Path, help="where the journal goes; a temporary folder by default")
    parser.add_argument("--seconds", type=float, help="fail if the median round takes longer")
    parser.add_argument("--resident", type=float, help="fail if more megabytes are ever resident")
    args = parser.parse_args()
    run = sm.Run(sm.named(args.scheme, k=args.k), args.dim)
    forgotten = 0

    def counted(report: sm.RoundReport) -> None:
        nonlocal forgotten
        forgotten += report.forgotten

    with contextlib.ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        options = {"journal": folder, "durability": "round", "memory_bytes": args.memory_bytes}
        server = stack.enter_context(sm.Server(run, on_round=[counted], **options))
        nodes = Nodes(run, args.nodes)
        fill(server, nodes, args.come)
        accepting, closing, working, memory, files, disk = [], [], [], [], [], []
        for number in range(args.rounds):
            payloads = nodes.payloads(server.round, args.come)
            began, worked = time.perf_counter(), time.process_time()
            answers = server.accept_many(payloads)
            taken = time.perf_counter()
            server.close_round(minimum=args.come)
            accepting.append(taken - began)
            closing.append(time.perf_counter() - taken)
            working.append(time.process_time() - worked)
            if not all(isinstance(answer, sm.Receipt) for _, answer in answers):
                sys.exit("an honest payload was refused")
            count, megabytes = held(folder)
            for series, value in ((memory, resident()), (files, count), (disk, megabytes)):
                series.append(value)
            print(
                f"\rround {number + 1:,} of {args.rounds:,}: {accepting[-1]:.2f} + {closing[-1]:.2f} s, "
                f"{memory[-1]:,.0f} MB resident, {count} files, {megabytes:,.0f} MB on disk   ",
                end="",
            )
            sys.stdout.flush()
    print()
    seconds = np.array(accepting) + closing
    for name, series, digits in (
        ("round, s", seconds, 2),
        ("accept, s", np.array(accepting), 2),
        ("close, s", np.array(closing), 2),
        ("CPU, s", np.array(working), 2),
        ("resident, MB", np.array(memory), 0),
        ("files", np.array(files), 0),
        ("disk, MB", np.array(disk), 0),
    ):
        tenth = max(1, len(series) // 10)
        parts = (np.median(series[:tenth]), np.median(series), np.median(series[-tenth:]), np.max(series))
        print(f"{name:14}" + "".join(f"{part:14,.{digits}f}" for part in parts))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print("(first tenth, median, last tenth, largest)")
    print(f"peak within rounds {peak:,.0f} MB resident; {forgotten:,} nodes forgotten; {server.round:,} rounds")
    if args.seconds is not None and np.median(seconds) > args.seconds:
        sys.exit(f"the median round took more than {args.seconds} s")
    if args.resident is not None and max(memory) > args.resident:
        sys.exit(f"more than {args.resident} MB were resident after a round")


if __name__ == "__main__":
    main()
