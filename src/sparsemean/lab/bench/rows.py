"""Encode at one node and a whole round at the server, against what one would write without this library."""

from __future__ import annotations

import importlib
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sparsemean.client import Client
from sparsemean.lab.bench.timing import Work, in_turn
from sparsemean.payload import Floats
from sparsemean.results import Estimate
from sparsemean.run import Run
from sparsemean.schemes import named
from sparsemean.server import Server

ENCODE, ROUND = "encode", "server round"


@dataclass(frozen=True)
class Case:
    """One size: a scheme for n nodes with vectors of length d, of which each sends the share k/d."""

    scheme: str
    dim: int
    share: float
    nodes: int
    values: str = "float32"

    @property
    def run(self) -> Run:
        """The run that is measured; the seed does not matter."""
        return Run(named(self.scheme, max(1, int(self.share * self.dim)), values=self.values), self.dim)


@dataclass(frozen=True)
class Row:
    """``ratio`` is how many times as fast as the baseline we are, [low, high] its range over the quartiles."""

    case: Case
    what: str
    baseline: str
    seconds: float
    baseline_seconds: float
    ratio: float
    low: float
    high: float
    peak_bytes: int


def bench(cases: Sequence[Case], repeats: int = 7) -> Iterator[Row]:
    """The rows of each case; arrays that do not fit into memory are the caller's to leave out."""
    for case in cases:
        vectors = np.random.default_rng(0).standard_normal((case.nodes, case.dim), np.float32)
        yield from _rows(case, ENCODE, _encoding(case, vectors), repeats)
        yield from _rows(case, ROUND, _serving(case, vectors), repeats)


def _rows(case: Case, what: str, works: dict[str, Work], repeats: int) -> Iterator[Row]:
    peak = _peak(works["ours"])
    timings = in_turn(works, repeats)
    ours = timings.pop("ours")
    for baseline, theirs in timings.items():
        times = (
            ours.median,
            theirs.median,
            theirs.median / ours.median,
            theirs.low / ours.high,
            theirs.high / ours.low,
        )
        yield Row(case, what, baseline, *times, peak)


def _peak(work: Work) -> int:
    """Bytes allocated at the worst moment, beyond what was there before."""
    work()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _encoding(case: Case, vectors: Floats) -> dict[str, Work]:
    run, rng = case.run, np.random.default_rng(1)
    client, k = Client(run, "0"), run.layout[0].count

    def choose_and_gather() -> bytes:
        chosen = rng.choice(case.dim, k, replace=False, shuffle=False)
        return bytes(vectors[0, chosen].tobytes())

    return {
        "ours": lambda: client.encode(vectors[0], 0),
        "Generator.choice and gather": choose_and_gather,
        "copy of the vector": lambda: vectors[0].copy(),
    }


def _serving(case: Case, vectors: Floats) -> dict[str, Work]:
    run, rng = case.run, np.random.default_rng(1)
    k, nodes, dim = run.layout[0].count, case.nodes, case.dim
    blobs = [Client(run, str(i)).encode(vector, 0) for i, vector in enumerate(vectors)]

    def server_round() -> Estimate:
        server = Server(run)
        for i, blob in enumerate(blobs):
            server.accept(str(i), blob)
        return server.close_round()

    def choose_and_add_at() -> Floats:
        sums, counts = np.zeros(dim, np.float32), np.zeros(dim, np.int32)
        for vector in vectors:
            chosen = rng.choice(dim, k, replace=False, shuffle=False)
            np.add.at(sums, chosen, vector[chosen])
            np.add.at(counts, chosen, 1)
        return sums

    def choose_and_bincount() -> object:
        chosen = np.concatenate([rng.choice(dim, k, replace=False, shuffle=False) for _ in range(nodes)])
        sent = np.concatenate([vector[:k] for vector in vectors])
        np.bincount(chosen, minlength=dim)
        return np.bincount(chosen, sent, dim)

    works: dict[str, Work] = {
        "ours": server_round,
        "choice and np.add.at": choose_and_add_at,
        "choice and np.bincount": choose_and_bincount,
        "dense mean": lambda: vectors.mean(axis=0),
    }
    return works | _scipy(vectors, k) | _torch(vectors, k)


def _scipy(vectors: Floats, k: int) -> dict[str, Work]:
    try:
        from scipy import sparse
    except ImportError:
        return {}
    rng, dim = np.random.default_rng(1), vectors.shape[1]
    chosen = np.concatenate([np.sort(rng.choice(dim, k, replace=False)) for _ in vectors])
    sent = np.concatenate([vector[:k] for vector in vectors])
    table = sparse.csr_matrix((sent, chosen, np.arange(0, sent.size + 1, k)), (len(vectors), dim))
    return {"scipy.sparse sum, indices given": lambda: table.sum(axis=0)}


def _torch(vectors: Floats, k: int) -> dict[str, Work]:
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return {}
    rng, dim = np.random.default_rng(1), vectors.shape[1]
    chosen = [torch.from_numpy(rng.choice(dim, k, replace=False)) for _ in vectors]
    sent = [torch.from_numpy(vector[:k].copy()) for vector in vectors]

    def index_add() -> object:
        sums = torch.zeros(dim)
        for at, values in zip(chosen, sent, strict=True):
            sums.index_add_(0, at, values)
        return sums

    return {"torch index_add_, indices given": index_add}
