"""However few come, what is promised to be unbiased is; where nobody comes, the server says so.

For each scheme and share of nodes that come, two rounds are played with each of many seeds, or three; who comes differs
from seed to seed and from round to round. The deviation of the last estimate from what is promised, averaged over the
seeds, must be 0 at every coordinate, to within its own standard error. Promised is the mean of those who came or, where
absent nodes are carried, the mean with what the server remembered in their place.

    python soak/attendance.py --seeds 1000
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

import sparsemean as sm
from sparsemean.errors import DivergenceWarning, TooFewNodes

DIM, SHARES = 30, (0.01, 0.1, 0.5, 0.9, 1.0)
BOUND = 5.5  # standard errors: passed by chance at one coordinate in 26 million, of the 5,000 or so that are looked at
Doubles = npt.NDArray[np.float64]


def scheme_of(name: str) -> sm.Scheme:
    """The scheme of that name, sending 30%."""
    return sm.named(name, k=0.3, ratio=3.0) if name == "rand-k-spatial-opt" else sm.named(name, k=0.3)


def unbiased_names() -> list[str]:
    """The names whose scheme declares itself unbiased."""
    return [name for name in sm.names() if scheme_of(name).unbiased]


@lru_cache
def vectors_of(round: int, count: int) -> Doubles:
    """Alike, from node to node and from round to round, but not too much."""
    rng = np.random.default_rng(17)
    own = rng.normal(size=(count, DIM)) + rng.normal(size=DIM) + 1.0
    return own + 0.3 * np.random.default_rng((18, round)).normal(size=(count, DIM))


def deviation(name: str, share: float, missing: str, seed: int) -> Doubles:
    """The last estimate, less what it should be on average."""
    count = 100 if share < 0.05 else 10
    run = sm.Run(scheme_of(name), DIM, seed=seed)
    server, rng = sm.Server(run, missing=missing), np.random.default_rng((19, seed))
    clients: dict[int, sm.Client] = {}
    wanted = np.zeros(DIM)
    for round in range(rounds_of(name)):
        present = rng.permutation(count)[: max(1, round_half(share * count))]
        vectors = vectors_of(round, count)
        stand_in = {node: vectors[node] for node in present.tolist()}
        if missing == "carry":
            stand_in = {**{node: server.expected(str(node)) for node in clients}, **stand_in}
        wanted = np.mean(list(stand_in.values()), axis=0)
        for node in present.tolist():
            client, plan = clients.setdefault(node, sm.Client(run, str(node))), server.plan(str(node))
            client.delivered(server.accept(str(node), client.encode(vectors[node], round, plan)))
        estimate = server.close_round()
    return np.asarray(estimate.mean - wanted)


def rounds_of(name: str) -> int:
    """Two, so that something is remembered; three where a fit to the second decides what is expected."""
    return 3 if isinstance(scheme_of(name).memory, sm.Hybrid | sm.SharedStable) else 2


def round_half(number: float) -> int:
    """The nearest whole number."""
    return int(number + 0.5)


def largest_z(name: str, share: float, missing: str, seeds: Sequence[int]) -> float:
    """Over the coordinates, and along the mean, how many standard errors the mean deviation is away from 0 at most.

    A mean that is too long or too short by some per cent shows along the mean long before it shows in a coordinate.
    """
    mean = vectors_of(rounds_of(name) - 1, 10).mean(axis=0)
    found = np.array([deviation(name, share, missing, seed) for seed in seeds])
    found = np.column_stack([found, found @ (mean / np.linalg.norm(mean))])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    rounding = 1e-6  # of float32 values about 1
    return float(np.max(np.maximum(np.abs(found.mean(axis=0)) - rounding, 0) / np.maximum(error, rounding)))


def nobody_comes(name: str) -> None:
    """A round without anybody is refused and stays open, before and after others; then the server goes on."""
    run = sm.Run(scheme_of(name), DIM)
    carries = run.scheme.memory.facts.stands_in
    server, client = sm.Server(run, missing="carry" if carries else "drop"), sm.Client(run, "0")
    for round in range(3):
        before = server.digest()
        try:
            server.close_round()
        except TooFewNodes:
            pass
        else:
            raise AssertionError(f"{name} estimated the mean of nobody")
        if server.digest() != before:
            raise AssertionError(f"{name} changed without anybody")
        client.delivered(server.accept("0", client.encode(vectors_of(round, 1)[0], round, server.plan("0"))))
        server.close_round()


def ways(name: str) -> list[str]:
    """How absent nodes may count with this scheme."""
    return ["drop", "carry"] if scheme_of(name).memory.facts.stands_in else ["drop"]


def main() -> None:
    """Play, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seeds", type=int, default=1000)
    given = options.parse_args()
    warnings.simplefilter("ignore", DivergenceWarning)
    for name in sm.names():
        nobody_comes(name)
    print(f"nobody: TooFewNodes from all {len(sm.names())} schemes")
    print(f"largest deviation from unbiased, in standard errors, {given.seeds:,} seeds, bound {BOUND}")
    print(f"{'scheme':34}{'absent':8}" + "".join(f"{share:>8.0%}" for share in SHARES))
    worst = 0.0
    for name in unbiased_names():
        for missing in ways(name):
            row: list[Any] = []
            for share in SHARES:
                print(f"\r{name}, {missing}, {share:.0%}   ", end="", file=sys.stderr, flush=True)
                row.append(largest_z(name, share, missing, range(given.seeds)))
            print(f"\r{name:34}{missing:8}" + "".join(f"{z:>8.2f}" for z in row), flush=True)
            worst = max(worst, *row)
    print(f"largest of all: {worst:.2f}")
    sys.exit(worst > BOUND)


if __name__ == "__main__":
    main()
