"""Compare what two checkouts of the project compute, to the bit, through public names alone.

    python scripts/compare_checkouts.py ../before .

Every named scheme is played for some rounds with several value kinds, blocks, weights, absent nodes and node counts,
with numba and without. Of each game the run's digest and text, every payload, every field of every estimate and what
the server expects at the end are hashed; the names of games whose hashes differ are printed, with exit code 1.
A refactoring leaves all of them as they were.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import itertools
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROUNDS = 5
WITHOUT_NUMBA = "sys.modules['numba'] = None; "  # which makes importing it fail


def games() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and settings of each game."""
    import sparsemean as sm

    for name, values in itertools.product(sm.names(), ("float32", "int8", "float16", "1-bit")):
        yield f"{name} {values}", {"name": name, "values": values, "dim": 300, "nodes": 7}
    for name in sm.names():
        yield f"{name} blocks", {"name": name, "values": "float32", "dim": 300, "nodes": 5, "blocks": (1, 200, 99)}
        yield f"{name} carry", {"name": name, "values": "float32", "dim": 300, "nodes": 5, "missing": "carry"}
        yield f"{name} long", {"name": name, "values": "float32", "dim": 300_000, "nodes": 3}
        yield f"{name} clip", {"name": name, "values": "int8", "dim": 300, "nodes": 5, "clip": 3.0}


def play(name: Any, values: Any, dim: int, nodes: int, **settings: Any) -> str:
    """The hash of all that a game shows."""
    import numpy as np

    import sparsemean as sm

    shown = hashlib.sha256()

    def show(value: Any) -> None:
        if isinstance(value, np.ndarray):
            value = (value.dtype.str, value.shape, hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest())
        elif dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                held = getattr(value, field.name)
                if held is not field.default:  # the other checkout may not have this field
                    show(field.name)
                    show(held)
            return
        shown.update(repr(value).encode())

    try:
        k = {} if name == "identity" else {"k": 0.1}
        run = sm.Run(sm.named(name, **k, values=values), dim, seed=5, blocks=settings.get("blocks"))
        clip = sm.Clip(norm=settings["clip"]) if "clip" in settings else None
        server = sm.Server(run, missing=settings.get("missing", "drop"), clip=clip)
    except sm.SparseMeanError as refused:
        return type(refused).__name__
    show(run.digest)
    show(run.to_json())
    show(run.payload_bytes)
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(nodes, dim)) + 3 * rng.normal(size=dim)
    clients = [sm.Client(run, f"node-{i}") for i in range(nodes)]
    for round in range(ROUNDS):
        vectors += 0.1 * rng.normal(size=vectors.shape)
        for i, client in enumerate(clients):
            if round and (i + round) % 4 == 0:
                continue
            plan = {"plan": server.plan(client.node)} if getattr(run, "planned", False) else {}
            blob = client.encode(vectors[i], round, **plan)
            show(blob)
            client.delivered(server.accept(f"node-{i}", blob, weight=1.0 + i % 3))
        show(server.close_round())
    for client in clients:
        show(server.expected(client.node))
    return shown.hexdigest()


def record() -> None:
    """Print the hashes of all games of the checkout on the path."""
    warnings.simplefilter("ignore")
    print(json.dumps({name: play(**settings) for name, settings in games()}))


def recorded(checkout: Path, numba: bool) -> dict[str, str]:
    """The hashes of a checkout, from a process of its own."""
    code = f"import sys; {'' if numba else WITHOUT_NUMBA}import compare_checkouts; compare_checkouts.record()"
    path = os.pathsep.join([str(checkout.resolve() / "src"), str(Path(__file__).resolve().parent)])
    found = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, check=True, stdout=subprocess.PIPE
    )
    hashes: dict[str, str] = json.loads(found.stdout)
    return hashes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    chosen = parser.parse_args()
    differ = 0
    for numba in (True, False):
        before, after = recorded(chosen.before, numba), recorded(chosen.after, numba)
        both = [name for name in before if name in after]
        different = [name for name in both if before[name] != after[name]]
        print(
            f"{'with' if numba else 'without'} numba: {len(both)} games of both, {len(different)} differ",
            *different,
            sep="\n  ",
        )
        differ += len(different)
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
