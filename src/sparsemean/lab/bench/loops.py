"""Speed of the inner loops alone, on one thread and on all: drawing and gathering, drawing and summing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np

from sparsemean._types import Floats
from sparsemean.kernels import Batch, Totals, fold, gather, scatter
from sparsemean.kernels.parallel_map import cores, parallel_map
from sparsemean.kernels.sample import drawn
from sparsemean.lab.bench.baselines import DENSE, NUMPY, TUNED, of_decoding, of_encoding
from sparsemean.lab.bench.case import Case
from sparsemean.lab.bench.machine import Others, free_memory
from sparsemean.lab.bench.measurement import Measurement
from sparsemean.lab.bench.player import vectors_for
from sparsemean.lab.bench.timing import Timing, Work, clock_of, in_turn
from sparsemean.sampling import Key, sample_of

GATHER, SUM_ONE, SUM_ALL = "draw and gather, 1 thread", "draw and sum, 1 thread", "draw and sum, all cores"
HASH_ONE, HASH_ALL = "SHA-256, 1 thread", "SHA-256, all cores"
GIVEN, ONE = "indices given", "1 thread"


def loop_rows(case: Case, repeats: int = 7) -> Iterator[Measurement]:
    """Sums and counts alone, without frames, checks or moments; vectors, totals and samples are there already.

    Each is timed right after it ran before: else who runs after whom would decide what is in the caches. What all cores
    together can do here, whatever the loop, is told by one that needs neither memory nor us: a hash.
    """
    others, vectors = Others(), vectors_for(case, free_memory())
    encoding = {name: of_encoding(case, vectors)[name] for name in (NUMPY, TUNED)}
    timings = _timed({GATHER: _gathering(case, vectors), **encoding}, repeats)
    yield Measurement(GATHER, case, timings.pop(GATHER), timings, others=others.cores())
    others, decoding = Others(), of_decoding(case, vectors)
    timings = _timed({**_summing(case, vectors), **_hashing(), DENSE: decoding[DENSE]}, repeats)
    hash_one, hash_all = timings.pop(HASH_ONE), timings.pop(HASH_ALL)
    timings |= _timed({name: decoding[name] for name in (NUMPY, TUNED)}, repeats)  # by itself, as it takes far longer
    one, every = timings.pop(SUM_ONE), timings.pop(SUM_ALL)
    yield Measurement(SUM_ONE, case, one, timings, others=others.cores())
    yield Measurement(SUM_ALL, case, every, {ONE: one, DENSE: timings[DENSE]}, others=others.cores())
    yield Measurement(HASH_ALL, case, hash_all, {ONE: hash_one}, others=others.cores())


def _timed(works: dict[str, Work], repeats: int) -> dict[str, Timing]:
    return in_turn([clock_of(name, work, twice=True) for name, work in works.items()], repeats, longest=15.0)


def _gathering(case: Case, vectors: Floats) -> Work:
    sample, out = sample_of(Key(0, 0, "0"), case.dim, case.k), np.empty(case.k, np.float32)
    return lambda: gather(sample, vectors[0], out)


def _hashing() -> dict[str, Work]:
    def piece(data: bytes) -> None:
        hashlib.sha256(data).digest()

    pieces = [bytes(1 << 20)] * 16
    return {HASH_ONE: lambda: parallel_map(piece, pieces, 1), HASH_ALL: lambda: parallel_map(piece, pieces, cores())}


def _summing(case: Case, vectors: Floats) -> dict[str, Work]:
    samples = [sample_of(Key(0, 0, str(i)), case.dim, case.k) for i in range(case.nodes)]
    values = [vectors[i % len(vectors), : case.k].copy() for i in range(case.nodes)]
    nothing, first = np.zeros(0), np.zeros(1, np.int64)
    sums, counts = np.zeros(case.dim), np.zeros(case.dim, np.int32)
    into = Totals(sums, counts, nothing, first[:0], nothing, nothing, nothing)
    batch = Batch(samples, values, [None] * case.nodes, np.ones((case.nodes, 1)), first, case.dim / case.k)
    given = [(drawn(sample), each.astype(np.float64)) for sample, each in zip(samples, values, strict=True)]

    def add_given() -> None:
        for chosen, y in given:
            scatter(sums, counts, chosen, y)

    return {SUM_ONE: lambda: fold(into, batch, 1), SUM_ALL: lambda: fold(into, batch, cores()), GIVEN: add_given}
