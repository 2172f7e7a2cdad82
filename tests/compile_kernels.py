"""Compile the kernels into numba's cache on disk, so that the processes of the tests find them there.

python tests/compile_kernels.py samples  # or epochs: what that half of them needs, which have little in common
"""

from __future__ import annotations

import sys

import numpy as np

import sparsemean as sm
from sparsemean.kernels import Sample
from sparsemean.kernels.sample import gather

DIM = 5000


def play(scheme: sm.Scheme, dtype: str) -> None:
    """Three rounds, of which a node misses one: rows are written, carried and fitted."""
    run = sm.Run(scheme, DIM)
    server, clients = sm.Server(run, missing="carry"), [sm.Client(run, name) for name in ("a", "b", "c")]
    for round, present in enumerate((3, 2, 3)):
        plans = server.plans([client.node for client in clients])
        for client in clients[:present]:
            blob = client.encode(np.ones(DIM, dtype), round, plans[client.node] or None)
            client.delivered(server.accept(client.node, blob))
        server.close_round()


def main(half: str) -> None:
    if half == "samples":  # first what the other process does not compile as well
        sample = Sample.keyed(bytes(32), DIM, 10, 4096)
        for have, want in (("f4", "f4"), ("f8", "f8"), ("f8", "f4")):
            gather(sample, np.ones(DIM, have), np.empty(10, want))
        for dtype in ("f4", "f8"):
            sm.estimate_mean(np.ones((2, DIM), dtype), sm.named("top-k", k=10))
        sm.estimate_mean(np.ones((2, DIM)), sm.named("identity", values="eden-2"))
    name = {"samples": "rand-k-hybrid", "epochs": "rand-k-epochs-hybrid"}[half]
    for values in ("float64", "float32"):
        play(sm.named(name, k=10, values=values), values)


if __name__ == "__main__":
    main(sys.argv[1])
