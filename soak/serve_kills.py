"""A service is killed under load again and again: no receipt is broken, and the means are those of a run in peace.

    python soak/serve_kills.py [--kills 100] [--seed 0]

Nodes keep state and must stay in step; at a quarter of the kills a node begins anew too, from its file. Every node
checks the mean of every round against the same rounds played in one process.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "integrations" / "http"))
from serving import Service, serving  # type: ignore[import-not-found]

import sparsemean as sm
from sparsemean.integrations.http import HttpNode

NODES = ("a", "b", "c", "d", "e")
DIM = 500
SILENCE = 300.0  # seconds without any receipt after which something was lost


class Load:
    """Nodes in threads, which check what they hear."""

    def __init__(self, service: Service, run: sm.Run, folder: Path, seed: int) -> None:
        self.service, self.run, self.folder, self.seed = service, run, folder, seed
        self.expected: list[np.ndarray] = []
        self.server, self.clients = sm.Server(run), {node: sm.Client(run, node) for node in NODES}
        self.lock, self.over = threading.Lock(), threading.Event()
        self.failure: BaseException | None = None
        self.rounds, self.last, self.reborn = 0, time.monotonic(), dict.fromkeys(NODES, False)

    def vector(self, node: str, t: int) -> np.ndarray:
        rng = np.random.default_rng([self.seed, t // 7])
        own = np.random.default_rng([self.seed, NODES.index(node), t])
        return rng.normal(size=DIM) + 0.1 * own.normal(size=DIM)

    def mean(self, t: int) -> np.ndarray:
        """That of a run in peace."""
        with self.lock:
            while len(self.expected) <= t:
                now = len(self.expected)
                for node, plan in self.server.plans(NODES).items():
                    client = self.clients[node]
                    client.delivered(self.server.accept(node, client.encode(self.vector(node, now), now, plan)))
                self.expected.append(self.server.close_round().mean)
            return self.expected[t]

    def play(self, name: str) -> None:
        try:
            t, node = 0, self.node(name)
            while not self.over.is_set():
                if self.reborn[name]:
                    self.reborn[name] = False
                    node.close()
                    node = self.node(name)
                node.send(self.vector(name, t), t)
                heard = node.mean(t)
                assert heard is not None
                assert heard.round == t, (heard.round, t)
                np.testing.assert_allclose(heard.mean, self.mean(t), rtol=1e-4, atol=1e-5)
                t, self.last = t + 1, time.monotonic()
                self.rounds = max(self.rounds, t)
        except BaseException as failure:
            if not self.over.is_set():
                self.failure = failure

    def node(self, name: str) -> HttpNode:
        state = self.folder / f"{name}.state"
        return HttpNode(self.service.url, self.service.tokens[name], state=state, patience=1e9)  # SILENCE is the limit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    chance = random.Random(told.seed)
    run = sm.Run(sm.named("auto", bytes=300, node="stateful"), DIM, told.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = ("--minimum", 5, "--wanted", 5, "--journal", folder / "journal")
        with serving(folder, run, *settings, nodes=NODES) as service:
            load = Load(service, run, folder, told.seed)
            threads = [threading.Thread(target=load.play, args=(node,), daemon=True) for node in NODES]
            for thread in threads:
                thread.start()
            for kill in range(told.kills):
                time.sleep(chance.uniform(0.0, 1.5))
                if chance.random() < 0.25:
                    load.reborn[chance.choice(NODES)] = True
                service.stop(signal.SIGKILL)
                service.start()
                if load.failure is not None or time.monotonic() - load.last > SILENCE:
                    sys.exit(f"after kill {kill + 1}, round {load.rounds}: {load.failure!r}\n{service.log()[-3000:]}")
                print(f"\r{kill + 1} kills, {load.rounds} rounds", end="", flush=True)
            before, until = load.rounds, time.monotonic() + SILENCE
            while load.rounds < before + 3 and load.failure is None and time.monotonic() < until:
                time.sleep(0.1)
            if load.rounds < before + 3:
                sys.exit(f"\nno round ends any more: {load.failure!r}\n{service.log()[-3000:]}")
            load.over.set()
            refused = [row["refused"] for row in service.json("/v1/history?most=1000")["rounds"] if row["refused"]]
        for thread in threads:
            thread.join(10)
    print(f"\n{told.kills} kills, {load.rounds} rounds: means as in a run in peace; refused: {refused or 'none'}")


if __name__ == "__main__":
    main()
