"""The processes of a run, and what happens to them: stations die and return, one hangs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from broker import Broker
from link import PASSWORD, SECRET, secret_of
from readings import Readings

HERE = Path(__file__).parent
EVENTFUL = 8  # rounds from which on there is time to die, return and hang


class Network:
    """Stations and the fusion server, each a process of its own; none outlives the ``with`` block."""

    def __init__(self, folder: Path, name: str, broker: Broker, readings: Readings) -> None:
        self.folder, self.name, self.broker, self.readings = folder, name, broker, readings
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.secret = os.urandom(32)

    def __enter__(self) -> Network:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """All leave by themselves when the run is over; who does not is killed."""
        grace = 5.0 if error is None else 0.0
        for process in self.processes.values():
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                grace = 0.0
            process.kill()
            process.wait()

    def start(self, user: str, program: str, *arguments: str | Path) -> None:
        where = ["--broker", self.broker.address, "--network", self.name]
        secret = self.secret if user == "fusion" else secret_of(user, self.secret)
        environment = {**os.environ, PASSWORD: self.broker.passwords[user], SECRET: secret.hex()}
        command = [sys.executable, HERE / program, *arguments, *where]
        self.processes[user] = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL)

    def start_station(self, node: str) -> None:
        """It is given its own readings and nobody else's."""
        file = self.folder / f"{node}.npy"
        np.save(file, self.readings.vectors[:, self.readings.stations.index(node)])
        self.start(node, "node.py", node, file)

    def start_server(self, run: str, *options: str) -> None:
        files = self.folder / "run.json", self.folder / "stations.txt"
        for file, text in zip(files, (run, "\n".join(self.readings.stations)), strict=True):
            file.write_text(text)
        self.start("fusion", "server.py", *files, *options)

    def kill(self, nodes: Sequence[str]) -> None:
        """As a power cut does: kill -9, no goodbye, all at once."""
        for node in nodes:
            self.processes[node].kill()
        for node in nodes:
            self.processes[node].wait()


class Mishaps:
    """What happens when a round opens. A quarter into the run some stations die, half way they return, then one hangs.

    It hangs for two rounds, so that it misses one and sends what it owes when that round is over.
    """

    def __init__(self, stations: Sequence[str], rounds: int, deaths: int) -> None:
        *others, self.sleeper = stations
        self.victims = others[:: max(1, len(others) // max(1, deaths))][:deaths]
        self.death, self.rebirth, self.sleep, self.wake = (
            (rounds // 4, rounds // 2, rounds // 2 + 1, rounds // 2 + 3) if rounds >= EVENTFUL else (-1, -1, -1, -1)
        )

    def happen(self, network: Network, round: int) -> str:
        """What was done, in words; nothing in most rounds."""
        if round == self.death and self.victims:
            network.kill(self.victims)
            return f"killed (-9): {' '.join(self.victims)}"
        if round == self.rebirth and self.victims:
            for node in self.victims:
                network.start_station(node)
            return f"started again: {' '.join(self.victims)}"
        if round in (self.sleep, self.wake):
            sleeps = round == self.sleep
            network.processes[self.sleeper].send_signal(signal.SIGSTOP if sleeps else signal.SIGCONT)
            return f"{'hangs' if sleeps else 'goes on'}: {self.sleeper}"
        return ""
