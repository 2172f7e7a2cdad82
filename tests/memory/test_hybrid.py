"""The hybrid memory against a slow twin, and what it promises: unbiased given the past, bounded, without damage."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import sampling
from sparsemean._names import Missing
from sparsemean._types import Doubles, Ints
from sparsemean.evaluation import exact_error
from sparsemean.memory.base import Arrival, MemorySpec
from sparsemean.payload import Part, Payload
from sparsemean.payload.blocks import Blocks

NODES, DIM, K, ROUNDS, SEED = 6, 18, 5, 40, 11
Came = dict[str, tuple[Doubles, Ints, Doubles]]
"""Weight per block, coordinates and values of each node that sent."""


def best_in_unit_square(rows: list[tuple[float, float, float]], before: tuple[float, float]) -> tuple[float, float]:
    """The pair (a, g) in [0, 1]² that minimises Σ (x − a·c − g·r)² over rows (c, r, x): the best of all candidates.

    Where the rows leave a choice, a stays as it was, then g is fitted to it, then a to g.
    """
    c, r, x = (np.array(column) for column in zip(*rows, strict=True)) if rows else (np.zeros(0),) * 3

    def other(along: Doubles, left: Doubles, otherwise: float) -> float:
        return min(max(float(along @ left) / float(along @ along), 0.0), 1.0) if np.any(along) else otherwise

    if (c @ c) * (r @ r) - (c @ r) ** 2 <= 1e-12 * (c @ c) * (r @ r):
        own = other(r, x - before[0] * c, before[1])
        return other(c, x - own * r, before[0]), own
    candidates = [(a, other(r, x - a * c, 0.0)) for a in (0.0, 1.0)]
    candidates += [(other(c, x - g * r, 0.0), g) for g in (0.0, 1.0)]
    plain = np.linalg.lstsq(np.stack([c, r], axis=1), x, rcond=None)[0]
    if np.all((plain >= 0) & (plain <= 1)):
        candidates.append((float(plain[0]), float(plain[1])))
    return min(candidates, key=lambda pair: float(np.sum((x - pair[0] * c - pair[1] * r) ** 2)))


def gain(T: str, m: int, n: int) -> float:
    """p β̄/T(m)."""
    p = K / DIM
    if T == "one":
        return 1.0
    b = [math.comb(n - 1, i - 1) * p ** (i - 1) * (1 - p) ** (n - i) for i in range(1, n + 1)]
    return 1.0 / m / sum(b[i - 1] / i for i in range(1, n + 1))


class Twin:
    """The docstring, coordinate by coordinate; c is averaged afresh wherever it is needed."""

    def __init__(self, missing: str, blocks: tuple[int, ...], T: str, forget_after: float) -> None:
        self.missing, self.T, self.forget_after = missing, T, forget_after
        self.block_of = np.repeat(np.arange(len(blocks)), blocks).tolist()
        self.last: dict[str, dict[int, tuple[int, float]]] = defaultdict(dict)
        self.known: dict[str, Doubles] = {}
        self.factors = [(1.0, 0.0, 1.0) for _ in blocks]

    def own(self, node: str, j: int, round: int) -> float | None:
        """B_ij, or None where the node was not heard."""
        if j not in self.last[node]:
            return None
        when, value = self.last[node][j]
        return value if round - when <= self.forget_after else None

    def common(self, j: int, round: int) -> float:
        heard = [value for node in list(self.last) if (value := self.own(node, j, round)) is not None]
        return math.fsum(heard) / len(heard) if heard else 0.0

    def expected(self, node: str, j: int, round: int) -> float:
        a, g, u = self.factors[self.block_of[j]]
        c, own = self.common(j, round), self.own(node, j, round)
        return u * c if own is None else a * c + g * (own - c)

    def estimate(self, round: int, came: Came) -> Doubles:
        present = {node: weight for node, (weight, _, _) in came.items()}
        counted = {**self.known, **present} if self.missing == "carry" else present
        estimate = np.zeros(DIM)
        for j, block in enumerate(self.block_of):
            w = {node: float(weight[block]) for node, weight in counted.items()}
            if sum(w.values()) == 0:
                continue
            senders = [node for node in present if j in came[node][1] and w[node] > 0]
            innovation = 0.0
            for node in senders:
                _, at, values = came[node]
                innovation += w[node] * (float(values[at == j][0]) - self.expected(node, j, round)) * DIM / K
            if senders:
                innovation *= gain(self.T, len(senders), sum(w[node] > 0 for node in present))
            remembered = math.fsum(w[node] * self.expected(node, j, round) for node in counted)
            estimate[j] = (remembered + innovation) / sum(w.values())
        return estimate

    def learn(self, round: int, came: Came) -> None:
        heard: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
        unheard: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for node, (weight, at, values) in came.items():
            self.known[node] = weight
            for j, x in zip(at.tolist(), values.tolist(), strict=True):
                w, c, own = weight[self.block_of[j]], self.common(j, round), self.own(node, j, round)
                if w > 0 and own is not None:
                    heard[self.block_of[j]].append((w * c, w * (own - c), w * x))
                elif w > 0:
                    unheard[self.block_of[j]].append((w * c, w * x))
        for block, (a, g, u) in enumerate(self.factors):
            a, g = best_in_unit_square(heard[block], (a, g))
            square = math.fsum(c * c for c, _ in unheard[block])
            u = min(max(math.fsum(c * x for c, x in unheard[block]) / square, 0.0), 1.0) if square else u
            self.factors[block] = a, g, u
        for node, (weight, at, values) in came.items():
            for j, x in zip(at.tolist(), values.tolist(), strict=True):
                if weight[self.block_of[j]] > 0:
                    self.last[node][j] = round, x

    def forget(self, node: str) -> None:
        self.last.pop(node, None)
        self.known.pop(node, None)

    def largest(self, round: int, *nodes: str) -> float:
        """The largest value that is remembered of these nodes, or of anybody."""
        owns = (self.own(node, j, round) for node in nodes or list(self.last) for j in range(DIM))
        return max((abs(own) for own in owns if own is not None), default=0.0)


SETTINGS: list[tuple[str, str, int | None]] = [
    (T, missing, None) for T in ("one", "max") for missing in ("drop", "carry")
]
SETTINGS += [("one", "drop", 1), ("one", "drop", 4), ("max", "drop", 3)]


@pytest.mark.parametrize(("blocks", "giant"), [((DIM,), 1e20), ((5, 1, 12), 0.0)])
@pytest.mark.parametrize(("T", "missing", "forget_after"), SETTINGS)
def test_estimates_are_those_of_the_slow_twin(
    T: str, missing: Missing, forget_after: int | None, blocks: tuple[int, ...], giant: float
) -> None:
    """Nodes come, stay away and are forgotten, weights change and vanish, rounds are skipped.

    A giant is sent twice; once it is replaced or its node forgotten, not a digit may be missing.
    """
    scheme = sm.Scheme(sm.RandK(K), sm.Mean() if T == "one" else sm.Spatial(T), sm.Hybrid(forget_after), "float64")
    run = sm.Run(scheme, DIM, SEED, blocks)
    server = sm.Server(run, missing=missing)
    twin = Twin(missing, blocks, T, math.inf if forget_after is None else forget_after)
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
        largest = max([twin.largest(t), *(float(np.abs(values).max()) for _, _, values in came.values())])
        if rng.random() < 0.1:
            server.skip_round()
            seen["skipped"] += 1
        else:
            unit = largest if largest > 1e10 else 1.0
            found, expected = server.close_round().mean / unit, twin.estimate(t, came) / unit
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=f"round {t}")
            seen["giant here"] += unit > 1.0
            seen["giant gone"] += unit == 1.0 and t > 3
        twin.learn(t, came)
        seen["between"] += any(0.0 < factor < 1.0 for factors in twin.factors for factor in factors)
        tired = [node for node in twin.last if rng.random() < 0.04]
        for node in {node for node in twin.last if t == 28 and twin.largest(t, node) > 1e10} | set(tired):
            server.forget(node)
            twin.forget(node)
            seen["forgotten"] += 1
    assert min(seen["skipped"], seen["forgotten"], seen["between"]) > 1, seen
    assert not giant or min(seen["giant here"], seen["giant gone"]) > 1, seen


def play(server: sm.Server, vectors: dict[str, Doubles]) -> Doubles:
    for node, vector in vectors.items():
        server.accept(node, sm.Client(server.run, node).encode(vector, server.round))
    return server.close_round().mean


def hybrid(k: float, dim: int, **options: Any) -> sm.Server:
    return sm.Server(sm.Run(sm.Scheme(sm.RandK(k), memory=sm.Hybrid(), values="float64"), dim), **options)


def test_before_anything_could_be_fitted_everybody_is_expected_to_send_the_average() -> None:
    server = hybrid(4, 4)
    play(server, {"a": np.array([1.0, 2.0, 3.0, 4.0]), "b": np.array([3.0, 2.0, 1.0, 0.0])})
    for node in ("a", "b", "never heard"):
        assert server.expected(node).tolist() == [2.0, 2.0, 2.0, 2.0]


def test_nodes_that_repeat_themselves_are_known_by_heart_and_a_new_one_is_taken_for_average() -> None:
    """After a second round a = g = 1: what is expected of a node is what it sent."""
    vectors = {node: np.random.default_rng(i).normal(size=6) for i, node in enumerate("abc")}
    server = hybrid(6, 6)
    for _ in range(2):
        play(server, vectors)
    for node, vector in vectors.items():
        np.testing.assert_allclose(server.expected(node), vector, rtol=1e-12)
    np.testing.assert_allclose(server.expected("new"), np.mean(list(vectors.values()), axis=0), rtol=1e-12)


def test_what_a_forgotten_node_sent_is_expected_of_nobody() -> None:
    """The remedy for a node that sent rubbish: it is gone with the node, not a round later."""
    server = hybrid(4, 4)
    play(server, {"rubbish": np.full(4, 1e20), "a": np.ones(4), "b": np.full(4, 3.0)})
    server.forget("rubbish")
    assert server.expected("a").tolist() == server.expected("rubbish").tolist() == [2.0] * 4


def test_what_was_sent_with_a_lower_probability_counts_for_more_in_the_fit() -> None:
    """The parts of a round of an epoch have probabilities of their own: u = Σ cx/π / Σ c²/π, and c = 1 here."""
    memory = sm.Hybrid().start(MemorySpec(Blocks((8,)), sm.RandK(4), np.dtype(np.float64)))
    parts = [
        (Part(np.arange(8), np.ones(8)),),
        (Part(np.array([0, 1]), np.full(2, 0.2), scale=1 / 0.8), Part(np.array([4]), np.array([0.8]), scale=1 / 0.25)),
    ]
    for round, (node, split) in enumerate((("a", False), ("b", True))):
        memory.take([Arrival(node, np.ones(1), Payload(parts[round], split=split))])
        memory.learn(round, None)
        memory.settle()
    u = (2 * 0.2 / 0.8 + 0.8 / 0.25) / (2 / 0.8 + 1 / 0.25)
    np.testing.assert_allclose(memory.expected("new", np.array([2, 7])), [u, u], rtol=1e-12)


@pytest.mark.parametrize("batch_bytes", [1, 1 << 24])
def test_forgetting_an_absent_node_in_an_open_round_does_not_bend_its_mean(batch_bytes: int) -> None:
    """Everybody sends everything, so the mean is exact if what was subtracted is what is added again."""
    server = hybrid(4, 4, batch_bytes=batch_bytes)
    vectors = {node: np.random.default_rng(i).normal(size=4) for i, node in enumerate("abc")}
    play(server, vectors)
    server.accept("a", sm.Client(server.run, "a").encode(vectors["a"] + 1.0, 1))
    server.forget("b")
    mean = play(server, {"c": vectors["c"] + 1.0})
    np.testing.assert_allclose(mean, (vectors["a"] + vectors["c"]) / 2 + 1.0, rtol=1e-13)
    server.forget("b")
    np.testing.assert_allclose(play(server, {"a": np.ones(4), "c": np.zeros(4)}), np.full(4, 0.5), rtol=1e-13)


@pytest.mark.parametrize("seed", range(6))
def test_rounding_does_not_decide_what_is_expected(seed: int) -> None:
    """Where one node alone was heard, B − c is 0 but for the rounding of running sums, and says nothing of g."""
    rng = np.random.default_rng(seed)
    server = hybrid(6, 6)
    vectors = {"a": rng.normal(size=6), "b": 1e4 * rng.normal(size=6), "c": 1e4 * rng.normal(size=6)}
    for _ in range(2):
        play(server, vectors)  # now g = 1
    server.forget("b")
    server.forget("c")  # large sums less large numbers
    for _ in range(2):
        play(server, {"a": vectors["a"]})
    play(server, {"a": vectors["a"] + 0.1 * rng.normal(size=6)})
    play(server, {"new": rng.normal(size=6)})
    apart = server.expected("a") - server.expected("new")
    assert np.abs(apart).max() > 0.1, "with g = 0 both are expected to send the average"


@pytest.mark.parametrize("exponent", [-300, -270, -40, 40, 270, 300])
def test_units_do_not_matter(exponent: int) -> None:
    """Powers of two are exact, so the means are 2^e times the others to the last bit, from 1e-90 to 1e90."""
    rounds = np.random.default_rng(0).normal(size=20) + np.random.default_rng(1).normal(size=(6, 5, 20))
    run = sm.Run(sm.Scheme(sm.RandK(10), memory=sm.Hybrid(), values="float64"), 20)
    for one, other in zip(sm.simulate(run, rounds), sm.simulate(run, rounds * 2.0**exponent), strict=True):
        assert np.array_equal(one.mean * 2.0**exponent, other.mean)


def test_only_ratios_of_weights_matter() -> None:
    rounds, weights = np.random.default_rng(1).normal(size=(5, 4, 20)), np.array([0.5, 1.0, 2.0, 0.0])
    run = sm.Run(sm.Scheme(sm.RandK(8), memory=sm.Hybrid(), values="float64"), 20)
    for one, other in zip(sm.simulate(run, rounds, weights), sm.simulate(run, rounds, 1024 * weights), strict=True):
        assert np.array_equal(one.mean, other.mean)


def test_it_is_as_good_as_the_better_of_both_memories() -> None:
    """Similar nodes that hardly move: the average helps at first, each node's own past later; 40 rounds, exact."""
    n, dim, share = 20, 400, 0.05
    rng = np.random.default_rng(2)
    base = rng.normal(size=dim) + 0.5 * rng.normal(size=(n, dim))
    nodes = [f"node-{i}" for i in range(n)]
    errors: dict[sm.Memory, list[float]] = {}
    for memory in (sm.Hybrid(), sm.PerNode(), sm.SharedStable()):
        server = sm.Server(sm.Run(sm.Scheme(sm.RandK(share), memory=memory, values="float64"), dim))
        moves = np.random.default_rng(3)
        errors[memory] = []
        for _ in range(40):
            vectors = base + 0.05 * moves.normal(size=base.shape)
            errors[memory].append(exact_error(server, nodes, vectors) or 0.0)
            play(server, dict(zip(nodes, vectors, strict=True)))
    both, own, together = errors.values()
    assert both[3] < 0.7 * own[3], "early it is as good as the average"
    assert both[3] < 1.1 * together[3]
    assert both[-1] < 0.5 * together[-1], "late it knows every node"
    assert both[-1] < own[-1]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(sm.InvalidInput, match="forget_after"):
        sm.Hybrid(forget_after=0)
    with pytest.raises(sm.IncompatibleScheme, match="does not send"):
        sm.Scheme(sm.Wangni(3), memory=sm.Hybrid())
    with pytest.raises(sm.IncompatibleScheme, match="PerNode"):
        sm.Scheme(sm.Lazy(sm.Identity()), memory=sm.Hybrid())
    with pytest.raises(sm.InvalidInput, match="stands in"):
        sm.Server(sm.Run(sm.Scheme(sm.RandK(2), memory=sm.Hybrid(3)), 4), missing="carry")


