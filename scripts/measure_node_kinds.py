"""What a node may know decides the error: power iteration on every fourth Fashion-MNIST image, 100 nodes, equal bytes.

    python scripts/measure_node_kinds.py [--seeds 3] [--data FOLDER]

All schemes have the bytes of a frame of whole vectors with 1 and with 2 bits a value, header included. Printed is
‖estimate − mean‖² at rounds 3, 10 and 40, averaged over seeds, as in docs/beyond.md.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import sparsemean as sm
from sparsemean._names import SchemeName, ValueName
from sparsemean.lab import datasets
from sparsemean.lab.datasets import Images
from sparsemean.lab.tasks.power_iteration import PowerIteration
from sparsemean.lab.trace import play
from sparsemean.wire.values import value_name

NODES, ROUNDS, SHOWN = 100, 41, (3, 10, 40)


def schemes(bits: int, dim: int) -> dict[str, sm.Scheme]:
    """By what a node keeps or knows, all within the bytes of eden-1 or eden-2."""
    values, whole = value_name(f"eden-{bits}"), sm.Identity()
    room = sm.Run(sm.Scheme(whole, values=values), dim).payload_bytes
    by_name: list[tuple[SchemeName, ValueName]] = [
        ("rand-k-spatial-adaptive", "int8"),
        ("rand-k-hybrid", "int8"),
        ("rand-k-epochs-hybrid", "int8"),
    ]
    return {
        f"nothing: {values}": sm.Scheme(whole, values=values),
        **{f"nothing: {name} {kind}": _within(name, dim, room, kind) for name, kind in by_name},
        f"the broadcast: Relative, {values}": sm.Scheme(sm.Relative(whole), values=values),
        f"a vector: Difference, {values}": sm.Scheme(sm.Difference(whole), memory=sm.Offset(), values=values),
    }


def _within(name: SchemeName, dim: int, room: int, values: ValueName) -> sm.Scheme:
    return sm.Run.for_bytes(name, dim, room, values=values).scheme


def task(images: Images, split: str, seed: int) -> PowerIteration:
    """Pictures dealt out at random, or by class."""
    x, y = images.train_x[::4], images.train_y[::4]
    order = np.random.default_rng(seed).permutation(len(x)) if split == "IID" else np.argsort(y, kind="stable")
    return PowerIteration([x[part] for part in np.array_split(order, NODES)])


def main() -> None:
    """Print a line for each split, number of bits and scheme."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    images = datasets.load("fashion-mnist", given.data)
    assert isinstance(images, Images)
    for split in ("IID", "non-IID"):
        tasks = [task(images, split, seed) for seed in range(given.seeds)]
        for bits in (1, 2):
            for name, scheme in schemes(bits, tasks[0].dim).items():
                traces = [play(each, scheme, ROUNDS, seed) for seed, each in enumerate(tasks)]
                errors = np.mean([trace.mse for trace in traces], axis=0)
                size = np.mean([np.mean(trace.bytes_per_node) for trace in traces])
                shown = " / ".join(f"{errors[round]:.1e}" for round in SHOWN)
                print(f"{split:7} {bits} bit, {size:.0f} bytes  {name:40} {shown}", flush=True)


if __name__ == "__main__":
    main()
