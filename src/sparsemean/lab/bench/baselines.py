"""Baselines: what one would write without this library, and lower limits that no library can beat."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np

from sparsemean._types import Floats, Ints
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.timing import Work

NUMPY, TUNED, BINCOUNT, SCIPY, TORCH = "NumPy", "tuned NumPy", "bincount", "scipy", "torch"
DENSE, LIMIT, ARGPARTITION, FLOAT32, SHORTER = "dense", "limit", "argpartition", "float32", "half as long"
PIECE = 1 << 29  # bytes

MEANING = {
    NUMPY: "Generator.choice, then a gather at the node, np.add.at of sums and counts at the server, as one writes it",
    TUNED: "the same by choice(shuffle=False) and np.add.at(counts, chosen, np.int32(1)), which spare NumPy detours",
    BINCOUNT: "choice(shuffle=False), then np.bincount of sums and of counts",
    SCIPY: "scipy.sparse: the sum of a CSR matrix, indices given, sums only",
    TORCH: "torch index_add_, indices given, sums only",
    DENSE: "the mean of the whole vectors, ndarray.mean(axis=0)",
    LIMIT: "memcpy of as many bytes as have to be touched",
    ARGPARTITION: "np.argpartition of the magnitudes, then a gather",
    FLOAT32: "the same scheme with float32 values",
    SHORTER: "the same scheme with vectors half as long",
}


def of_encoding(case: Case, vectors: Floats) -> dict[str, Work]:
    """For one vector, whatever the scheme."""
    vector, plain, tuned = vectors[0], _choice(case, shuffle=True), _choice(case, shuffle=False)
    return {NUMPY: lambda: vector[plain()].tobytes(), TUNED: lambda: vector[tuned()].tobytes()}


def of_decoding(case: Case, vectors: Floats) -> dict[str, Work]:
    """For the payloads of all nodes, whatever the scheme; the dense mean where there are as many vectors as nodes."""
    nodes, dim, choose = case.nodes, case.dim, _choice(case, shuffle=False)
    sent = [vectors[i % len(vectors), : case.k].copy() for i in range(nodes)]

    def add_at(choose: Callable[[], Ints], one: int | np.int32) -> Floats:
        sums, counts = np.zeros(dim, np.float32), np.zeros(dim, np.int32)
        for values in sent:
            chosen = choose()
            np.add.at(sums, chosen, values)
            np.add.at(counts, chosen, one)
        return sums

    def bincount() -> object:
        chosen = np.concatenate([choose() for _ in range(nodes)])
        return np.bincount(chosen, np.concatenate(sent), dim), np.bincount(chosen, minlength=dim)

    plain = _choice(case, shuffle=True)
    works: dict[str, Work] = {
        NUMPY: lambda: add_at(plain, 1),
        TUNED: lambda: add_at(choose, np.int32(1)),
        BINCOUNT: bincount,
    }
    given = [np.sort(choose()) for _ in range(nodes)]
    works |= _scipy(given, sent, dim) | _torch(given, sent, dim)
    return works | ({DENSE: lambda: vectors[:nodes].mean(axis=0)} if len(vectors) >= nodes else {})


def of_largest(case: Case, vectors: Floats) -> Work:
    """For an encoder that sends the k largest entries."""
    vector, rest = vectors[0], case.dim - case.k
    return lambda: vector[np.argpartition(np.abs(vector), rest)[rest:]].tobytes()


def copy_of(touched: int) -> Work:
    """Copies that read half as many bytes and write half as many, in pieces that no cache holds."""
    half = max(1, touched // 2)
    pieces = -(-half // PIECE)
    source = np.ones(half // pieces, np.uint8)
    target = np.empty_like(source)

    def copy() -> None:
        for _ in range(pieces):
            np.copyto(target, source)

    return copy


def _choice(case: Case, shuffle: bool) -> Callable[[], Ints]:
    rng = np.random.default_rng(1)

    def choose() -> Ints:
        chosen: Ints = rng.choice(case.dim, case.k, replace=False, shuffle=shuffle)
        return chosen

    return choose


def _scipy(given: list[Ints], sent: list[Floats], dim: int) -> dict[str, Work]:
    try:
        from scipy import sparse
    except ImportError:
        return {}
    ends = np.arange(0, len(sent) * sent[0].size + 1, sent[0].size)
    table = sparse.csr_matrix((np.concatenate(sent), np.concatenate(given), ends), (len(sent), dim))
    return {SCIPY: lambda: table.sum(axis=0)}


def _torch(given: list[Ints], sent: list[Floats], dim: int) -> dict[str, Work]:
    try:
        torch = import_module("torch")
    except ImportError:
        return {}
    pairs = [(torch.from_numpy(at), torch.from_numpy(values)) for at, values in zip(given, sent, strict=True)]

    def index_add() -> object:
        sums = torch.zeros(dim)
        for at, values in pairs:
            sums.index_add_(0, at, values)
        return sums

    return {TORCH: index_add}
