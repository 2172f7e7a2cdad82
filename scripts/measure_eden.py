"""What values "eden-b" cost and gain: their error, their bias, against sparse values at equal bytes, and their speed.

    python scripts/measure_eden.py errors bias bytes peers feedback power speed

Everything goes through real bytes, three seeds each; the tables of docs/beyond.md. ``power`` needs Fashion-MNIST.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import sparsemean as sm
from sparsemean import theory
from sparsemean._names import FixedScheme, SchemeName, ValueName
from sparsemean._types import Doubles, Floats
from sparsemean.lab import datasets
from sparsemean.lab.byte_budget import finest_eden, largest_k
from sparsemean.lab.datasets import Images, splits
from sparsemean.lab.experiments.measures.correlated import correlated_vectors
from sparsemean.lab.tasks import PowerIteration
from sparsemean.lab.trace import play
from sparsemean.sampling import Key
from sparsemean.schemes import SIZELESS
from sparsemean.wire.frame import HEADER_BYTES
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import EDEN, PEERS, value_kind

SEEDS = range(3)
PEER_FAMILIES = ("rotated-b", "qsgd-b", "terngrad", "natural")


def round_trip(name: str, values: Floats, key: Key) -> tuple[Doubles, float]:
    """What comes back, and the variance that is stated, summed over values."""
    kind = value_kind(name)
    read, noise = kind.unpack(Reader(memoryview(kind.pack(values, key))), values.size, key)
    return read.astype(np.float64), float(np.sum(np.asarray(noise)))


def errors() -> Iterator[str]:
    """Error of a Gaussian vector relative to its energy, what is stated of it, and bits a value."""
    count, keys = 1 << 16, 20
    for bits in (1, 1.5, 2, 2.0625, 3, 4, 5, 6, 7, 8):
        name, measured, stated = f"eden-{bits:g}", 0.0, 0.0
        for seed in SEEDS:
            values = np.random.default_rng(seed).normal(size=count)
            for round in range(keys):
                read, said = round_trip(name, values, Key(seed, round, "a"))
                measured += float(np.sum((read - values) ** 2) / (values @ values))
                stated += said / float(values @ values)
        on_the_wire, trials = 8 * value_kind(name).size(count) / count, keys * len(SEEDS)
        yield (
            f"{name:11} {on_the_wire:.4f} bits: error {measured / trials:.6f}, formula {theory.eden_error(bits):.6f}, "
            f"stated / measured {stated / measured:.4f}"
        )


def bias() -> Iterator[str]:
    """Squared bias over energy, across the two entries of a vector that differ from 0, less what chance makes of it."""
    rounds = 8000
    for count in (512, 513, 768, 784, 1024, 2049, 4096):
        worst = 0.0
        for places in ((0, 1), (0, count - 1), (3, count // 2)):
            values = np.zeros(count)
            values[list(places)] = 1.0, 0.5
            across = np.array([-0.5, 1.0]) / math.sqrt(1.25)
            found = np.array(
                [round_trip("eden-1", values, Key(1, t, "a"))[0][list(places)] @ across for t in range(rounds)]
            )
            worst = max(worst, (found.mean() ** 2 - found.var() / rounds) / 1.25)
        chance = found.var() / rounds / 1.25
        yield f"{count} values, eden-1: squared bias {worst:.1e} of the energy; chance makes it vary by {chance:.1e}"


def equal_bytes() -> Iterator[str]:
    """One round of ten Gaussian vectors at 3.2 bits a coordinate, header included: error over ‖x‖²."""
    nodes, dim, rounds = 10, 65536, 4
    limit = int(0.4 * dim)
    sparse: tuple[FixedScheme, ...] = ("rand-k", "rand-k-spatial-adaptive", "rand-k-balanced")
    for ratio in (0.0, 4.5, 8.1, 8.9):
        yield f"R2/R1 = {ratio} of 9, {limit} bytes"
        kinds: tuple[ValueName, ...] = ("int8", "int4", "eden-4", "eden-6")
        pairs: list[tuple[SchemeName, ValueName]] = [(name, values) for name in sparse for values in kinds]
        for name, values in [("identity", finest_eden(dim, limit)), *pairs]:
            found, sizes, said = [], [], []
            for seed in SEEDS:
                vectors = correlated_vectors(nodes, dim, ratio, seed)
                k = dim if name == "identity" else largest_k(_with_k(name, values), limit, vectors, 1, 2)
                run = sm.Run(_with_k(name, values)(k), dim, seed)
                for estimate in sm.simulate(run, np.broadcast_to(vectors, (rounds, nodes, dim))):
                    if estimate.round:  # by then a decoder that learns has learnt
                        found.append(np.sum((estimate.mean - vectors.mean(axis=0)) ** 2))
                        sizes.append(estimate.bytes / nodes)
                        said.append(math.nan if estimate.error is None else estimate.error)
            yield (
                f"  {name} {values}: k/d {k / dim:.3f}, {statistics.mean(sizes):.0f} bytes, "
                f"error {statistics.mean(found):.5f}, stated {statistics.mean(said):.5f}"
            )


def _with_k(name: SchemeName, values: ValueName) -> Callable[[int], sm.Scheme]:
    return lambda k: sm.named(name, k, values=values)


FAMILIES: dict[str, tuple[ValueName, ...]] = {
    "eden-b": tuple(EDEN),
    "dithered integers": ("1-bit", "2-bit", "int4", "int8"),
    **{family: tuple(name for name in PEERS if name.startswith(family[:4])) for family in PEER_FAMILIES},
}


def peers() -> Iterator[str]:
    """One round of ten Gaussian vectors by EDEN and by others, error over ‖x‖²; the best b and k that fit."""
    nodes, dim = 10, 65536
    for bits in (1.02, 2.02, 3.2, 4.02):
        limit = int(bits * dim / 8)
        yield f"{bits} bits a coordinate, {limit} bytes, header included"
        for family, kinds in FAMILIES.items():
            tried = (finest_eden(dim, limit),) if family == "eden-b" else kinds
            yield "  " + min((_one_round(nodes, dim, limit, values) for values in tried), key=lambda each: each[0])[1]
        others: tuple[tuple[SchemeName, ValueName], ...] = (
            ("error-feedback-chunked-top-k", "2-bit"),
            ("error-feedback-sign", "float32"),
        )
        for name, values in others:
            if sm.Run(sm.named(name, 1, values=values), dim).payload_bytes <= limit:
                yield "  first round of " + _one_round(nodes, dim, limit, values, name)[1]


def _one_round(nodes: int, dim: int, limit: int, values: ValueName, name: SchemeName = "rand-k") -> tuple[float, str]:
    k = largest_k(_with_k(name, values), limit, np.zeros((1, dim)), 1, 1)
    whole, found, said, sizes = k == dim and name == "rand-k", [], [], []
    scheme = sm.named("identity", values=values) if whole else _with_k(name, values)(k)
    for seed in SEEDS:
        vectors = np.random.default_rng(seed).normal(size=(nodes, dim))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        estimate = sm.estimate_mean(vectors, scheme, seed=seed)
        found.append(float(np.sum((estimate.mean - vectors.mean(axis=0)) ** 2)))
        said.append(math.nan if estimate.error is None else estimate.error)
        sizes.append(estimate.bytes / nodes)
    error = statistics.mean(found)
    called = f"{'identity' if whole else name} {values}, k/d {k / dim:.3f}"
    return error, f"{called}, {statistics.mean(sizes):.0f} bytes: error {error:.5f}, stated {statistics.mean(said):.5f}"


def feedback() -> Iterator[str]:
    """Ten Gaussian vectors for 40 rounds at about one bit: error over ‖x‖² of the last and of the mean of all."""
    nodes, dim, rounds = 10, 65536, 40
    limit = int(1.02 * dim / 8)
    pairs: tuple[tuple[SchemeName, ValueName], ...] = (
        ("error-feedback-chunked-top-k", "2-bit"),
        ("error-feedback-chunked-top-k", "int8"),
        ("error-feedback-top-k", "2-bit"),
        ("error-feedback-sign", "float32"),
        ("identity", "eden-1"),
        ("diana", "eden-4"),
    )
    for name, values in pairs:
        last, mean = [], []
        for seed in SEEDS:
            vectors = np.random.default_rng(seed).normal(size=(nodes, dim))
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            truth = vectors.mean(axis=0)
            k = dim if name in SIZELESS else largest_k(_with_k(name, values), limit, vectors, 1, 2)
            run = sm.Run(_with_k(name, values)(k), dim, seed)
            played = list(sm.simulate(run, np.broadcast_to(vectors, (rounds, nodes, dim))))
            last.append(float(np.sum((played[-1].mean - truth) ** 2)))
            mean.append(float(np.sum((np.mean([each.mean for each in played], axis=0) - truth) ** 2)))
        size = played[-1].bytes / nodes
        yield (
            f"  {name} {values}, k/d {k / dim:.3f}, {size:.0f} bytes: error of the last round "
            f"{statistics.mean(last):.1e}, of the mean of all {statistics.mean(mean):.1e}"
        )


def power() -> Iterator[str]:
    """Power iteration on Fashion-MNIST, 100 nodes, about one bit a coordinate: error at rounds 3 / 10 / 40."""
    images = datasets.load("fashion-mnist")
    assert isinstance(images, Images)
    for split in ("iid", "non-iid"):
        traces: dict[str, list[Doubles]] = {}
        for seed in SEEDS:
            rng = np.random.default_rng(seed)
            of_nodes = (
                splits.iid(len(images.train_x), 100, rng)
                if split == "iid"
                else splits.shards(images.train_y, 100, rng, shards_per_node=2)
            )
            task = PowerIteration([images.train_x[part] for part in of_nodes])
            cases: tuple[tuple[SchemeName, int | None, ValueName], ...] = (
                ("identity", None, "eden-1"),
                ("identity", None, "1-bit"),
                ("rand-k-hybrid", 96, "int8"),
                ("rand-k-hybrid", 192, "int4"),
                ("rand-k-hybrid", 784, "eden-1"),
                ("rand-k-balanced-hybrid", 96, "int8"),
            )
            for name, k, values in cases:
                scheme = sm.named(name, values=values) if k is None else sm.named(name, k, values=values)
                trace = play(task, scheme, 40, seed)
                own = f"{name} {values}, {trace.bytes_per_node[1] - HEADER_BYTES:.0f} bytes of values"
                traces.setdefault(own, []).append(trace.mse[[2, 9, 39]])
        for own, found in traces.items():
            yield f"  {split} {own}: " + " / ".join(f"{error:.1e}" for error in np.mean(found, axis=0))


def speed() -> Iterator[str]:
    """Least processor time, over all threads, to write and to read 2²⁰ values, and NumPy's to transform as many."""
    values = np.random.default_rng(0).normal(size=1 << 20).astype(np.float32)
    plain = _least(lambda: _hadamard(values))
    yield f"a fast Hadamard transform in NumPy, float32: {1e3 * plain:.1f} ms"
    key = Key(1, 2, "a")
    for name in ("eden-1", "eden-1.5", "eden-3", "eden-4", "eden-8", "int8", "1-bit"):
        kind = value_kind(name)
        blob = memoryview(kind.pack(values, key))
        there = _least(partial(kind.pack, values, key))
        back = _least(partial(_read, name, blob, values.size, key))
        ratio = plain / (there + back)
        yield f"{name}: writes in {1e3 * there:.1f} ms, reads in {1e3 * back:.1f} ms; {ratio:.1f} times less in all"


def _read(name: str, blob: memoryview, count: int, key: Key) -> None:
    value_kind(name).unpack(Reader(blob), count, key)


def _hadamard(values: Floats) -> Floats:
    transformed, half = values.copy(), 1
    while half < values.size:
        table = transformed.reshape(-1, 2, half)
        table[:, 0], table[:, 1] = table[:, 0] + table[:, 1], table[:, 0] - table[:, 1]
        half *= 2
    return transformed


def _least(work: Callable[[], object]) -> float:
    times = []
    for _ in range(50):
        start = time.process_time()  # which other programs hardly change
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    """Print the tables that are named, or all."""
    tables = {
        "errors": errors,
        "bias": bias,
        "bytes": equal_bytes,
        "peers": peers,
        "feedback": feedback,
        "power": power,
        "speed": speed,
    }
    for name in sys.argv[1:] or tables:
        print(f"{name}: {(tables[name].__doc__ or '').strip()}")
        for line in tables[name]():
            print(line, flush=True)


if __name__ == "__main__":
    main()
