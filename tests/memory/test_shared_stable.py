"""The stable shared memory against a slow twin, and what it promises: unbiased given the past, and no divergence."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import sampling
from sparsemean._names import Missing
from sparsemean._types import Doubles, Ints
from sparsemean.evaluation import exact_error

NODES, DIM, K, ROUNDS, SEED = 6, 18, 5, 40, 11
Came = dict[str, tuple[Doubles, Ints, Doubles]]
"""Weight per block, coordinates and values of each node that sent."""


def gain(T: str, m: int, n: int) -> float:
    """p β̄/T(m)."""
    p = K / DIM
    if T == "one":
        return 1.0
    b = [math.comb(n - 1, i - 1) * p ** (i - 1) * (1 - p) ** (n - i) for i in range(1, n + 1)]
    return 1.0 / m / sum(b[i - 1] / i for i in range(1, n + 1))


class Twin:
    """The docstring, coordinate by coordinate: the weighted average of what came last, times the fitted factor."""

    def __init__(self, missing: str, blocks: tuple[int, ...], T: str) -> None:
        self.missing, self.T = missing, T
        self.block_of = np.repeat(np.arange(len(blocks)), blocks).tolist()
        self.average = [0.0] * DIM
        self.factors = [1.0] * len(blocks)
        self.known: dict[str, Doubles] = {}

    def expected(self, j: int) -> float:
        return self.factors[self.block_of[j]] * self.average[j]

    def estimate(self, came: Came) -> Doubles:
        present = {node: weight for node, (weight, _, _) in came.items()}
        counted = {**self.known, **present} if self.missing == "carry" else present
        estimate = np.zeros(DIM)
        for j, block in enumerate(self.block_of):
            estimate[j] = self.expected(j)
            senders = [node for node in present if j in came[node][1] and present[node][block] > 0]
            for node in senders:
                weight, at, values = came[node]
                innovation = (float(values[at == j][0]) - self.expected(j)) * DIM / K
                factor = gain(self.T, len(senders), sum(weight[block] > 0 for weight in present.values()))
                estimate[j] += factor * weight[block] * innovation / sum(weight[block] for weight in counted.values())
        return estimate

    def learn(self, came: Came) -> None:
        along, length = [0.0] * len(self.factors), [0.0] * len(self.factors)
        heard: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for node, (weight, at, values) in came.items():
            self.known[node] = weight
            for j, x in zip(at.tolist(), values.tolist(), strict=True):
                block = self.block_of[j]
                w, c = float(weight[block]), self.average[j]
                along[block] += w * w * x * c
                length[block] += w * w * c * c
                if w > 0:
                    heard[j].append((w, x))
        for block, square in enumerate(length):
            if square > 0:
                self.factors[block] = min(max(along[block] / square, 0.0), 1.0)
        for j, pairs in heard.items():
            self.average[j] = math.fsum(w * x for w, x in pairs) / math.fsum(w for w, _ in pairs)

    def forget(self, node: str) -> None:
        """A single node leaves no trace that could be told from the others'."""
        self.known.pop(node, None)


@pytest.mark.parametrize("giant", [0.0, 1e20])
@pytest.mark.parametrize("blocks", [(DIM,), (5, 1, 12)])
@pytest.mark.parametrize("missing", ["drop", "carry"])
@pytest.mark.parametrize("T", ["one", "max"])
def test_estimates_are_those_of_the_slow_twin(T: str, missing: Missing, blocks: tuple[int, ...], giant: float) -> None:
    """Nodes come, stay away and are forgotten, weights change and vanish, rounds are skipped.

    A giant is sent twice; once its coordinate came again, not a digit may be missing.
    """
    scheme = sm.Scheme(sm.RandK(K), sm.Mean() if T == "one" else sm.Spatial(T), sm.SharedStable(), "float64")
    run = sm.Run(scheme, DIM, SEED, blocks)
    server, twin = sm.Server(run, missing=missing), Twin(missing, blocks, T)
    rng = np.random.default_rng(5)
    base = rng.normal(size=DIM) + rng.normal(size=(NODES, DIM))
    seen = dict.fromkeys(("skipped", "forgotten", "giant here", "giant gone", "between"), 0)
    for t in range(ROUNDS):
        came: Came = {}
        for i in range(NODES if t >= 10 else NODES - 2):  # two nodes are new later on
            node = f"node-{i}"
            if rng.random() > 0.6 and (came or i < NODES - 3):
                continue
            vector = base[i] + 0.3 * rng.normal(size=DIM)
            weight = rng.choice([0.5, 1.0, 2.0, 0.0], size=len(blocks), p=[0.3, 0.3, 0.3, 0.1])
            weight[0] += 0.25 * (not came)  # somebody has weight
            at = sampling.coordinates(run.key(node, t), DIM, K)
            if giant and t in (3, 25) and not came:
                vector[at[0]] = giant
            server.accept(node, sm.Client(run, node).encode(vector, t), weight)
            came[node] = weight, at, vector[at]
        sent = (float(np.abs(values).max()) for _, _, values in came.values())
        largest = max(*map(abs, twin.average), *sent)
        if rng.random() < 0.1:
            server.skip_round()
            seen["skipped"] += 1
        else:
            unit = largest if largest > 1e10 else 1.0
            found, expected = server.close_round().mean / unit, twin.estimate(came) / unit
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=f"round {t}")
            seen["giant here"] += unit > 1.0
            seen["giant gone"] += unit == 1.0 and t > 3
        twin.learn(came)
        seen["between"] += any(0.0 < factor < 1.0 for factor in twin.factors)
        if rng.random() < 0.2:
            node = f"node-{rng.integers(NODES)}"
            server.forget(node)
            twin.forget(node)
            seen["forgotten"] += 1
    assert min(seen["skipped"], seen["forgotten"], seen["between"]) > 1, seen
    assert not giant or min(seen["giant here"], seen["giant gone"]) > 1, seen