def test_a_run_with_it_can_be_written_down() -> None:
    run = sm.Run(sm.Scheme(sm.RandK(2), sm.Spatial("learned"), sm.Hybrid(forget_after=3)), 4)
    assert sm.Run.from_json(run.to_json()) == run


def test_begun_anew_it_expects_the_estimate_of_all_nodes_and_hears_each_again():
    """What came in the round is dropped with the rest; the coefficient of the average stays as it was fitted."""
    base, one, everywhere = np.random.default_rng(0).normal(size=6), np.ones(1), np.arange(6)
    memory, again = (sm.Hybrid().start(MemorySpec(Blocks((6,)), sm.RandK(6), np.dtype("<f4"))) for _ in range(2))
    for anew in (False, True):
        sent = {node: (base + 0.1 * i).astype(np.float32) for i, node in enumerate("ab")}
        memory.take([Arrival(node, one, Payload((Part(everywhere, values),))) for node, values in sent.items()])
        if anew:
            memory.begin_anew(1, base, "dropped")
        else:
            memory.learn(0, base)
        memory.settle()
    u = float(np.median(memory.expected("a", everywhere) / base))
    assert 0.9 < u <= 1.0
    for node in ("a", "b", "never heard"):
        np.testing.assert_allclose(memory.expected(node, everywhere), u * base)
    np.testing.assert_allclose(memory.mean({"a": one, "b": one}), u * base)
    assert not any(memory.last_heard(node, everywhere)[0].any() for node in "ab")
    again.restore(memory.state())
    np.testing.assert_array_equal(again.expected("b", everywhere), memory.expected("b", everywhere))
    memory.take([Arrival("a", one, Payload((Part(np.array([2]), np.array([9.0], np.float32)),)))])
    memory.learn(2, base)
    memory.settle()
    heard, own, common = memory.last_heard("a", everywhere)
    assert heard.tolist() == [0, 0, 1, 0, 0, 0]
    assert own[2] == common[2] == 9.0
    np.testing.assert_allclose(np.delete(common, 2), np.delete(base, 2))


