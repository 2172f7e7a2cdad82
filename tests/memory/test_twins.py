"""Every memory against a slow twin: plain dictionaries, no running sums, everything computed afresh each round."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import sampling
from sparsemean._names import Missing
from sparsemean._types import Doubles, Ints

NODES, DIM, K, ROUNDS, SEED = 6, 24, 5, 30, 11
Sent = tuple[int, Ints, Doubles]  # round, coordinates, values
Expectation = Callable[[list[Sent], int], Doubles]


def last_value(sent: list[Sent], round: int, forget_after: float = math.inf) -> Doubles:
    return window(sent, round, 1, forget_after)


def window(sent: list[Sent], round: int, size: int, forget_after: float = math.inf) -> Doubles:
    """Average of the last ``size`` values; a coordinate unheard for more than ``forget_after`` rounds starts afresh."""
    expected = np.zeros(DIM)
    for j in range(DIM):
        kept: list[float] = []
        heard = -math.inf
        for when, coordinates, values in sent:
            if j in coordinates:
                kept = kept if when - heard <= forget_after else []
                kept.append(float(values[coordinates == j][0]))
                heard = when
        if kept and round - heard <= forget_after:
            expected[j] = np.mean(kept[-size:])
    return expected


def offset(sent: list[Sent], round: int) -> Doubles:
    h = np.zeros(DIM)
    for _, coordinates, values in sent:
        h[coordinates] += values  # step k/d times scale d/k
    return h


def gain(T: str, m: int, n: int) -> float:
    """p β̄/T(m)."""
    p = K / DIM
    if T == "one":
        return 1.0
    b = [math.comb(n - 1, i - 1) * p ** (i - 1) * (1 - p) ** (n - i) for i in range(1, n + 1)]
    return 1.0 / m / sum(b[i - 1] / i for i in range(1, n + 1))


class Twin:
    """The server, as a reader of the paper would write it."""

    def __init__(self, expectation: Expectation | None, missing: str, blocks: tuple[int, ...], T: str) -> None:
        self.expectation, self.missing, self.blocks, self.T = expectation, missing, blocks, T
        self.sent: dict[str, list[Sent]] = defaultdict(list)
        self.known: dict[str, Doubles] = {}
        self.previous = np.zeros(DIM)

    def expected(self, node: str, round: int) -> Doubles:
        return self.previous if self.expectation is None else self.expectation(self.sent[node], round)

    def estimate(self, round: int, came: dict[str, tuple[Doubles, Sent]], differences: bool) -> Doubles:
        present = {node: weight for node, (weight, _) in came.items()}
        counted = {**self.known, **present} if self.missing == "carry" else present
        block_of = np.repeat(np.arange(len(self.blocks)), self.blocks)
        estimate = np.zeros(DIM)
        b = {node: self.expected(node, round) for node in counted}
        for j in range(DIM):
            w = {node: weight[block_of[j]] for node, weight in counted.items()}
            if sum(w.values()) == 0:
                estimate[j] = 0.0 if self.expectation else self.previous[j]
                continue
            senders = [node for node in present if j in came[node][1][1] and w[node] > 0]
            innovation = 0.0
            for node in senders:
                _, coordinates, values = came[node][1]
                value = float(values[coordinates == j][0])
                innovation += w[node] * (value if differences else value - b[node][j]) * DIM / K
            n = sum(w[node] > 0 for node in present)
            if senders:
                innovation *= gain(self.T, len(senders), n)
            if self.expectation is None:
                estimate[j] = self.previous[j] + innovation / sum(w.values())
            else:
                estimate[j] = (sum(w[node] * b[node][j] for node in counted) + innovation) / sum(w.values())
        return estimate

    def learn(self, came: dict[str, tuple[Doubles, Sent]], estimate: Doubles | None) -> None:
        for node, (weight, sent) in came.items():
            self.known[node] = weight
            self.sent[node].append(sent)
        if estimate is not None:
            self.previous = estimate

    def forget(self, node: str) -> None:
        self.sent.pop(node, None)
        self.known.pop(node, None)


TEMPORAL = {
    "per node": (sm.PerNode(), last_value),
    "stale 1": (sm.PerNode(forget_after=1), lambda sent, t: last_value(sent, t, 1)),
    "stale 4": (sm.PerNode(forget_after=4), lambda sent, t: last_value(sent, t, 4)),
    "window 3": (sm.Window(3), lambda sent, t: window(sent, t, 3)),
    "stale window": (sm.Window(2, forget_after=5), lambda sent, t: window(sent, t, 2, 5)),
    "shared": (sm.Shared(), None),
    "offset": (sm.Offset(), offset),
}


@pytest.mark.filterwarnings("ignore::sparsemean.DivergenceWarning")
@pytest.mark.parametrize(
    ("kind", "T", "missing", "blocks"),
    [
        (kind, T, missing, blocks)
        for kind, (memory, _) in TEMPORAL.items()
        for T, blocks in (("max", (5, 1, 18)), ("one", (DIM,)))[kind == "offset" :]
        for missing in ("drop", "carry")[: 1 + memory.facts.stands_in]
    ],
)
def test_estimates_are_those_of_the_slow_twin(kind: str, T: str, missing: Missing, blocks: tuple[int, ...]) -> None:
    memory, expectation = TEMPORAL[kind]
    encoder = sm.Difference(sm.RandK(K)) if kind == "offset" else sm.RandK(K)
    decoder = sm.Mean() if T == "one" else sm.Spatial(T)
    run = sm.Run(sm.Scheme(encoder, decoder, memory, values="float64"), DIM, SEED, blocks)
    server, twin = sm.Server(run, missing=missing), Twin(expectation, missing, blocks, T)
    rng = np.random.default_rng(5)
    base = rng.normal(size=(NODES, DIM))
    clients = {f"node-{i}": sm.Client(run, f"node-{i}") for i in range(NODES)}
    for t in range(ROUNDS):
        came: dict[str, tuple[Doubles, Sent]] = {}
        for i, (node, client) in enumerate(clients.items()):
            if rng.random() > 0.6 and (came or i < NODES - 1):
                continue
            vector = base[i] + 0.3 * rng.normal(size=DIM)
            weight = rng.choice([0.5, 1.0, 2.0, 0.0], size=len(blocks), p=[0.3, 0.3, 0.3, 0.1])
            weight[0] += 0.25 * (not came)  # somebody has weight
            blob = client.encode(vector, t)
            client.delivered(server.accept(node, blob, weight))
            coordinates = sampling.coordinates(sampling.Key(SEED, t, node), DIM, K)
            values = vector - twin.expected(node, t) if kind == "offset" else vector
            came[node] = weight, (t, coordinates, values[coordinates])
        if rng.random() < 0.1:
            server.skip_round()
            twin.learn(came, None)
        else:
            expected = twin.estimate(t, came, differences=kind == "offset")
            np.testing.assert_allclose(server.close_round().mean, expected, rtol=0, atol=1e-10, err_msg=f"round {t}")
            twin.learn(came, expected)
        if rng.random() < 0.2:
            node = str(rng.choice(list(clients)))
            server.forget(node)
            twin.forget(node)
            clients[node].reset()


def test_the_twins_differ_from_each_other() -> None:
    """Else the test above could not tell one memory from another."""
    rng = np.random.default_rng(0)
    sent = [(t, rng.permutation(DIM)[:8], rng.normal(size=8)) for t in range(12)]
    expectations = [make(sent, 13) for _, make in TEMPORAL.values() if make is not None]
    for i, left in enumerate(expectations):
        assert all(np.abs(left - right).max() > 0.1 for right in expectations[:i])
