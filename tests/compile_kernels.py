"""Compile the kernels into numba's cache on disk, so that the processes of the tests find them there.

python tests/compile_kernels.py samples  # or epochs: what that half of them needs, which have little in common
"""

from __future__ import annotations

import sys

import numpy as np

import sparsemean as sm
from sparsemean._names import ValueName
from sparsemean.kernels import Sample
from sparsemean.kernels.compiled import sample as draw
from sparsemean.kernels.one_pass import Sent, one_pass
from sparsemean.kernels.ranks import rank_words
from sparsemean.kernels.sample import gather
from sparsemean.sampling import tile_size

DIM = 5000
EXACT: tuple[ValueName, ...] = ("float64", "float32")
FEW_BITS: tuple[ValueName, ...] = ("eden-2", "int4", "int8", "int16")
LONG = 2**40  # whose tiles are so wide that places in them take 32 bits


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


def samples() -> None:
    """What draws samples, and what passes over arrays as they are."""
    for values in EXACT:  # first what the other process comes to in the end
        play(sm.named("rand-k-hybrid", k=10, values=values), values)
    sample, wide = (Sample.keyed(bytes(32), dim, 10, tile_size(dim)) for dim in (DIM, LONG))
    draw(wide, 0, 0, np.empty(0, np.int64))
    rank_words(sample.balanced(bytes(32), 16, 0, 2), (1, 2), np.empty(10, np.uint32))
    for have, want in (("f4", "f4"), ("f8", "f8"), ("f8", "f4")):
        gather(sample, np.ones(DIM, have), np.empty(10, want))
    for values in EXACT:
        play(sm.named("top-k-temporal", k=10, values=values), values)
        play(sm.Scheme(sm.TopK(10), memory=sm.Hybrid(), values=values), values)


def epochs() -> None:
    """What restores few-bit values, draws later rounds of an epoch, goes through lists, or once through tiles."""
    for values in FEW_BITS:
        sm.estimate_mean(np.ones((2, DIM)), sm.named("identity", values=values))
    for values in EXACT:
        play(sm.named("rand-k-epochs-hybrid", k=10, values=values), values)
    sm.simulate(sm.Run(sm.Scheme(sm.RandK(10, draw=sm.Epochs())), DIM), np.ones((3, 2, DIM), np.float32))
    sample = Sample.keyed(bytes(32), DIM, 10, tile_size(DIM))
    for values in EXACT:
        one_pass(Sent([sample], [np.ones(10, values)], 500.0, DIM), np.ones(2), 0.0, np.empty(DIM), None)


if __name__ == "__main__":
    {"samples": samples, "epochs": epochs}[sys.argv[1]]()
