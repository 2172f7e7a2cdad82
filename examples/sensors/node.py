"""A station: it holds its readings, and sends a few of them when a round opens. Needs numpy, paho-mqtt and sparsemean.

    python node.py 22016001 readings.npy --broker 127.0.0.1:1883 --network brittany

``readings.npy`` has one row for each round. The station learns the run and the open round from retained messages, so it
may come, go and return at any time.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from link import Topics, connection, mqtt, own_secret

import sparsemean as sm


class Station:
    """Answers every open round with a report, and every answer to it as the answer asks."""

    def __init__(self, node: str, readings: npt.NDArray[np.floating], topics: Topics, broker: str, state: Path) -> None:
        self.node, self.readings, self.topics, self.state = node, readings, topics, state
        self.client: sm.Client | None = None
        self.open: dict[str, Any] = {}
        self.link = connection(node, broker, will=topics.presence(node))
        self.link.on_connect = self.arrive
        self.link.message_callback_add(topics.run, self.on_run)
        self.link.message_callback_add(topics.round, self.on_round)
        self.link.message_callback_add(topics.receipt(node), self.on_answer)

    def arrive(self, link: mqtt.Client, *_: object) -> None:
        """Also after a broken connection: the retained messages say what was missed."""
        link.publish(self.topics.presence(self.node), "here", qos=1, retain=True)
        link.subscribe([(topic, 1) for topic in (self.topics.receipt(self.node), self.topics.run, self.topics.round)])

    def on_run(self, link: mqtt.Client, _: object, message: mqtt.MQTTMessage) -> None:
        run = sm.Run.from_json(message.payload.decode())
        if self.client is not None and self.client.run == run:
            return
        secret = own_secret(run)
        self.client = sm.Client(run, self.node, secret=secret)
        if run.scheme.node_state and self.state.exists():
            self.client = sm.Client.restore(run, self.node, self.state.read_bytes(), secret)
        self.report()

    def on_round(self, link: mqtt.Client, _: object, message: mqtt.MQTTMessage) -> None:
        self.open = json.loads(message.payload)
        if self.open["round"] is None:
            link.publish(self.topics.presence(self.node), "gone", qos=1, retain=True)
            link.disconnect()
        else:
            self.report()

    def report(self) -> None:
        """Send the open round's readings, once both the run and the round are known."""
        if self.client is None or self.open.get("run") != self.client.run.digest:
            return
        round = int(self.open["round"])
        if round < len(self.readings):
            plan = bytes.fromhex(self.open.get("plans", {}).get(self.node, ""))
            blob = self.client.encode(self.readings[round], round, plan)
            self.link.publish(self.topics.payload(self.node), blob, qos=1)

    def on_answer(self, link: mqtt.Client, _: object, message: mqtt.MQTTMessage) -> None:
        said = json.loads(message.payload)
        if self.client is None:
            return
        if "taken" in said:
            with suppress(sm.OutOfStep):  # a receipt of an earlier round; if that matters, the next report is refused
                self.client.delivered(sm.Receipt(**said["taken"]))
            if self.client.run.scheme.node_state:
                self.keep(self.client.save())
        elif said["refused"] == "OutOfStep":  # the server lost our state, or we did: both begin afresh
            self.client.reset()
            self.report()
        elif said["refused"] != "WrongRound":  # being late needs no remedy; the next round is on its way
            print(f"{self.node}: {said['refused']}: {said['why']}", file=sys.stderr, flush=True)

    def keep(self, saved: bytes) -> None:
        """In one step, so that a station that dies here finds the old state or the new one, whole."""
        fresh = self.state.with_suffix(".new")
        fresh.write_bytes(saved)
        fresh.replace(self.state)


def main() -> None:
    parser = argparse.ArgumentParser(description="A station of a sensor network.")
    parser.add_argument("node", help="its name at the broker")
    parser.add_argument("readings", type=Path, help=".npy file with a row for each round")
    parser.add_argument("--broker", default="127.0.0.1:1883")
    parser.add_argument("--network", default="brittany")
    told = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # end without a traceback
    readings = np.load(told.readings, allow_pickle=False)
    station = Station(told.node, readings, Topics(told.network), told.broker, told.readings.with_suffix(".state"))
    station.link.loop_forever(retry_first_connection=True)


if __name__ == "__main__":
    main()
