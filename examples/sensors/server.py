"""The fusion server: opens rounds, takes reports until the deadline, publishes the mean and how good it is.

    python server.py run.json stations.txt --broker 127.0.0.1:1883 --network brittany --rounds 10 --deadline 3

``run.json`` is ``Run.to_json()``; ``stations.txt`` names the stations, one a line.
"""

from __future__ import annotations

import argparse
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from link import Topics, answer, connection, mqtt, own_secret, say, secret_of
from offsets import Offsets

import sparsemean as sm


class Fusion:
    """Takes payloads as they come, in paho's thread; ``play`` opens and closes the rounds."""

    def __init__(self, run: sm.Run, stations: set[str], topics: Topics, broker: str) -> None:
        self.run, self.stations, self.topics = run, stations, topics
        network = own_secret(run)
        self.server = sm.Server(run, secrets=None if network is None else lambda node: secret_of(node, network))
        self.offsets = Offsets(run)
        self.here: set[str] = set()
        self.came: dict[str, bytes] = {}
        self.refused: Counter[str] = Counter()
        self.changed = threading.Condition()
        self.open: int | None = -1  # no round yet
        self.plans: dict[str, bytes] = {}
        self.link = connection("fusion", broker)
        self.link.on_connect = self.arrive
        self.link.message_callback_add(topics.payload("+"), self.on_payload)
        self.link.message_callback_add(topics.presence("+"), self.on_presence)

    def arrive(self, link: mqtt.Client, *_: object) -> None:
        """Also after the broker was restarted and forgot what it retained."""
        link.subscribe([(self.topics.payload("+"), 1), (self.topics.presence("+"), 1)])
        link.publish(self.topics.run, self.run.to_json(), qos=1, retain=True)
        if self.open != -1:
            self.announce()

    def announce(self) -> mqtt.MQTTMessageInfo:
        told: dict[str, object] = {"round": self.open, "run": self.run.digest}
        if self.open is not None and self.run.planned:
            told["plans"] = {node: plan.hex() for node, plan in self.plans.items()}
        return say(self.link, self.topics.round, told, retain=True)

    def on_presence(self, link: mqtt.Client, _: object, message: mqtt.MQTTMessage) -> None:
        node = Topics.node(message.topic)
        with self.changed:
            (self.here.add if message.payload == b"here" else self.here.discard)(node)
            self.changed.notify_all()

    def on_payload(self, link: mqtt.Client, _: object, message: mqtt.MQTTMessage) -> None:
        """A repeated payload gets its receipt again; one that cannot be taken gets the error's name and reason."""
        node = Topics.node(message.topic)
        with self.changed:
            try:
                receipt = self.server.accept(node, message.payload)
                said = answer(receipt, self.server.round)
                if receipt.round == self.server.round:
                    self.came[node] = bytes(message.payload)
            except sm.SparseMeanError as refused:
                said = answer(refused, self.server.round)
                self.refused[type(refused).__name__] += 1
            # Within the lock, so that a receipt leaves before the next round opens.
            link.publish(self.topics.receipt(node), said, qos=1)
            self.changed.notify_all()

    def wait(self, done: Callable[[], bool], seconds: float) -> None:
        with self.changed:
            self.changed.wait_for(done, seconds)

    def play(self, rounds: int, deadline: float, start: float) -> None:
        """Round 0 opens when all stations are here or ``start`` seconds have passed."""
        self.link.loop_start()
        self.wait(lambda: self.stations <= self.here, start)
        for _ in range(rounds):
            began = time.monotonic()
            with self.changed:
                self.open, self.plans = self.server.round, self.server.plans(sorted(self.stations))
            self.announce()
            self.wait(lambda: self.stations <= self.came.keys(), deadline)
            say(self.link, self.topics.estimate, self.close(time.monotonic() - began), retain=True)
        self.open = None
        self.announce().wait_for_publish(deadline)
        self.wait(lambda: not self.here, deadline)
        self.link.disconnect()
        self.link.loop_stop()

    def close(self, seconds: float) -> dict[str, object]:
        """The round as a message; without an estimate where nobody came."""
        with self.changed:
            round, blobs, plans, refused = self.server.round, self.came, self.plans, dict(self.refused)
            self.came, self.refused = {}, Counter()
            told: dict[str, object] = {"round": round, "nodes": list(blobs), "refused": refused, "seconds": seconds}
            try:
                estimate = self.server.close_round()
            except sm.TooFewNodes:
                self.server.skip_round()
                return told
        self.offsets.add(round, blobs, plans)
        return told | {
            "mean": estimate.mean.tolist(),
            "bytes": estimate.bytes,
            "error": estimate.error,
            "error_se": estimate.error_se,
            "offsets": {node: self.offsets.of(node) for node in self.offsets.sums},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description="The fusion server of a sensor network.")
    parser.add_argument("run", type=Path, help="file with Run.to_json()")
    parser.add_argument("stations", type=Path, help="file with the stations' names, one a line")
    parser.add_argument("--broker", default="127.0.0.1:1883")
    parser.add_argument("--network", default="brittany")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--deadline", type=float, default=3.0, help="seconds after which a round is closed")
    parser.add_argument("--start", type=float, default=60.0, help="seconds to wait for all stations at first")
    told = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # end without a traceback
    run, stations = sm.Run.from_json(told.run.read_text()), set(told.stations.read_text().split())
    Fusion(run, stations, Topics(told.network), told.broker).play(told.rounds, told.deadline, told.start)


if __name__ == "__main__":
    main()
