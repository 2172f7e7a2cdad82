"""What one node can do to the mean when payloads are clipped: no more than is stated, and that much at worst."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean import codec
from sparsemean._names import SchemeName
from sparsemean.payload import Part, Payload
from sparsemean.sampling import coordinates
from sparsemean.theory.estimated import LEAST_RATIO

pytestmark = pytest.mark.filterwarnings("ignore::sparsemean.errors.DivergenceWarning")

DIM, NODES, K = 40, 5, 8
SHARE = K / DIM
NORM, VALUE = 2.0, 0.75
WEIGHTS = {f"node-{i}": 1.0 + 0.5 * i for i in range(NODES)}
BAD = "node-3"
OWN = WEIGHTS[BAD] / sum(WEIGHTS.values())  # w/W
ROUNDING = 1 + 1e-6  # values are cut as float32

ONE = ("identity", "top-k", "rtop-k", "wangni", *(name for name in sm.names() if name.startswith("error-feedback")))
BALANCED = ("rand-k-balanced", "rand-k-balanced-hybrid")  # n·k = d: each coordinate comes once, whatever T is
TEMPORAL = ("rand-k-temporal", "rand-k-temporal-window", "rand-k-temporal-stale", "rand-k-temporal-shared")
SCALED = ("rand-k", *TEMPORAL, *BALANCED)
GIVEN_T: dict[str, str | float] = {"rand-k-spatial-max": "max", "rand-k-spatial-avg": "avg", "rand-k-spatial-opt": 2.5}
LEARNT_T = ("rand-k-spatial-adaptive-unbiased", "rand-k-temporal-shared-stable", "rand-k-hybrid")
IN_A_ROUND = [*ONE, *SCALED, "induced", *GIVEN_T, *LEARNT_T]
UNBOUNDED = {"rand-k-ratio", "rand-k-balanced-ratio", "rand-k-hybrid-shrunk", "rand-k-balanced-hybrid-shrunk"}
PER_COORDINATE = {"top-k-temporal", "top-k-spatial", "rand-k-spatial-adaptive", *UNBOUNDED}
IN_STEP = {"diana", "lag"}

Choice = Callable[[int, Payload], Payload]
"""What the bad node sends in a round, where it would honestly have sent this."""


def run_named(name: SchemeName, **options: Any) -> sm.Run:
    ratio: dict[str, Any] = {"ratio": 2.5} if name == "rand-k-spatial-opt" else {}
    scheme = sm.named(name, k=K, **ratio, **options)
    return sm.Run(scheme, DIM, seed=11, nodes=list(WEIGHTS) if scheme.encoder.facts.planned else None)


class Play:
    """Three rounds with one bad node; the mean and the counts of the last, and the gains it was decoded with."""

    def __init__(self, run: sm.Run, clip: sm.Clip, choose: Choice, weights: dict[str, Any] = WEIGHTS) -> None:
        server, rng = sm.Server(run, clip=clip), np.random.default_rng(2)
        clients = {node: sm.Client(run, node) for node in weights}
        vectors = {node: 1.0 + 0.5 * rng.normal(size=DIM) for node in weights}
        for round in range(3):
            self.belief = server.beliefs()[0].before or 0.0  # by the last round it has seen some
            for node, client in clients.items():
                blob = client.encode(vectors[node] + 0.1 * round, round)
                if node == BAD:
                    plan = run.listed_plan(node, round) if run.planned else None
                    honest = codec.read_payload(run, node, *codec.open_frame(run, node, blob), plan)
                    assert honest is not None
                    self.sent = choose(round, honest)
                    blob = codec.pack(run, node, round, self.sent, plan=plan)
                server.accept(node, blob, weights[node])
            self.estimate = server.close_round()

    @property
    def mean(self) -> np.ndarray:
        return self.estimate.mean


def gains(T: sm.theory.Weighting, n: int = NODES) -> np.ndarray:
    """p β̄/T(m) for m = 1..n, as the paper defines them."""
    return SHARE * sm.theory.beta_bar(T, n, SHARE) / sm.theory.weights(T, n)


def factor(name: str, belief: float) -> float:
    """How far values of length 1 can move a mean of one node: the table of docs/reliability.md."""
    if name in ONE:
        return 1.0
    if name == "induced":  # a coordinate may stand in both of its parts
        return math.hypot(1.0, DIM / (K / 2))
    T: sm.theory.Weighting = GIVEN_T.get(name, "one")
    if name in LEARNT_T:
        T = max(belief * (NODES - 1), LEAST_RATIO)
    return float(max(gains(T))) / SHARE


def anything(run: sm.Run, rng: np.random.Generator) -> Choice:
    """Huge or small values, on few coordinates or many, and on others where a node may choose them."""

    def choose(round: int, honest: Payload) -> Payload:
        parts = []
        for part, layout in zip(honest.parts, run.layout, strict=True):
            where = part.coordinates
            if layout.where == "signs":  # which leave a node nothing else to choose
                values = 10.0 ** rng.integers(-2, 6) * rng.choice([-1.0, 1.0], where.size)
                parts.append(Part(where, values, part.scale))
                continue
            if layout.where in ("listed", "levelled"):
                where = np.sort(rng.choice(DIM, int(rng.integers(1, layout.count + 1)), replace=False))
            values = rng.normal(size=where.size) * 10.0 ** rng.integers(-2, 6)
            values *= rng.random(where.size) < rng.choice([0.1, 0.5, 1.0])
            parts.append(Part(where, values, part.scale))
        return Payload(tuple(parts))

    return choose


def in_the_last_round(choose: Choice) -> Choice:
    return lambda round, honest: choose(round, honest) if round == 2 else honest


def test_every_scheme_is_dealt_with():
    epochs = {"rand-k-epochs-hybrid"}  # its bound is one of whole epochs: test_epochs.py
    assert {*IN_A_ROUND} | PER_COORDINATE | IN_STEP | epochs == set(sm.names())


@pytest.mark.parametrize("name", IN_A_ROUND)
def test_no_payload_moves_the_mean_of_its_round_further_than_stated(name):
    run, rng = run_named(name), np.random.default_rng(1)
    plays = [Play(run, sm.Clip(norm=NORM), in_the_last_round(anything(run, rng))) for _ in range(10)]
    bound = 2 * NORM * OWN * factor(name, plays[0].belief)
    moved = max(float(np.linalg.norm(one.mean - other.mean)) for one in plays for other in plays)
    assert bound / 10 < moved <= bound * ROUNDING


@pytest.mark.parametrize("name", IN_A_ROUND)
def test_the_worst_payload_moves_it_that_far(name):
    run = run_named(name)
    counts = Play(run, sm.Clip(norm=NORM), lambda round, honest: honest).estimate.counts

    def worst(sign: float) -> Choice:
        def choose(round: int, honest: Payload) -> Payload:
            drawn = honest.parts[-1].coordinates
            at = drawn[np.argmin(counts[drawn])]
            if name == "error-feedback-sign":
                return Payload((Part(drawn, np.full(drawn.size, sign * 1e6)),))
            parts = [
                Part(part.coordinates, np.where(part.coordinates == at, sign * 1e6 * part.scale, 0.0), part.scale)
                for part in honest.parts
            ]
            if name == "induced":
                parts[0] = Part(np.array([at]), np.array([sign * 1e6]))
            return Payload(tuple(parts))

        return in_the_last_round(choose)

    one, other = (Play(run, sm.Clip(norm=NORM), worst(sign)) for sign in (1.0, -1.0))
    bound = 2 * NORM * OWN * factor(name, one.belief)
    assert np.linalg.norm(one.mean - other.mean) == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("name", ["identity", "rand-k", "top-k", "rand-k-spatial-avg"])
def test_a_bound_on_values_is_one_on_each_coordinate(name):
    run = run_named(name)

    def flat(sign: float) -> Choice:
        def choose(round: int, honest: Payload) -> Payload:
            part = honest.parts[0]
            return Payload((Part(part.coordinates, np.full(part.values.size, sign * 1e6), part.scale),))

        return in_the_last_round(choose)

    one, other = (Play(run, sm.Clip(value=VALUE), flat(sign)) for sign in (1.0, -1.0))
    moved, counts = np.abs(one.mean - other.mean), one.estimate.counts
    sent = np.isin(np.arange(DIM), one.sent.parts[0].coordinates)
    each = 2 * VALUE * OWN * (1.0 if name in ONE else 1 / SHARE)
    expected = each * np.concatenate([[0.0], gains("avg")])[counts] if "spatial" in name else np.full(DIM, each)
    np.testing.assert_allclose(moved, np.where(sent, expected, 0.0), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", ["rand-k-temporal", "rand-k-temporal-window", "rand-k-temporal-stale"])
def test_over_all_rounds_a_memory_adds_what_it_holds(name):
    """Per coordinate 2·value·(2/p − 1)·w/W: the memory may hold the opposite of what is sent."""
    run, rng = run_named(name), np.random.default_rng(3)
    clip, bound = sm.Clip(value=VALUE), 2 * VALUE * (2 / SHARE - 1) * OWN
    plays = [Play(run, clip, anything(run, rng)) for _ in range(15)]
    assert max(float(np.max(np.abs(one.mean - other.mean))) for one in plays for other in plays) <= bound * ROUNDING

    def turning(sign: float) -> Choice:
        def choose(round: int, honest: Payload) -> Payload:
            part = honest.parts[0]
            side = sign if round == 2 else -sign
            return Payload((Part(part.coordinates, np.full(K, side * 1e6), part.scale),))

        return choose

    one, other = (Play(run, clip, turning(sign)) for sign in (1.0, -1.0))
    assert np.max(np.abs(one.mean - other.mean)) == pytest.approx(bound, rel=1e-6)


def test_what_top_k_remembers_is_within_the_clip_at_all_times():
    run, rng = run_named("top-k-temporal"), np.random.default_rng(4)
    plays = [Play(run, sm.Clip(value=VALUE), anything(run, rng)) for _ in range(30)]
    moved = max(float(np.max(np.abs(one.mean - other.mean))) for one in plays for other in plays)
    assert moved == pytest.approx(2 * VALUE * OWN, rel=1e-6)


def test_alone_at_a_coordinate_top_k_spatial_takes_one_node_for_many():
    run, rng = run_named("top-k-spatial"), np.random.default_rng(5)
    equal = dict.fromkeys(WEIGHTS, 1.0)
    plays = [Play(run, sm.Clip(value=VALUE), in_the_last_round(anything(run, rng)), equal) for _ in range(30)]
    moved = max(float(np.max(np.abs(one.mean - other.mean))) for one in plays for other in plays)
    assert moved == pytest.approx(2 * VALUE * sm.theory.weights("avg", NODES)[-1] / NODES, rel=1e-6)


def test_adapting_to_the_round_itself_is_bounded_by_what_all_of_them_send():
    """No bound of order w/W: one node changes T for all. |mean_j| ≤ value · Σw sent/(Wp) · largest g(M_j)."""
    run, rng = run_named("rand-k-spatial-adaptive"), np.random.default_rng(6)
    plays = [Play(run, sm.Clip(value=VALUE), in_the_last_round(anything(run, rng))) for _ in range(30)]
    most = np.maximum(gains(LEAST_RATIO), gains("max"))
    for play in plays:
        counts = play.estimate.counts
        weight = np.minimum(counts * max(WEIGHTS.values()), sum(WEIGHTS.values())) / sum(WEIGHTS.values())
        assert np.all(np.abs(play.mean) <= VALUE * weight / SHARE * np.concatenate([[0.0], most])[counts] * ROUNDING)
    elsewhere = np.setdiff1d(np.arange(DIM), plays[0].sent.parts[0].coordinates)
    assert max(np.max(np.abs(play.mean - plays[0].mean)[elsewhere]) for play in plays) > 0.01  # where it sent nothing


def test_blocks_have_weights_and_bounds_of_their_own():
    run = sm.Run(sm.named("rand-k-spatial-avg", k=K), DIM, seed=11, blocks=[15, 25])
    rng = np.random.default_rng(7)
    weights = {node: np.array([weight, i % 2 + (node == BAD)]) for i, (node, weight) in enumerate(WEIGHTS.items())}
    own = weights[BAD] / sum(weights.values())
    n = [sum(weight[block] > 0 for weight in weights.values()) for block in range(2)]
    factors = [float(w * max(gains("avg", nodes))) / SHARE for w, nodes in zip(own, n, strict=True)]
    plays = [Play(run, sm.Clip(norm=NORM), in_the_last_round(anything(run, rng)), weights) for _ in range(20)]
    moved = max(float(np.linalg.norm(one.mean - other.mean)) for one in plays for other in plays)
    assert max(factors) * NORM / 2 < moved <= 2 * NORM * max(factors) * ROUNDING


# --- Nodes that send with different k.

SIZES, MIXED_DIM = (3, 12), 24
MIXED_T: dict[str, sm.theory.Weighting | None] = {
    **dict.fromkeys(("rand-k", *TEMPORAL), "one"),
    **GIVEN_T,
    **dict.fromkeys(LEARNT_T),  # None: as the server has learnt it before the round
}


class MixedPlay:
    """Two rounds of nodes with different k; ``bad`` of them sends ``own`` in the second, whatever its k."""

    def __init__(self, name: SchemeName, counts: tuple[int, ...], bad: int, seed: int, clip: sm.Clip) -> None:
        ratio: dict[str, Any] = {"ratio": 2.5} if name == "rand-k-spatial-opt" else {}
        self.run = sm.Run(sm.named(name, k=SIZES, **ratio), MIXED_DIM, seed=seed)
        self.choices = [s for s, count in enumerate(counts) for _ in range(count)]
        self.weights = 1.0 + 0.5 * np.arange(len(self.choices))
        self.bad, self.clip, self.seed = bad, clip, seed

    def mean(self, own: np.ndarray, choice: int | None = None) -> np.ndarray:
        server, rng = sm.Server(self.run, clip=self.clip), np.random.default_rng(self.seed)
        for round in range(2):
            self.belief = server.beliefs()[0].before or 0.0  # by the last round it has seen some
            for i, chosen in enumerate(self.choices):
                wrong = i == self.bad and round == 1
                encoder = self.run.encoders[chosen if choice is None or not wrong else choice]
                vector = own if wrong else 1.0 + 0.5 * rng.normal(size=MIXED_DIM)
                blob = sm.Client(self.run, str(i), encoder).encode(vector, round)
                server.accept(str(i), blob, self.weights[i])
            estimate = server.close_round()
        return estimate.mean

    @property
    def own_weight(self) -> float:
        return float(self.weights[self.bad] / self.weights.sum())

    def factors(self, T: sm.theory.Weighting | None) -> list[float]:
        """max_m g_s(m)/p_s of each class, from the mixed gains."""
        n, counts = len(self.choices), np.bincount(self.choices, minlength=len(SIZES)).tolist()
        T = max(self.belief * (n - 1), LEAST_RATIO) if T is None else T
        found = sm.theory.mixed_gains(T, counts, self.run.shares)
        return [float(np.max(gain)) / share for gain, share in zip(found, self.run.shares, strict=True)]


@pytest.mark.parametrize(
    ("name", "counts"), [*((name, (1, 4)) for name in MIXED_T), *((name, (3, 2)) for name in list(MIXED_T)[::3])]
)
def test_with_several_k_the_mixed_gains_bound_what_one_node_moves_and_are_attained(name, counts):
    """Over seeds, nodes of each k and where they send: F is reached, and never exceeded, in each class of nodes."""
    reached = np.zeros((2, 2))
    for seed in range(10):
        if seed > 3 and np.allclose(reached, 1.0, rtol=1e-5):
            break
        for s, bad in enumerate((0, 4)):  # a node with the first k, one with the second
            flat = MixedPlay(name, counts, bad, seed, sm.Clip(value=VALUE))
            moved = np.abs(flat.mean(np.full(MIXED_DIM, 1e6)) - flat.mean(np.full(MIXED_DIM, -1e6)))
            worst = np.eye(MIXED_DIM)[np.argmax(moved)] * 1e6
            spike = MixedPlay(name, counts, bad, seed, sm.Clip(norm=NORM))
            length = float(np.linalg.norm(spike.mean(worst) - spike.mean(-worst)))
            found = np.array([moved.max() / VALUE, length / NORM]) / (2 * spike.own_weight)
            stated = np.array([play.factors(MIXED_T[name])[s] for play in (flat, spike)])
            assert np.all(found <= stated * ROUNDING)
            assert moved.max() <= flat.clip.bound(flat.run, counts, flat.own_weight).coordinate * ROUNDING
            assert length <= spike.clip.bound(spike.run, counts, spike.own_weight).length * ROUNDING
            reached[s] = np.maximum(reached[s], found / stated)
    assert reached == pytest.approx(np.ones((2, 2)), rel=1e-5)


def test_one_node_with_a_small_k_among_four_with_a_large_one_is_worth_twenty_nodes():
    run = sm.Run(sm.named("rand-k-spatial-max", k=SIZES), MIXED_DIM)
    assert sm.Clip(norm=1.0).bound(run, (1, 4)).length == pytest.approx(2 / 5 * 20.645, rel=1e-4)
    for k, factor in zip(SIZES, (10.27, 5.16), strict=True):  # where all have the same k
        run = sm.Run(sm.named("rand-k-spatial-max", k=k), MIXED_DIM)
        assert sm.Clip(norm=1.0).bound(run, 5).length == pytest.approx(2 / 5 * factor, rel=1e-3)


def test_without_spatial_weights_and_memory_another_k_moves_the_mean_no_further():
    rng = np.random.default_rng(8)
    for seed in range(10):
        play = MixedPlay("rand-k", (1, 4), 0, seed, sm.Clip(norm=NORM))
        means = [
            play.mean(rng.normal(size=MIXED_DIM) * 1e6 * (rng.random(MIXED_DIM) < 0.3), choice)
            for choice in (0, 1)
            for _ in range(3)
        ]
        moved = max(float(np.linalg.norm(one - other)) for one in means for other in means)
        assert 0 < moved <= 2 * NORM * play.own_weight * MIXED_DIM / min(SIZES) * ROUNDING


@pytest.mark.parametrize("name", GIVEN_T)
def test_a_node_that_changes_its_k_changes_how_others_count_within_what_all_of_them_send(name):
    """Then only |mean_j| ≤ value · max_sm m g_s(m)/(n p_s) holds (equal weights), so twice that for a difference."""
    rng, others = np.random.default_rng(9), 0.0
    for seed in range(10):
        play = MixedPlay(name, (1, 4), 0, seed, sm.Clip(value=VALUE))
        play.weights = np.ones(5)
        vector = rng.choice([-1e6, 1e6], MIXED_DIM)
        means = [play.mean(vector, choice) for choice in (0, 1)]
        most = max(
            float(np.max(np.arange(6) * gain)) / share / 5
            for counts in ((1, 4), (0, 5))
            for gain, share in zip(
                sm.theory.mixed_gains(GIVEN_T[name], counts, play.run.shares), play.run.shares, strict=True
            )
        )
        assert np.max(np.abs(means[0] - means[1])) <= 2 * VALUE * most * ROUNDING
        key = play.run.key("0", 1)
        sent = np.concatenate([coordinates(key, MIXED_DIM, k) for k in SIZES])
        others = max(others, float(np.max(np.abs(np.delete(means[0] - means[1], sent)))))
    assert others > 0.01  # also where this node sent nothing


@pytest.mark.parametrize("name", sm.names())
def test_the_clip_tells_the_bound_that_holds(name):
    """For every scheme: the numbers of docs/reliability.md, infinity where it has none, a refusal where it cannot."""
    run, clip = run_named(name), sm.Clip(norm=NORM)
    if name in IN_STEP:
        with pytest.raises(sm.InvalidInput, match="cannot be clipped"):
            clip.bound(run, NODES)
        return
    length, coordinate = clip.bound(run, NODES, OWN)
    if name in PER_COORDINATE:
        assert length == coordinate == math.inf
        told = sm.Clip(value=VALUE).bound(run, NODES, OWN).coordinate
        assert told == (pytest.approx(2 * VALUE * OWN) if name == "top-k-temporal" else math.inf)
    elif name in LEARNT_T:  # the worst T of all that can be learnt
        worst = max(float(max(gains(T))) for T in (LEAST_RATIO, "max")) / SHARE
        assert length == coordinate == pytest.approx(2 * NORM * OWN * worst)
        for ratio in np.linspace(LEAST_RATIO, NODES - 1, 50):
            assert max(gains(float(ratio))) / SHARE <= worst * (1 + 1e-12)
    elif name == "rand-k-epochs-hybrid":  # 20·d/k, whatever the ratios
        assert length == coordinate == pytest.approx(2 * NORM * OWN * 20 / SHARE)
    else:
        assert length == coordinate == pytest.approx(2 * NORM * OWN * factor(name, 0.0))


def test_what_everybody_sends_is_not_amplified():
    """Of all counts of nodes only n occurs where p = 1."""
    for run in (
        sm.Run(sm.Scheme(sm.Identity(), sm.Spatial("max")), DIM),
        sm.Run(sm.named("rand-k-spatial-max", k=DIM), DIM),
    ):
        assert sm.Clip(norm=1.0).bound(run, 5).length == pytest.approx(2 / 5)


def test_a_coordinate_in_both_parts_counts_with_both():
    """Induced: values of magnitude 1 in each part add up to 1 + d/k₂, those of length 1 together to √(1 + (d/k₂)²)."""
    run = run_named("induced")

    def both(sign: float) -> Choice:
        def choose(round: int, honest: Payload) -> Payload:
            random = honest.parts[1]
            at = random.coordinates[:1]
            values = np.where(random.coordinates == at[0], sign * 1e6, 0.0)
            return Payload((Part(at, np.array([sign * 1e6])), Part(random.coordinates, values, random.scale)))

        return in_the_last_round(choose)

    one, other = (Play(run, sm.Clip(value=VALUE), both(sign)) for sign in (1.0, -1.0))
    moved = float(np.max(np.abs(one.mean - other.mean)))
    assert moved == pytest.approx(2 * VALUE * OWN * (1 + DIM / (K / 2)), rel=1e-6)
    assert moved == pytest.approx(sm.Clip(value=VALUE).bound(run, NODES, OWN).coordinate, rel=1e-6)


@pytest.mark.parametrize("nodes", [5, (1, 2, 3), (0, 0), (-1, 2), (1.5, 2), "12", None])
def test_a_bound_needs_the_number_of_nodes_with_each_k(nodes: Any):
    run = sm.Run(sm.named("rand-k", k=SIZES), MIXED_DIM)
    with pytest.raises(sm.InvalidInput, match="nodes"):
        sm.Clip(norm=1.0).bound(run, nodes)


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan, "much"])
def test_a_bound_needs_the_share_of_the_weight(weight: Any):
    with pytest.raises(sm.InvalidInput, match="w/W"):
        sm.Clip(norm=1.0).bound(run_named("rand-k"), 5, weight)


# --- The clip itself.


def payload(*values: list[float], noise: float = 0.0) -> Payload:
    return Payload(tuple(Part(np.arange(len(each)), np.array(each, np.float32), noise=noise) for each in values))


def test_what_is_within_the_bounds_stays_the_very_same():
    for given in (payload([0.5, -0.5]), payload([0.0, 0.0]), payload([])):
        assert sm.Clip(norm=1.0, value=0.5).clipped(given) is given
    run = run_named("rand-k-hybrid")
    honest = [Play(run, clip, lambda round, honest: honest) for clip in (sm.Clip(norm=1e6), sm.Clip(value=1e6))]
    assert honest[0].mean.tobytes() == honest[1].mean.tobytes()


def test_values_are_cut_first_and_the_length_is_that_of_all_parts():
    cut = sm.Clip(norm=0.5, value=0.6).clipped(payload([3.0, 0.0], [-9.0, 0.4], noise=0.25))
    length = math.hypot(0.6, 0.6, 0.4) / 0.5
    for part, kept in zip(cut.parts, ([0.6, 0.0], [-0.6, 0.4]), strict=True):
        np.testing.assert_allclose(part.values, np.array(kept) / length, rtol=1e-6)
        assert part.values.dtype == np.float32
    assert cut.parts[1].noise == pytest.approx(0.25 / length**2)


@pytest.mark.parametrize("size", [1e30, 1e100])
def test_lengths_that_overflow_when_squared_are_cut_too(size):
    given = Payload((Part(np.arange(3), np.array([size, -size, 1.0])),))
    values = sm.Clip(norm=1.0).clipped(given).parts[0].values
    np.testing.assert_allclose(values, [math.sqrt(0.5), -math.sqrt(0.5), 0.0], atol=1e-12)


@pytest.mark.parametrize("bounds", [{}, {"norm": 0.0}, {"norm": -1.0}, {"value": math.inf}, {"value": math.nan}])
def test_bounds_are_numbers_above_zero(bounds):
    with pytest.raises(sm.InvalidInput):
        sm.Clip(**bounds)


@pytest.mark.parametrize("bound", ["1", None, [1.0]])
def test_bounds_are_numbers(bound: Any):
    with pytest.raises(sm.InvalidInput):
        sm.Clip(norm=bound)


@pytest.mark.parametrize("name", sorted(IN_STEP))
def test_nodes_that_build_on_what_the_server_took_cannot_be_clipped(name):
    with pytest.raises(sm.InvalidInput, match="cannot be clipped"):
        sm.Server(run_named(name), clip=sm.Clip(norm=1.0))


def test_a_journal_keeps_to_its_clip_and_comes_back_clipped(tmp_path: Path):
    run = run_named("rand-k-temporal")
    blob = sm.Client(run, "a").encode(np.full(DIM, 1e6), 0)
    with sm.Server(run, journal=tmp_path, clip=sm.Clip(value=VALUE)) as server:
        server.accept("a", blob)
        digest = server.digest()
    with pytest.raises(sm.ForeignJournal, match="clip"):
        sm.Server(run, journal=tmp_path, clip=sm.Clip(norm=VALUE))
    with pytest.raises(sm.ForeignJournal, match="clip"):
        sm.Server(run, journal=tmp_path)
    with sm.Server(run, journal=tmp_path, clip=sm.Clip(value=VALUE)) as server:
        assert server.digest() == digest
        server.close_round()
        assert np.max(server.expected("a")) == np.float32(VALUE)
