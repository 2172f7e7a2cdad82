"""Modulo values beside auto, both of nodes that keep nothing, at equal bytes.

    python scripts/measure_modulo.py [--tasks 'jump;heavy tails'] [--bits 1,2,3.2] [--data DIR]

The tasks are those of ``measure_auto.py`` and one whose steps have heavy tails (Student's t, 1.5 degrees of freedom).
For each task and number of bits a coordinate, three are played at the same bytes: auto, the hybrid memory with modulo-b
values for b from 2 to 4, and the same with eden-b values, which is what modulo values are without a memory's help; all
coordinates are sent where the bytes suffice, else a random part of them. Printed are the geometric means, over all
rounds but the first and over the last three, of ‖estimate − mean‖²/mean ‖x_i‖²; how often those of modulo values go
into auto's and into eden-b's; the largest ratio of their error to eden-b's in one round; and how many tiles were not
resolved. Auto is played once more with the bytes of the sketch added, which the server sends.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from measure_auto import Made, tasks

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.evaluation import truth
from sparsemean.kernels.eden import LEAST
from sparsemean.lab.tasks import StreamTask
from sparsemean.lab.trace import play
from sparsemean.payload.blocks import Blocks
from sparsemean.server.reports import RoundReport
from sparsemean.simulation import play_round
from sparsemean.wire.values import value_name
from sparsemean.wire.values.modulo import sketch_bytes

NAMES = (
    *("drift", "own drift", "jump", "rest", "heavy tails", "weather", "power iteration, IID"),
    *("power iteration, non-IID", "K-means, IID", "K-means, non-IID"),
)
PARTS = slice(1, None), slice(-3, None)


def heavy_tails(rng: np.random.Generator) -> Made:
    """Vectors that move by steps of which few coordinates have most of the energy."""
    steps = 0.05 * rng.standard_t(1.5, size=(30, 10, 4096))
    return StreamTask((rng.normal(size=(1, 10, 4096)) + np.cumsum(steps, axis=0)).astype(np.float32)), 30


def played(made: Made, scheme: sm.Scheme) -> tuple[Doubles, int]:
    """The relative error of each round, and how many tiles were not resolved."""
    task, rounds = made
    blocks = Blocks(task.blocks or (task.dim,))
    run, errors, state = sm.Run(scheme, task.dim, 0, blocks.sizes), [], task.start(0)
    reports: list[RoundReport] = []
    server = sm.Server(run, on_round=[reports.append])
    clients = [sm.Client(run, str(node)) for node in range(task.nodes)]
    for round in range(rounds):
        vectors, weights = task.vectors(state, round), task.weights(state)
        true = truth(vectors, weights, blocks)
        mean = play_round(server, clients, vectors, np.ones(task.nodes) if weights is None else weights).mean
        off = (mean - true.mean) * blocks.expand((true.nodes > 0).astype(np.float64))
        errors.append(float(off @ off) / true.energy)
        state = task.step(state, mean)
    return np.array(errors), sum(report.unresolved for report in reports)


def schemes(dim: int, room: int) -> dict[int, sm.Scheme]:
    """With all coordinates, or as many as fit, by b."""
    found: dict[int, sm.Scheme] = {}
    for b in (2, 3, 4):
        values = value_name(f"modulo-{b}")
        whole = sm.Scheme(sm.Identity(), memory=sm.Hybrid(), values=values)
        fits = sm.Run(whole, dim).payload_bytes <= room
        found[b] = whole if fits else sm.Run.for_bytes("rand-k-hybrid", dim, room, values=values).scheme
        if fits and b > 2:
            found.pop(b - 1)  # all coordinates with fewer bits
    return found


def mean_of(errors: Sequence[float] | Doubles) -> float:
    """Geometric."""
    return float(np.exp(np.mean(np.log(np.maximum(errors, 1e-300)))))


def main() -> None:
    """Print a line for each task, number of bits and number of levels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=";".join(NAMES))
    parser.add_argument("--bits", default="1,2,3.2")
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    every = {**tasks(given.data), "heavy tails": heavy_tails}
    for name in given.tasks.split(";"):
        for bits in map(float, given.bits.split(",")):
            made = every[name](np.random.default_rng(1000))
            dim = made[0].dim
            room = 64 + int(np.ceil(bits * dim / 8)) + 4 * -(-dim // 4096)
            auto = play(made[0], sm.named("auto", bytes=room), made[1]).nmse
            sent = sm.Run(schemes(dim, room)[3], dim).layout[0].count
            more = room + (sketch_bytes(sent) if sent >= LEAST else 0)
            plus = play(made[0], sm.named("auto", bytes=more), made[1]).nmse
            print(
                f"{name}, {bits:g} bit: auto with {more} bytes {mean_of(plus[1:]):.2e}, last {mean_of(plus[-3:]):.2e}"
            )
            print(f"{name}, {bits:g} bit, {room} bytes: auto {mean_of(auto[1:]):.2e}, last {mean_of(auto[-3:]):.2e}")
            for b, scheme in schemes(dim, room).items():
                errors, unresolved = played(every[name](np.random.default_rng(1000)), scheme)
                other = sm.Scheme(scheme.encoder, scheme.decoder, scheme.memory, value_name(f"eden-{b}"))
                eden, _ = played(every[name](np.random.default_rng(1000)), other)
                gains = (
                    f"{mean_of(than[some]) / mean_of(errors[some]):.3g}" for than in (auto, eden) for some in PARTS
                )
                print(
                    f"    {scheme.values}: {mean_of(errors[1:]):.2e}, last {mean_of(errors[-3:]):.2e}; "
                    + "auto over it {}, last {}; eden over it {}, last {}; ".format(*gains)
                    + f"at worst {np.max(errors[1:] / eden[1:]):.2f} of eden; {unresolved} unresolved",
                    flush=True,
                )


if __name__ == "__main__":
    main()