def play(server: sm.Server, vectors: dict[str, Doubles]) -> Doubles:
    for node, vector in vectors.items():
        server.accept(node, sm.Client(server.run, node).encode(vector, server.round))
    return server.close_round().mean


def stable(k: float, dim: int) -> sm.Server:
    return sm.Server(sm.Run(sm.Scheme(sm.RandK(k), memory=sm.SharedStable(), values="float64"), dim))


def test_after_the_first_round_everybody_is_expected_to_send_the_average_and_later_a_part_of_it() -> None:
    """Second-round values are half the average, so that is what the third round expects of the new average."""
    server = stable(4, 4)
    first = {"a": np.array([1.0, 2.0, 3.0, 4.0]), "b": np.array([3.0, 2.0, 1.0, 0.0])}
    play(server, first)
    assert server.expected("a").tolist() == server.expected("new").tolist() == [2.0] * 4
    play(server, {"a": np.ones(4), "b": np.ones(4)})
    assert server.expected("a").tolist() == [0.5] * 4


def test_nodes_that_turned_round_are_expected_to_send_nothing() -> None:
    server = stable(4, 4)
    play(server, {"a": np.ones(4)})
    play(server, {"a": -np.ones(4)})
    assert server.expected("a").tolist() == [0.0] * 4


@pytest.mark.parametrize("exponent", [-300, -40, 40, 300])
def test_units_do_not_matter(exponent: int) -> None:
    """Powers of two are exact, so the means are 2^e times the others to the last bit, from 1e-90 to 1e90."""
    rounds = np.random.default_rng(0).normal(size=20) + np.random.default_rng(1).normal(size=(6, 5, 20))
    run = sm.Run(sm.Scheme(sm.RandK(10), memory=sm.SharedStable(), values="float64"), 20)
    for one, other in zip(sm.simulate(run, rounds), sm.simulate(run, rounds * 2.0**exponent), strict=True):
        assert np.array_equal(one.mean * 2.0**exponent, other.mean)


def test_where_the_papers_shared_memory_diverges_it_settles() -> None:
    """Similar nodes, ten of them, a hundredth of the coordinates: feedback factor 9.9."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=500) + 0.1 * rng.normal(size=(10, 500))
    nodes = {f"node-{i}": vector for i, vector in enumerate(vectors)}
    server, size = stable(0.01, 500), float(np.sum(vectors.mean(axis=0) ** 2))
    for _ in range(60):
        mean = play(server, nodes)
    exact = exact_error(server, list(nodes), vectors)
    assert exact is not None
    assert exact < 0.5 * size, "9.9 without a memory"
    assert np.sum((mean - vectors.mean(axis=0)) ** 2) < size
    paper = sm.Server(sm.Run(sm.Scheme(sm.RandK(0.01), memory=sm.Shared(), values="float64"), 500))
    with pytest.warns(sm.DivergenceWarning):
        play(paper, nodes)
    for _ in range(20):
        mean = play(paper, nodes)
    assert np.sum((mean - vectors.mean(axis=0)) ** 2) > 1e6 * size


def test_what_does_not_fit_is_refused_and_what_fits_can_be_written_down() -> None:
    with pytest.raises(sm.IncompatibleScheme, match="does not send"):
        sm.Scheme(sm.Wangni(3), memory=sm.SharedStable())
    with pytest.raises(sm.IncompatibleScheme, match="PerNode"):
        sm.Scheme(sm.Lazy(sm.Identity()), memory=sm.SharedStable())
    run = sm.Run(sm.named("rand-k-temporal-shared-stable", k=2), 4)
    assert run.scheme == sm.Scheme(sm.RandK(2), sm.Spatial("learned"), sm.SharedStable())
    assert sm.Run.from_json(run.to_json()) == run
