"""Write the golden journals in ``tests/golden/journal``: what servers of that journal version left behind.

Run it once when the journal version is new, and again only for a case that has no golden journal yet:

    python scripts/make_golden_journals.py

A file that exists is never written again: every later version must open these journals and go on.

Each ``<name>.zip`` is the folder of a journal; ``<name>.json`` beside it says what its server knew, and what it
answered when it went on; the payloads that it was sent then can be made again with ``Nodes``. The cases are every kind
of memory, each between two rounds with its server closed (``-between``), and in the middle of a round as a crash leaves
it (``-open``); ``shards`` is a server of two shards in the middle of a round.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import sparsemean as sm
from sparsemean._names import SchemeName
from sparsemean.journal.survey import VERSION
from sparsemean.schemes import scheme_name

FOLDER = Path(__file__).parent.parent / "tests" / "golden" / "journal" / f"v{VERSION}"
DIM, SEED, NODES = 40, 11, ("a", "b", "Göteborg 7")
MEMORIES = (
    "rand-k-spatial-avg",
    "rand-k-spatial-adaptive-unbiased",
    "rand-k-temporal",
    "rand-k-temporal-window",
    "rand-k-temporal-stale",
    "rand-k-temporal-shared-stable",
    "rand-k-temporal-shared",
    "rand-k-hybrid",
    "top-k-temporal",
    "diana",
    "lag",
)


def run_of(name: SchemeName) -> sm.Run:
    """A small run with two blocks; the share is large enough that a shared memory does not diverge."""
    return sm.Run(sm.named(name, k=0.5), DIM, SEED, blocks=[15, 25])


def vector(node: str, round: int, dim: int) -> list[float]:
    """Multiples of 1/64, which every node, round and coordinate has other ones of.

    >>> vector("a", 0, 3)
    [0.84375, 0.9375, -1.015625]
    """
    return [((37 * len(node) + 13 * ord(node[0]) + 29 * round + 6 * j) % 131 - 65) / 64 for j in range(dim)]


class Nodes:
    """The clients of a run, and what they send."""

    def __init__(self, run: sm.Run) -> None:
        self.clients = {node: sm.Client(run, node) for node in NODES}

    def send(self, server: sm.Server, nodes: tuple[str, ...] = NODES) -> None:
        """One payload from each of these nodes, with a weight of its own in the first block."""
        for node in nodes:
            blob = self.clients[node].encode(vector(node, server.round, server.run.dim), server.round)
            self.clients[node].delivered(server.accept(node, blob, [1.0 + len(node) / 8, 1.0]))


def begin(server: sm.Server, nodes: Nodes) -> None:
    """Three rounds, of which one is skipped and one lacks a node."""
    nodes.send(server)
    server.close_round()
    nodes.send(server, NODES[:2])
    server.skip_round()
    nodes.send(server)
    server.close_round()


def go_on(server: sm.Server, nodes: Nodes, waiting: bool) -> Iterator[sm.Estimate]:
    """The open round, to which the last node is still to come where others wait, and one more."""
    nodes.send(server, NODES[2:] if waiting else NODES)
    yield server.close_round()
    nodes.send(server)
    yield server.close_round()


def story(server: sm.Server, nodes: Nodes, waiting: bool) -> dict[str, Any]:
    """What the server knows, and what it answers when it goes on."""
    last = server.last_estimate()
    known = {
        "run": json.loads(server.run.to_json()),
        "round": server.round,
        "waiting": list(NODES[:2]) if waiting else [],
        "expected": {node: server.expected(node).tolist() for node in NODES},
        "last": None if last is None else last.mean.tolist(),
    }
    return {**known, "next": [told(estimate) for estimate in go_on(server, nodes, waiting)]}


def told(estimate: sm.Estimate) -> dict[str, Any]:
    """An estimate as JSON."""
    return {"round": estimate.round, "mean": estimate.mean.tolist(), "error": estimate.error, "bytes": estimate.bytes}


def saved(folder: Path) -> dict[str, bytes]:
    """Every file of a journal but SQLite's index of its write-ahead log, which it makes anew."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith("-shm"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def journal(name: SchemeName, waiting: bool, folder: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files of a journal, and its story."""
    run = run_of(name)
    nodes = Nodes(run)
    server = sm.Server(run, journal=folder)
    begin(server, nodes)
    if waiting:
        nodes.send(server, NODES[:2])
        files = saved(folder)
    else:
        server.close()
        files = saved(folder)
        server = sm.Server(run, journal=folder)
    found = story(server, nodes, waiting)
    server.close()
    return files, found


def shards(folder: Path) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The same of a server of two shards in Ray, in the middle of a round."""
    import ray

    from sparsemean.integrations.ray import RayServer

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    run = sm.Run(sm.named("rand-k-temporal", k=20), 5000, SEED, blocks=[3000, 2000])
    nodes = Nodes(run)
    server = RayServer(run, 2, journal=folder)
    begin(server, nodes)
    nodes.send(server, NODES[:2])
    files = saved(folder)
    found = story(server, nodes, waiting=True)
    server.close()
    ray.shutdown()
    return files, found


def write(name: str, files: Mapping[str, bytes], found: Mapping[str, Any]) -> None:
    """Both files of a case."""
    with zipfile.ZipFile(FOLDER / f"{name}.zip", "x", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content, zipfile.ZIP_DEFLATED)
    with (FOLDER / f"{name}.json").open("x", encoding="utf-8") as file:
        lines = (f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in found.items())
        file.write("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{name}: {(FOLDER / f'{name}.zip').stat().st_size} bytes")


def main() -> None:
    """Write what is not there yet."""
    np.seterr(all="raise")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in MEMORIES:
        for waiting in (False, True):
            case = f"{name}-{'open' if waiting else 'between'}"
            if not (FOLDER / f"{case}.zip").exists():
                with tempfile.TemporaryDirectory() as folder:
                    write(case, *journal(scheme_name(name), waiting, Path(folder)))
    if not (FOLDER / "shards.zip").exists():
        with tempfile.TemporaryDirectory() as folder:
            write("shards", *shards(Path(folder)))


if __name__ == "__main__":
    main()
