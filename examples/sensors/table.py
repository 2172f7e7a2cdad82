"""What came of the rounds: the fused mean against the exact one, a line a round and a few at the end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from link import Topics
from readings import Readings

import sparsemean as sm

HEAD = "round  days    reports  missing  bytes  of dense  true error  server says        °C    mm  refused"


class Table:
    """Errors are root mean squares over the round's readings, in spreads of the quantity; °C and mm are t and rr1."""

    def __init__(self, readings: Readings, run: sm.Run, topics: Topics) -> None:
        self.readings, self.run, self.topics = readings, run, topics
        self.rows: list[dict[str, Any]] = []
        self.dense = 4 * run.dim  # float32, without any header
        print(
            f"{len(readings.stations)} stations, {run.dim} readings a round from each, "
            f"at most {run.payload_bytes} bytes instead of {self.dense}.\n"
            f"Errors are in spreads of the quantity, root mean square.\n\n{HEAD}"
        )

    def note(self, text: str) -> None:
        if text:
            print(f"       {text}", flush=True)

    def add(self, told: dict[str, Any]) -> None:
        """``told`` is the server's message; what only this side knows is added to it."""
        days, d = self.readings.days, self.run.dim
        came = [self.readings.stations.index(node) for node in told["nodes"]]
        row = {**told, "missing": [n for n in self.readings.stations if n not in told["nodes"]]}
        self.rows.append(row)
        first = told["round"] * days + 1
        start = f"{told['round']:5}  {f'{first}–{first + days - 1}':<6}  {len(came):7}  {len(row['missing']):7}"
        refused = ", ".join(f"{count} {kind}" for kind, count in told["refused"].items())
        if "mean" not in told:
            print(f"{start}  nobody came  {refused}", flush=True)
            return
        exact = self.readings.vectors[told["round"], came].mean(axis=0)
        off = np.array(told["mean"]) - exact
        row["exact"], row["true_error"] = exact.tolist(), float(np.sum(off**2))
        row["dense_bytes"] = self.dense * len(came)
        celsius, mm = (self.readings.scale(q) * rms(self.readings.part(off, q)) for q in ("t", "rr1"))
        print(
            f"{start}  {told['bytes']:5}  {told['bytes'] / row['dense_bytes']:8.1%}  {rms(off):10.3f}  "
            f"{stated(told['error'], told['error_se'], d):15}  {celsius:4.2f}  {mm:4.2f}  {refused}".rstrip(),
            flush=True,
        )

    def finish(self) -> None:
        rows = [row for row in self.rows if "mean" in row]
        if not rows:
            print("\nNo round has an estimate.")
            return
        sent, reports = sum(row["bytes"] for row in rows), sum(len(row["nodes"]) for row in rows)
        whole = self.dense * reports
        framed, framed_whole = (self.on_the_socket(size / reports) for size in (sent, whole))
        true = math.sqrt(np.mean([row["true_error"] for row in rows]) / self.run.dim)
        own = [row["error"] for row in rows]
        says = "" if None in own else f"; the server says {math.sqrt(max(0.0, np.mean(own)) / self.run.dim):.3f}"
        print(
            f"\nAll rounds: {sent} bytes in {reports} reports, {sent / whole:.1%} of dense. With MQTT's own header "
            f"{framed:.0f} bytes a report instead of {framed_whole:.0f}, {framed / framed_whole:.1%}."
            f"\nTrue error {true:.3f} spreads{says}."
        )

    def on_the_socket(self, payload: float) -> float:
        """Length of a PUBLISH packet of QoS 1: type, length, topic with its length, packet number, payload."""
        body = 2 + len(self.topics.payload(self.readings.stations[0])) + 2 + payload
        return 1 + (1 if body < 128 else 2) + body


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(values**2)))


def stated(error: float | None, error_se: float | None, dim: int) -> str:
    """√(error/d) with its standard error; the estimate is unbiased, so it may fall below 0."""
    if error is None or error_se is None:
        return "–"
    if error <= 0.0:
        return "0"
    return f"{math.sqrt(error / dim):.3f} ± {error_se / (2 * math.sqrt(error * dim)):.3f}"
