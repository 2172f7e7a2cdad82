"""Rand-Proj-Spatial (Jiang et al. 2023) beside balanced draws at equal bytes: errors, and what a server computes.

    python scripts/measure_rand_proj.py errors|absent|seconds|scale

``errors``: ten unit vectors, every two with the same product, d = 256 and 1,024; error over ‖x‖² in single rounds,
means over trials, all by 64 + 4k bytes a node. Opt is told R2/R1. ``absent``: the same with k = 0.3d, where some of the
ten do not answer; the error is that of the mean of the others. ``seconds``: processor time of a server for a round.
``scale``: β̄ of the limit of long vectors over that of drawn eigenvalues. As in docs/beyond.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from time import process_time

import numpy as np

import sparsemean as sm
from sparsemean._types import Doubles
from sparsemean.lab.peers import Projections, RandProjSpatial, relative_error, unbiased_scale

NODES, RATIOS = 10, (0.0, 0.5, 0.9, 0.99, 1.0)


def vectors_with(ratio: float, dim: int, rng: np.random.Generator) -> Doubles:
    """Unit vectors with (R2/R1)/(n − 1) = ratio, of which every two have this product.

    >>> x = vectors_with(0.9, 64, np.random.default_rng(0))
    >>> bool(np.allclose(x @ x.T, 0.1 * np.eye(NODES) + 0.9))
    True
    """
    common, *own = np.linalg.qr(rng.normal(size=(dim, NODES + 1)))[0].T
    made: Doubles = math.sqrt(ratio) * common + math.sqrt(1.0 - ratio) * np.array(own)
    return made


def estimators(k: int, dim: int, ratio: float) -> dict[str, Callable[[Doubles, int], Doubles]]:
    """By name, functions of the vectors and a seed, all with as many bytes."""
    told = ratio * (NODES - 1)
    ours = {
        "rand-k": sm.Scheme(sm.RandK(k)),
        "Spatial(Opt)": sm.Scheme(sm.RandK(k), sm.Spatial(told)),
        "balanced, Opt": sm.Scheme(sm.RandK(k, draw=sm.Balanced()), sm.Spatial(told)),
        "balanced, Avg": sm.Scheme(sm.RandK(k, draw=sm.Balanced()), sm.Spatial("avg")),
    }
    peers = {f"Rand-Proj-Spatial({name})": RandProjSpatial(k, T) for name, T in (("Opt", told), ("Avg", "avg"))}
    sizes = {sm.Run(scheme, dim).payload_bytes for scheme in ours.values()} | {p.payload_bytes for p in peers.values()}
    assert sizes == {64 + 4 * k}

    def played(scheme: sm.Scheme) -> Callable[[Doubles, int], Doubles]:
        return lambda vectors, seed: sm.estimate_mean(vectors, scheme, seed).mean

    def drawn(peer: RandProjSpatial) -> Callable[[Doubles, int], Doubles]:
        return lambda vectors, seed: peer.estimate(vectors, np.random.default_rng(seed))

    return {name: played(each) for name, each in ours.items()} | {name: drawn(each) for name, each in peers.items()}


def errors(trials: int = 40) -> None:
    """A line for each d, k and estimator, with the error at every ratio; a quarter of the trials at d = 1,024."""
    for dim in (256, 1024):
        for share in (0.05, 0.1, 0.25, 0.3):
            k, found = round(share * dim), dict[str, list[str]]()
            for ratio in RATIOS:
                for name, estimate in estimators(k, dim, ratio).items():
                    errors = []
                    for seed in range(max(trials * 256 // dim, 4)):
                        vectors = _vectors(ratio, dim, seed)
                        errors.append(float(np.sum((estimate(vectors, seed) - vectors.mean(axis=0)) ** 2)))
                    spread = np.std(errors, ddof=1) / math.sqrt(len(errors))
                    found.setdefault(name, []).append(f"{np.mean(errors):9.3g} ± {spread:.0e}")
                limits = [relative_error(NODES, k / dim, r, ratio) for r in (ratio, NODES / 2 / (NODES - 1))]
                found.setdefault("  in the limit: Opt, Avg", []).append(f"{limits[0]:9.3g}, {limits[1]:.3g}")
            for name, cells in found.items():
                print(f"d = {dim}, k = {k}, {64 + 4 * k} bytes  {name:24} {'  '.join(cells)}", flush=True)


def absent(trials: int = 40, dim: int = 1024, k: int = 307) -> None:
    """A line for each number of nodes that came, with the errors at 0.5, 0.9 and 0.99."""
    for came in (10, 9, 7, 5):
        cells = []
        for ratio in (0.5, 0.9, 0.99):
            told, ours, theirs = ratio * (came - 1), [], []
            run = sm.Run(sm.Scheme(sm.RandK(k, draw=sm.Balanced()), sm.Spatial(told)), dim)
            server, clients = sm.Server(run), [sm.Client(run, f"{node}") for node in range(NODES)]
            for seed in range(trials):
                vectors, plans = _vectors(ratio, dim, seed), server.plans([client.node for client in clients])
                for client, vector in zip(clients[:came], vectors, strict=False):
                    server.accept(client.node, client.encode(vector, seed, plans[client.node]))
                truth = vectors[:came].mean(axis=0)
                ours.append(float(np.sum((server.close_round().mean - truth) ** 2)))
                estimate = RandProjSpatial(k, told).estimate(vectors[:came], np.random.default_rng(seed))
                theirs.append(float(np.sum((estimate - truth) ** 2)))
            limit = relative_error(came, k / dim, ratio, ratio)
            cells.append(f"{np.mean(ours):.3g}, {np.mean(theirs):.3g} (limit {limit:.3g})")
        print(f"{came} of {NODES}: balanced, Rand-Proj-Spatial(Opt): {'; '.join(cells)}", flush=True)


def seconds(repeats: int = 5) -> None:
    """A line for each d: processor time of a round at the server, k = 0.1d, (R2/R1)/(n − 1) = 0.9, n = 10."""
    for dim in (256, 1024, 4096, 65536):
        k, told = round(0.1 * dim), 0.9 * (NODES - 1)
        vectors = _vectors(0.9, dim, seed=0)
        run = sm.Run(sm.Scheme(sm.RandK(k, draw=sm.Balanced()), sm.Spatial(told)), dim)
        server, clients = sm.Server(run), [sm.Client(run, f"{node}") for node in range(NODES)]
        ours, theirs = [], []
        for round_ in range(repeats):
            plans = server.plans([client.node for client in clients])
            blobs = {c.node: c.encode(x, round_, plans[c.node]) for c, x in zip(clients, vectors, strict=True)}
            ours.append(_time(_closed, server, blobs))
            peer, sent = RandProjSpatial(k, told), Projections.drawn(NODES, k, dim, np.random.default_rng(round_))
            values = sent.project(vectors)
            theirs.append(_time(peer.decode, sent, values))
        line = f"d = {dim}: balanced {1e3 * min(ours):.2f} ms, conjugate gradients {1e3 * min(theirs):.1f} ms"
        if dim <= 4096:
            rows = sent.matrix()
            line += f", eigenvectors of S {1e3 * _time(np.linalg.eigh, rows.T @ rows):.0f} ms"
        print(line, flush=True)


def scale(draws: int = 400) -> None:
    """A line for each d: how far β̄ of the limit is from that of drawn eigenvalues, times d; the worst of all cases."""
    for dim in (4, 16, 64, 256):
        worst = max(
            (abs(_off(n, k, dim, r, max(draws * 16 // dim, 40))), n, k, r)
            for n in (2, 3, 10, 50)
            for k in sorted({max(1, round(share * dim)) for share in (0.5 / n, 1 / n, 1.5 / n, 0.3)})
            for r in (0.5, 0.9, 1.0)
        )
        print(f"d = {dim}: {worst[0]:.2f}/d at n = {worst[1]}, k = {worst[2]}, r = {worst[3]}", flush=True)


def _off(nodes: int, k: int, dim: int, r: float, draws: int) -> float:
    rng, total = np.random.default_rng(0), 0.0
    for _ in range(draws):
        rows = Projections.drawn(nodes, k, dim, rng).matrix()
        found = np.linalg.eigvalsh(rows @ rows.T if nodes * k <= dim else rows.T @ rows)
        total += sum(value / (1.0 + r * (value - 1.0)) for value in found if value > 1e-9) / draws
    return dim * (unbiased_scale(nodes, k / dim, r) * total / (nodes * dim) - 1.0)


def _vectors(ratio: float, dim: int, seed: int) -> Doubles:
    return vectors_with(ratio, dim, np.random.default_rng(seed))


def _closed(server: sm.Server, blobs: dict[str, bytes]) -> None:
    for node, blob in blobs.items():
        server.accept(node, blob)
    server.close_round()


def _time(work: Callable[..., object], *given: object) -> float:
    start = process_time()
    work(*given)
    return process_time() - start


def main() -> None:
    """Run what is asked for."""
    parts = {"errors": errors, "absent": absent, "seconds": seconds, "scale": scale}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=parts)
    parts[parser.parse_args().what]()


if __name__ == "__main__":
    main()
