"""Error against the size of a payload, with full and with compact frames: the table in docs/sensors.md.

    python examples/sensors/sizes.py
    python examples/sensors/sizes.py --days 1 --sizes 100     # the data of `sparsemean compare --bytes 100`

All stations report in every round, in this process. Of several kinds of values each cell has the best.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np
from readings import Readings, load

import sparsemean as sm

SIZES = (11, 51, 115, 222)  # payloads of LoRaWAN: US915 at DR0; EU868 at DR0 to 2, at DR3, and at DR4 and 5
SCHEMES = ("rand-k-spatial-avg", "rand-k-balanced-hybrid")
VALUES = ("int8", "eden-6", "eden-5", "int4", "eden-3", "2-bit", "1-bit")
PROBE = 3  # seeds by which the value kind is chosen


def run_of(readings: Readings, scheme: str, values: str, size: int, frame: str) -> sm.Run | None:
    """The run whose payloads have at most so many bytes; stations are listed, so that no plan is sent to them."""
    nodes = readings.stations if scheme.startswith("rand-k-balanced") else None
    dim = readings.vectors.shape[2]
    try:
        return sm.Run.for_bytes(scheme, dim, size, 0, readings.blocks, nodes, values=values, frame=frame)
    except sm.InvalidInput:
        return None


def squared_errors(readings: Readings, run: sm.Run, seeds: Sequence[int]) -> list[float]:
    """The mean squared error per reading of each seed, over the rounds, all stations reporting."""
    found = []
    for seed in seeds:
        seeded = sm.Run(run.scheme, run.dim, seed, run.blocks, run.nodes or None, run.frame)
        server = sm.Server(seeded)
        clients = [sm.Client(seeded, node) for node in readings.stations]
        off = []
        for t, vectors in enumerate(readings.vectors):
            for client, vector in zip(clients, vectors, strict=True):
                server.accept(client.node, client.encode(vector, t))
            off.append(np.mean((server.close_round().mean - vectors.mean(axis=0)) ** 2))
        found.append(float(np.mean(off)))
    return found


def best(readings: Readings, scheme: str, size: int, frame: str, seeds: int) -> str:
    """The value kind of least error by a few seeds, how many readings it sends, and the error over all seeds."""
    runs = [run for values in VALUES if (run := run_of(readings, scheme, values, size, frame)) is not None]
    if not runs:
        return "the header does not fit | | "
    chosen = min(runs, key=lambda run: sum(squared_errors(readings, run, range(1000, 1000 + PROBE))))
    errors = squared_errors(readings, chosen, range(seeds))
    error = math.sqrt(np.mean(errors))
    spread = float(np.std(errors, ddof=1)) / math.sqrt(seeds) / (2 * error) if seeds > 1 else math.nan
    return f"{chosen.scheme.values} | {chosen.layout[0].count} | {error:.3f} ± {spread:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="bytes of a payload")
    parser.add_argument("--days", type=int, default=3, help="in a round")
    parser.add_argument("--seeds", type=int, default=30)
    told = parser.parse_args()
    readings = load(rounds=31 // told.days, days=told.days, stations=37)
    print("| scheme | payload | full frame: values | readings | error | compact frame: values | readings | error |")
    print("|---|---:|---|---:|---:|---|---:|---:|")
    for scheme in SCHEMES:
        for size in told.sizes:
            full, compact = (best(readings, scheme, size, frame, told.seeds) for frame in ("full", "compact"))
            print(f"| `{scheme}` | {size} | {full} | {compact} |", flush=True)


if __name__ == "__main__":
    main()
