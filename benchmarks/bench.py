"""``make bench``: our time against named baselines in the same process, as ratios; a busy machine is said so.

Each row is the median of repeats with the spread between quartiles. Above 1 we are faster than the baseline.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable

import numpy as np

import sparsemean as sm

REPEATS = 7


def seconds(work: Callable[[], object]) -> np.ndarray:
    """Quartiles of the time of ``work``, after one run to warm up."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return np.quantile(times, [0.25, 0.5, 0.75])


def report(case: str, ours: np.ndarray, baseline: str, theirs: np.ndarray) -> None:
    """One row: median times, their ratio, and the ratio's range over the quartiles."""
    low, high = theirs[0] / ours[2], theirs[2] / ours[0]
    print(
        f"{case:44s} {ours[1] * 1e3:9.2f} ms   {theirs[1] / ours[1]:6.2f} × as fast as {baseline}"
        f" [{low:.2f} to {high:.2f}]",
        flush=True,
    )


def bench(dim: int, share: float, nodes: int) -> None:
    """Encode at one node, and a whole server round, against what one would write with NumPy."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(nodes, dim)).astype(np.float32)
    k = int(share * dim)
    run = sm.Run(sm.named("rand-k-spatial-avg", k=k), dim)
    client = sm.Client(run, "0")

    def choose_and_gather() -> bytes:
        chosen = rng.choice(dim, k, replace=False, shuffle=False)
        return bytes(vectors[0, chosen].tobytes())

    label = f"d = {dim:,}, k/d = {share:.0%}"
    report(
        f"encode, {label}",
        seconds(lambda: client.encode(vectors[0], 0)),
        "Generator.choice + gather",
        seconds(choose_and_gather),
    )

    blobs = [sm.Client(run, str(i)).encode(vectors[i], 0) for i in range(nodes)]

    def server_round() -> sm.Estimate:
        server = sm.Server(run)
        for i, blob in enumerate(blobs):
            server.accept(str(i), blob)
        return server.close_round()

    def choose_and_add_at() -> np.ndarray:
        sums = np.zeros(dim)
        for vector in vectors:
            chosen = rng.choice(dim, k, replace=False, shuffle=False)
            np.add.at(sums, chosen, vector[chosen])
        return sums * (dim / k / nodes)

    ours = seconds(server_round)
    report(f"server round, n = {nodes}, {label}", ours, "choice + np.add.at", seconds(choose_and_add_at))
    report(f"server round, n = {nodes}, {label}", ours, "dense mean", seconds(lambda: vectors.mean(axis=0)))


def main() -> None:
    """Describe the machine, then every case."""
    load = os.getloadavg()[0]
    print(f"{platform.platform()}, Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores")
    if load > 0.5:
        print(f"the load average is {load:.1f}: something else is running, so read the ratios with care")
    for dim, share, nodes in ((10_000, 0.1, 16), (1 << 20, 0.01, 16), (1 << 20, 0.1, 16), (1 << 22, 0.1, 16)):
        bench(dim, share, nodes)


if __name__ == "__main__":
    main()
