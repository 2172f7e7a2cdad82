"""Rounds on several fronts without end, written down line by line; who kills any of the processes judges by the lines.

    python ray_load.py ADDRESS JOURNAL LINES

Nothing but the file of lines and the journal is left of it when it is killed. ``Judge`` reads both.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import ray

import sparsemean as sm
from sparsemean.integrations.ray import RayServer

NODES = [f"node-{i}" for i in range(16)]
RUN = sm.Run(sm.named("rand-k-temporal", k=0.05), dim=10_000, seed=3)
PART = 2  # payloads of a call, so that a round is many of them
LIMIT = 240.0  # seconds without a new line after which something hangs


@functools.cache
def payload(node: str, round: int) -> bytes:
    """That of this node in this round, whoever asks."""
    vector = np.random.default_rng([NODES.index(node), round]).normal(size=RUN.dim)
    return sm.Client(RUN, node).encode(vector, round)


def served(journal: Path, shards: int = 2) -> RayServer:
    """The server of the load."""
    return RayServer(RUN, shards=shards, journal=journal, fronts=2, timeout=120.0)


def ended(estimate: sm.Estimate) -> dict[str, Any]:
    """What is written down of a round."""
    return {
        "ended": estimate.round,
        "nodes": estimate.nodes,
        "mean": hashlib.sha256(estimate.mean.tobytes()).hexdigest(),
    }


def play(journal: Path, tell: Callable[..., None]) -> None:
    """Rounds in which all nodes send, each part to one front and then another, until this process is killed."""
    with served(journal) as server:
        last = server.last_estimate()
        tell(opened=server.round, came=server.came, **({} if last is None else ended(last)))
        while True:
            round = server.round
            actors = {"front": server.fronts, "shard": server._sharded.shards.actors}
            pids = {name: ray.get([each.__ray_call__.remote(_pid) for each in them]) for name, them in actors.items()}
            tell(pids={**pids, "coordinator": [os.getpid()]})
            parts = [NODES[i : i + PART] for i in range(0, len(NODES), PART)]
            while parts:
                calls = []
                for i, part in enumerate(parts):
                    front = server.fronts[(i + round) % len(server.fronts)]
                    calls.append(front.accept_many.remote({node: payload(node, round) for node in part}))
                parts = []
                for call in calls:
                    answers = ray.get(call)
                    tell(round=round, receipts=[node for node, answer in answers if isinstance(answer, sm.Receipt)])
                    if again := [node for node, answer in answers if not isinstance(answer, sm.Receipt)]:
                        tell(refused=[str(answer) for _, answer in answers if not isinstance(answer, sm.Receipt)])
                        parts.append(again)
            tell(**ended(server.close_round(minimum=len(NODES))))


def _pid(_: object) -> int:
    return os.getpid()


class Judge:
    """Starts the load, kills parts of it, and holds the lines against a Server."""

    def __init__(self, address: str, folder: Path, seed: int = 0) -> None:
        self.journal, self.lines = folder / "journal", folder / "lines"
        self.command = [sys.executable, __file__, address, str(self.journal), str(self.lines)]
        self.chance = random.Random(seed)
        self.kills = dict.fromkeys(("front", "shard", "coordinator"), 0)
        self.wrong: list[str] = []
        self.read = 0
        self.pids: dict[str, list[int]] = {}
        self.receipts: dict[int, set[str]] = {}
        self.rounds: dict[int, dict[str, Any]] = {}
        self.plain = sm.Server(RUN)
        self.lines.touch()
        self.load = subprocess.Popen(self.command)

    def look(self, until: Callable[[], bool]) -> None:
        """Judge new lines until this holds."""
        latest = time.monotonic() + LIMIT
        while True:
            with self.lines.open() as file:
                file.seek(self.read)
                new = file.read()
            whole = new[: new.rfind("\n") + 1]
            self.read += len(whole)
            for line in whole.splitlines():
                self.judge(json.loads(line))
                latest = time.monotonic() + LIMIT
            if until():
                return
            if time.monotonic() > latest:
                raise TimeoutError(f"no new line for {LIMIT:g} s, after kills {self.kills}")
            if self.load.poll() is not None:
                raise RuntimeError(f"the load ended by itself with {self.load.returncode}, after kills {self.kills}")
            time.sleep(0.01)

    def judge(self, line: dict[str, Any]) -> None:
        self.pids = line.get("pids", self.pids)
        if "receipts" in line:
            self.receipts.setdefault(line["round"], set()).update(line["receipts"])
        if "ended" in line:
            self.judge_round(line)
        if "opened" in line:
            if lost := self.receipts.get(line["opened"], set()) - set(line["came"]):
                self.wrong.append(f"round {line['opened']} has lost {sorted(lost)}")
            if unknown := {round for round in self.receipts if round < line["opened"]} - self.rounds.keys():
                self.wrong.append(f"rounds {sorted(unknown)} had receipts, and never ended")

    def judge_round(self, line: dict[str, Any]) -> None:
        round = line["ended"]
        if round in self.rounds:
            if self.rounds[round]["mean"] != line["mean"] or self.rounds[round]["nodes"] != line["nodes"]:
                self.wrong.append(f"round {round} ended twice, with other numbers")
            return
        self.rounds[round] = line
        if sorted(line["nodes"]) != sorted(NODES):
            self.wrong.append(f"round {round} has the nodes {line['nodes']}")
        if round != self.plain.round:
            self.wrong.append(f"round {round} ended, and {self.plain.round} was expected")
        self.plain.accept_many([(node, payload(node, self.plain.round)) for node in line["nodes"]])
        if ended(self.plain.close_round())["mean"] != line["mean"]:
            self.wrong.append(f"the mean of round {round} is not that of a Server")

    def kill(self, victim: str) -> None:
        """One process of this kind, somewhere in a round; the next round that ends shows what came of it."""
        rounds = len(self.rounds)
        self.look(lambda: len(self.rounds) > rounds)
        self.pids = {}
        self.look(lambda: victim in self.pids)
        time.sleep(self.chance.uniform(0.0, 0.3))
        os.kill(self.chance.choice(self.pids[victim]), signal.SIGKILL)
        self.kills[victim] += 1
        if victim == "coordinator":
            self.load.wait()
            self.load = subprocess.Popen(self.command)

    def end(self) -> dict[str, Any]:
        """Two more rounds, and what was found."""
        rounds = len(self.rounds)
        self.look(lambda: len(self.rounds) >= rounds + 2)
        self.stop()
        return {"kills": self.kills, "rounds": len(self.rounds), "wrong": self.wrong}

    def stop(self) -> None:
        """End the load."""
        self.load.kill()
        self.load.wait()


def main(address: str, journal: str, lines: str) -> None:
    ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    logging.getLogger("sparsemean").setLevel(logging.CRITICAL)
    with Path(lines).open("a") as file:

        def tell(**line: Any) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()

        play(Path(journal), tell)


if __name__ == "__main__":
    main(*sys.argv[1:])
