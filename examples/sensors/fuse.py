"""Fuse a sensor network over MQTT: 37 station processes, a broker, a fusion server; stations die and return.

    python examples/sensors/fuse.py --out sensors.png

Every three days each station reports the hourly temperature and rain it read. The region's mean is fused from a tenth
of the bytes; a table holds it, and the error the server states of itself, against the exact mean, which only this
program knows. Everything it starts, it stops. See docs/sensors.md.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import signal
import sys
import tempfile
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from broker import Broker, private_broker
from link import PASSWORD, Topics, connection, mqtt
from network import EVENTFUL, Mishaps, Network
from readings import Readings, load
from table import Table

import sparsemean as sm
from sparsemean.lab.compare import Budget, scheme_within, vector_correlation

NAME = "brittany"
START = 120  # seconds that starting all processes may take


def agreed_run(readings: Readings, scheme: str, values: str, share: float, seed: int) -> sm.Run:
    """The scheme with as many coordinates as fit in this share of the bytes of dense float32, header included."""
    dim = readings.vectors.shape[2]
    budget = Budget(bytes=int(share * 4 * dim))
    ratio = vector_correlation(readings.vectors).ratio
    chosen = scheme_within(f"{scheme} {values}", budget, dim, ratio)
    if chosen is None:
        sys.exit(
            f"{budget.bytes} bytes are too few for a header of 64 and a reading; choose a larger --share or --days"
        )
    return sm.Run(chosen, dim, seed, readings.blocks)


def radio_run(readings: Readings, scheme: str, values: str, payload: int, seed: int) -> sm.Run:
    """The scheme with as many coordinates as fit in a payload of so many bytes, in compact frames."""
    dim = readings.vectors.shape[2]
    oracle = {"ratio": vector_correlation(readings.vectors).ratio} if scheme == "rand-k-spatial-opt" else {}
    return sm.Run.for_bytes(scheme, dim, payload, seed, readings.blocks, values=values, frame="compact", **oracle)


def deaths_within(readings: Readings, asked: int | None) -> int:
    """How many stations are killed: as many as asked for, else 4 where there is time for them to return."""
    rounds, most = len(readings.vectors), len(readings.stations) - 1
    if asked is None:
        return min(4, most) if rounds >= EVENTFUL else 0
    if asked > 0 and rounds < EVENTFUL:
        sys.exit(f"--deaths needs {EVENTFUL} rounds or more, for stations to die and return; got --rounds {rounds}")
    if not 0 <= asked <= most:
        sys.exit(f"--deaths goes from 0 to {most} with {most + 1} stations, got {asked}; one station hangs instead")
    return asked


class News:
    """What anybody with the right to read hears: every round that opens, and every estimate. Ends on Ctrl-C or SIGTERM.

    A signal waits here like a message, so that it never strikes while a process is being started.
    """

    def __init__(self) -> None:
        self.heard: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: self.heard.put({"signal": number}))

    def subscribe(self, broker: Broker, topics: Topics) -> mqtt.Client:
        os.environ[PASSWORD] = broker.passwords["watch"]
        link = connection("watch", broker.address)
        link.on_connect = lambda link, *_: link.subscribe([(topics.round, 1), (topics.estimate, 1)])
        link.on_subscribe = lambda *_: self.heard.put({})
        link.on_message = lambda _link, _data, message: self.heard.put(json.loads(message.payload))
        link.loop_start()
        self.next(START)  # from here on nothing is missed
        return link

    def next(self, seconds: float) -> dict[str, Any]:
        try:
            told = self.heard.get(timeout=seconds)
        except queue.Empty:
            sys.exit("the fusion server has gone silent; its messages are above")
        if "signal" in told:
            sys.exit(128 + told["signal"])
        return told


def fuse(readings: Readings, run: sm.Run, deadline: float, deaths: int) -> list[dict[str, Any]]:
    """Play the rounds; the table is printed as they close."""
    rounds, topics, news = len(readings.vectors), Topics(NAME), News()
    mishaps, table = Mishaps(readings.stations, rounds, deaths), Table(readings, run, topics)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sensors-")))
        broker = stack.enter_context(private_broker(folder, NAME, readings.stations))
        link = news.subscribe(broker, topics)
        stack.callback(link.loop_stop)
        stack.callback(link.disconnect)
        network = stack.enter_context(Network(folder, NAME, broker, readings))
        for node in readings.stations:
            network.start_station(node)
        network.start_server(run.to_json(), f"--rounds={rounds}", f"--deadline={deadline}", f"--start={START}")
        while len(table.rows) < rounds:
            told = news.next(START + deadline)
            if "nodes" in told:
                table.add(told)
            elif told.get("round") is not None:
                table.note(mishaps.happen(network, told["round"]))
    table.finish()
    return table.rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuse a sensor network over MQTT from a tenth of the bytes.")
    parser.add_argument("--scheme", default="rand-k-spatial-avg", help="a name of `sparsemean schemes`")
    parser.add_argument("--values", default="int4", help="how a reading travels: float32, int8, int4, …")
    parser.add_argument("--share", type=float, default=0.1, help="of the bytes of dense float32")
    parser.add_argument("--payload", type=int, help="bytes of a report, in compact frames: 51 for LoRaWAN; no --share")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--days", type=int, default=3, help="in a round")
    parser.add_argument("--stations", type=int, default=37)
    parser.add_argument("--deaths", type=int, help=f"stations that are killed; 4 by default, from {EVENTFUL} rounds on")
    parser.add_argument("--deadline", type=float, default=3.0, help="seconds after which a round is closed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("sensors.png"), help="the figure")
    parser.add_argument("--data", type=Path, help="write the rounds here too, as JSON")
    told = parser.parse_args()
    if find_spec("matplotlib") is None:
        sys.exit("matplotlib is not installed: pip install 'sparsemean[report]'")
    try:
        readings = load(told.rounds, told.days, told.stations)
        deaths = deaths_within(readings, told.deaths)
        if told.payload is None:
            run = agreed_run(readings, told.scheme, told.values, told.share, told.seed)
        else:
            run = radio_run(readings, told.scheme, told.values, told.payload, told.seed)
        rows = fuse(readings, run, told.deadline, deaths)
    except sm.SparseMeanError as error:
        sys.exit(str(error))
    if told.data:
        told.data.write_text(json.dumps({"run": json.loads(run.to_json()), "rounds": rows}))
    from picture import draw

    draw(readings, rows, told.out)
    print(f"Figure: {told.out.resolve()}")


if __name__ == "__main__":
    main()