def test_shrunk_values_are_kept_as_what_they_are_worth():
    """x + noise as large as the nodes' own part: half of what is apart from the estimate stays, and is then worth 1."""
    rng, dim, one = np.random.default_rng(0), 2000, np.ones(1)
    everywhere, truth = np.arange(dim), rng.normal(size=(4, dim))
    memory = sm.Hybrid().start(MemorySpec(Blocks((dim,)), sm.RandK(dim), np.dtype("<f4")))
    for past in ("kept", "shrunk"):
        sent = (truth + rng.normal(size=truth.shape)).astype(np.float32)
        memory.take([Arrival(str(i), one, Payload((Part(everywhere, x),))) for i, x in enumerate(sent)])
        estimate = sent.mean(axis=0, dtype=np.float64)
        if past == "kept":
            memory.learn(0, estimate)
        else:
            memory.begin_anew(1, estimate, "shrunk")
        memory.settle()
    for i, x in enumerate(sent):
        kept = (memory.expected(str(i), everywhere) - estimate) / (x - estimate)
        assert np.median(kept) == pytest.approx(0.5, abs=0.1)
        off = [np.mean((guess - truth[i]) ** 2) for guess in (memory.expected(str(i), everywhere), x)]
        assert off[0] < 0.75 * off[1]
    assert all(memory.last_heard(str(i), everywhere)[0].all() for i in range(4))


