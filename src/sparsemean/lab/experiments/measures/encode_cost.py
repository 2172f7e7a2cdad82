"""The measure "encode-cost": processor time of a node's encoding, as a multiple of Rand-k's."""

from __future__ import annotations

import time

import numpy as np

from sparsemean._types import Doubles
from sparsemean.client import Client
from sparsemean.encoders.size import count
from sparsemean.lab.experiments.setting import Setting
from sparsemean.lab.tables import TableRow
from sparsemean.run import Run
from sparsemean.schemes import named, scheme_name

REFERENCE = "rand-k"
WARM_UP = 8  # rounds that are not timed: loops are compiled, caches fill
SHARE = 0.1  # where a setting has none
BATCH = 4  # encodings between two looks at the clock


def measure(setting: Setting, data_dir: str | None = None) -> list[TableRow]:
    """One row: ``encode_us``, the median microseconds of an encoding, and ``cost``, its median multiple of Rand-k's.

    Both encode the same vector in turns, so that whatever else the machine does slows both. These are times: they
    differ from run to run, unlike all other tables.

    >>> setting = Setting("mine", "encode-cost", "normal", "rand-k", 0.1, options=(("dim", 100), ("repeats", 3)))
    >>> row, = measure(setting)
    >>> row["cost"] > 0
    True
    """
    dim, repeats = int(setting.option("dim", 1000)), int(setting.option("repeats", 60))
    rng = np.random.default_rng(setting.seed)
    vector = rng.normal(size=dim) * np.exp(rng.normal(size=dim))  # magnitudes differ, as those of gradients do
    k = count(setting.share or SHARE, dim)
    compared = map(scheme_name, (setting.scheme, REFERENCE))
    own, reference = (Client(Run(named(name, k), dim, setting.seed), "node") for name in compared)
    for number in range(WARM_UP):
        own.encode(vector, number)
        reference.encode(vector, number)
    times = np.empty((repeats, 2))
    for number in range(repeats):
        turns = ((0, own), (1, reference))
        for place, client in turns if number % 2 else turns[::-1]:  # who comes second finds warmer caches
            times[number, place] = _microseconds(client, vector, WARM_UP + BATCH * number)
    cost = float(np.median(times[:, 0] / times[:, 1]))
    return [{"round": 0, "k": k, "encode_us": float(np.median(times[:, 0])), "cost": cost}]


def _microseconds(client: Client, vector: Doubles, first: int) -> float:
    start = time.process_time_ns()
    for number in range(first, first + BATCH):
        client.encode(vector, number)
    return max(1, time.process_time_ns() - start) / 1000 / BATCH