def test_faded_values_are_those_from_before_the_round_as_far_as_they_are_worth_it():
    """Values with as much noise as nodes' own part; then fine ones, of half of the coordinates of all but one node."""
    rng, dim, one = np.random.default_rng(0), 9000, np.ones(1)
    everywhere, truth = np.arange(dim), rng.normal(size=(9, dim))
    spec = MemorySpec(Blocks((dim,)), sm.RandK(dim), np.dtype("<f4"))
    memory = sm.Hybrid().start(spec)
    sent = (truth + rng.normal(size=truth.shape)).astype(np.float32)
    memory.take([Arrival(str(i), one, Payload((Part(everywhere, x),))) for i, x in enumerate(sent)])
    memory.learn(0, None)
    memory.settle()
    _, _, average = memory.last_heard("0", everywhere)
    halves = [np.sort(rng.permutation(dim)[: dim // 2]) for _ in range(8)]
    fine = [truth[i, at].astype(np.float32) for i, at in enumerate(halves)]
    memory.take([Arrival(str(i), one, Payload((Part(halves[i], fine[i]),))) for i in range(8)])
    memory.begin_anew(1, None, "faded")
    memory.settle()
    for i in range(9):
        heard, last, _ = memory.last_heard(str(i), everywhere)
        at = halves[i] if i < 8 else np.empty(0, np.int64)
        old = np.delete(everywhere, at)
        assert heard.all()
        np.testing.assert_array_equal(last[at], fine[i] if i < 8 else [])
        kept = (last[old] - average[old]) / (sent[i, old] - average[old])
        assert np.median(kept) == pytest.approx(0.5, abs=0.1)
        off = [np.mean((guess - truth[i, old]) ** 2) for guess in (last[old], sent[i, old], average[old])]
        assert off[0] < 0.75 * min(off[1:])
    ones = {str(i): one for i in range(9)}
    mean = memory.mean(ones)
    np.testing.assert_allclose(mean, sum(memory.expected(node, everywhere) for node in ones) / 9, atol=1e-6)
