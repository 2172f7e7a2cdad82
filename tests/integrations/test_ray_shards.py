"""Shards without Ray: every scheme cut by range gives what one server gives, and every call may come twice."""

from __future__ import annotations

import functools
import json
import operator
import runpy
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import Missing, SchemeName, ValueName
from sparsemean.sampling import Dealt
from sparsemean.server.local import Entry
from sparsemean.server.submissions import submission_of

pytest.importorskip("ray", reason="Ray is not installed: pip install 'sparsemean[ray]'")

from sparsemean.integrations.ray.pieces import Piece, pieces
from sparsemean.integrations.ray.ranges import Sharding, ShardLost
from sparsemean.integrations.ray.round_end import RoundEnd
from sparsemean.integrations.ray.shard import Shard
from sparsemean.integrations.ray.usage import array_bytes

ROOT = Path(__file__).parent.parent.parent
SMALL, LARGE = (5_000, 19_000, 6_000), (5_000, 249_000, 46_000)  # of 74 tiles not all keep powers
FITTED = {
    "rand-k-spatial-adaptive",
    "rand-k-spatial-adaptive-unbiased",
    "rand-k-temporal-shared-stable",
    "rand-k-hybrid",
    "rand-k-balanced",
    "rand-k-balanced-hybrid",
    "rand-k-epochs-hybrid",
    "rand-k-hybrid-shrunk",
    "rand-k-balanced-hybrid-shrunk",
}
IN_LARGE = {"rand-k-spatial-adaptive", "rand-k-hybrid", "rand-k-balanced-hybrid"}
NODES = [f"node-{i}" for i in range(5)]


def sharding(run: sm.Run, shards: int, missing: Missing = "drop", journal: Path | None = None) -> Sharding:
    return Sharding(run, shards, missing, 0, 1 << 16, None if journal is None else str(journal), True, None)


def entry(server: sm.Server, node: str, blob: bytes, weight: Any) -> Entry:
    """A payload as the server would count it."""
    roster = server._rounds.roster
    submission = submission_of(server.run, None, roster, node, blob, weight)
    return Entry(*roster.acceptance(submission), submission.payload)


class ByHand:
    """A coordinator that only cuts, adds up and puts together."""

    def __init__(self, made: Sharding, twice: bool = False) -> None:
        self.sharding, self.sequence = made, -1
        self.shards = [Shard(made, number) for number in range(made.shards)]
        self.times = 2 if twice else 1

    def cut(self, server: sm.Server, node: str, blob: bytes, weight: Any) -> list[Piece]:
        plan = server._rounds.roster.plan(node, server.round)
        return pieces(self.sharding.run, self.sharding.bounds, entry(server, node, blob, weight), plan)

    def deal(self, round: int, nodes: Dealt) -> None:
        for shard in self.shards:
            for _ in range(self.times):
                shard.deal(self.sequence, round, nodes)
        self.sequence += 1

    def accept(self, round: int, submissions: Sequence[Sequence[Piece]]) -> None:
        for shard, column in zip(self.shards, zip(*submissions, strict=True), strict=True):
            for _ in range(self.times):
                shard.accept(self.sequence, round, column)
        self.sequence += len(submissions)

    def close(self) -> sm.Estimate:
        summary = functools.reduce(operator.add, [shard.summary(self.sequence) for shard in self.shards])
        ending = RoundEnd(self.sequence, "close", summary, 1000)
        for shard in self.shards:
            for _ in range(self.times):
                shard.end(ending)
        self.sequence += 1
        found = [estimate for shard in self.shards if (estimate := shard.result()) is not None]
        assert len({estimate_rest(each) for each in found}) == 1
        mean, counts = (np.concatenate([getattr(each, name) for each in found]) for name in ("mean", "counts"))
        return replace(found[0], mean=mean, counts=counts)


def estimate_rest(estimate: sm.Estimate) -> tuple[Any, ...]:
    said = estimate.bytes, estimate.error, estimate.error_se, estimate.correlation, estimate.rounding
    return *said, estimate.error_is_bound


def scheme(name: SchemeName, values: ValueName) -> sm.Scheme:
    k: Any = (0.02, 0.01) if name.startswith("rand-k") else 0.02
    return sm.named(name, k=k, values=values, **({"ratio": 2.0} if name.endswith("-opt") else {}))


def play(run: sm.Run, made: Sharding, twice: bool = False, rounds: int = 3) -> list[tuple[sm.Estimate, sm.Estimate]]:
    """Rounds of a server and of shards beside it; nodes come and go, and one block of one node has no weight."""
    server, cut = sm.Server(run, missing=made.missing, batch_bytes=1 << 16), ByHand(made, twice)
    clients = [sm.Client(run, node, run.encoders[i % len(run.encoders)]) for i, node in enumerate(NODES)]
    random, found = np.random.default_rng(1), []
    base = random.normal(size=run.dim)
    for round in range(rounds):
        submissions, asked = [], [NODES[(number + round) % 5] for number in range(4)]  # one has no slot
        plans = {**server.plans(asked), **server.plans(NODES)}
        if run.planned:
            cut.deal(round, server._rounds.roster.dealt or asked)  # with epochs, the ratio by which one goes on
        for number, client in enumerate(clients):
            if (number + round) % 4 != 3:
                weight = [1.0, 2.0 + number, 0.0 if number == 1 else 1.5][: len(run.blocks)]
                blob = client.encode(base + random.normal(size=run.dim), round, plans[client.node])
                submissions.append(cut.cut(server, client.node, blob, weight))
                client.delivered(server.accept(client.node, blob, weight))
        cut.accept(round, submissions)
        found.append((server.close_round(), cut.close()))
    for node in NODES:
        remembered = np.concatenate([shard.remembered(node) for shard in cut.shards])
        np.testing.assert_allclose(remembered, server.expected(node), rtol=0, atol=1e-12)
    for number, shard in enumerate(cut.shards):
        before = shard.digest()
        shard.close()
        if made.journal is not None:
            again = Shard(made, number)
            assert again.digest() == before
            again.close()
    return found


def assert_same_estimate(name: str, plain: sm.Estimate, sharded: sm.Estimate) -> None:
    if name in FITTED:
        np.testing.assert_allclose(sharded.mean, plain.mean, rtol=0, atol=1e-12 * np.abs(plain.mean).max())
    else:
        np.testing.assert_array_equal(sharded.mean, plain.mean)
    np.testing.assert_array_equal(sharded.counts, plain.counts)
    assert (sharded.nodes, sharded.bytes) == (plain.nodes, plain.bytes)
    assert sharded.error_is_bound == plain.error_is_bound
    for a, b in zip(estimate_rest(plain)[1:3], estimate_rest(sharded)[1:3], strict=True):
        assert a == b if a is None else b == pytest.approx(a, rel=1e-11)
    if plain.correlation is not None:
        assert sharded.correlation is not None
        assert sharded.correlation.r2 == pytest.approx(plain.correlation.r2, rel=1e-9, abs=1e-9 * plain.correlation.r1)


@pytest.mark.parametrize("name", sm.names())
def test_every_scheme_cut_by_range_is_what_it_is_in_one_piece(name: SchemeName) -> None:
    blocks = LARGE if name in IN_LARGE else SMALL
    run = sm.Run(scheme(name, "int8" if name == "rand-k-hybrid" else "float32"), sum(blocks), seed=3, blocks=blocks)
    missing: Missing = "carry" if run.scheme.memory.facts.stands_in else "drop"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.DivergenceWarning)
        for plain, sharded in play(run, sharding(run, 4, missing)):
            assert_same_estimate(name, plain, sharded)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        *(("identity", "eden-2.5"), ("rand-k-temporal", "eden-2.5"), ("identity", "rotated-3")),
        *(("rand-k-spatial-avg", "qsgd-4"), ("identity", "natural"), ("rand-k", "terngrad")),
    ],
)
def test_values_that_share_a_scale_are_decoded_before_they_are_cut(name: SchemeName, values: ValueName) -> None:
    run = sm.Run(scheme(name, values), 60_000, seed=3, blocks=(5_000, 25_000, 30_000))
    for plain, sharded in play(run, sharding(run, 3)):
        assert_same_estimate(name, plain, sharded)


@pytest.mark.parametrize(
    "name", ["rand-k-temporal", "rand-k-hybrid", "rand-k-balanced-hybrid", "rand-k-epochs-hybrid", "diana", "lag"]
)
def test_calls_that_come_twice_count_once_and_a_new_process_goes_on_from_the_journal(
    name: SchemeName, tmp_path: Path
) -> None:
    run = sm.Run(scheme(name, "float32"), 20_000, seed=3)
    made = sharding(run, 2, "drop", tmp_path)
    for plain, sharded in play(run, made, twice=True):
        assert_same_estimate(name, plain, sharded)


@pytest.mark.parametrize("memory", [None, sm.PerNode()], ids=repr)
def test_balanced_draws_with_a_given_T_are_the_same_to_the_bit(memory: sm.Memory | None) -> None:
    sizes = tuple(sm.RandK(k, draw=sm.Balanced()) for k in (0.3, 0.2))
    run = sm.Run(sm.Scheme(sm.OneOf(sizes), sm.Spatial("avg"), memory), 20_000, seed=3, blocks=(5_000, 15_000))
    for plain, sharded in play(run, sharding(run, 3)):
        assert_same_estimate("none is fitted", plain, sharded)


def test_a_shard_has_its_slots_again_when_its_process_died_and_not_those_that_were_taken_back(tmp_path: Path) -> None:
    run = sm.Run(sm.named("rand-k-balanced", k=0.1), 20_000)
    made = sharding(run, 2, journal=tmp_path)
    server, shard = sm.Server(run), Shard(made, 0)
    plans = server.plans(["b", "a"])
    shard.deal(-1, 0, ["b", "a"])
    assert shard.roll()[2] == ["b", "a"]
    for _ in range(2):
        digest = shard.digest()
        shard.close()
        shard = Shard(made, 0)
        assert (shard.digest(), shard.roll()[2]) == (digest, ["b", "a"])
        assert (shard.status().before, shard.status().sequence) == (-1, 0)
    blob = sm.Client(run, "a").encode(np.ones(run.dim), 0, plans["a"])
    piece = ByHand(made).cut(server, "a", blob, 1.0)[0]
    shard.accept(0, 0, [piece])
    shard.close()
    shard = Shard(made, 0)
    assert [each.receipt.node for each in shard.roll()[1]] == ["a"]
    shard.rewind(0)
    assert shard.roll()[1:] == ([], ["b", "a"])
    shard.rewind(-1)
    assert shard.roll()[1:] == ([], None)
    with pytest.raises(sm.WrongPlan):
        shard.accept(-1, 0, [piece])  # nobody has a slot now
    shard.deal(-1, 0, ["a", "c"])
    with pytest.raises(sm.WrongPlan):
        shard.accept(0, 0, [piece])
    shard.close()


def test_a_shard_has_the_slots_of_each_encoder_again_when_its_process_died(tmp_path: Path) -> None:
    run = sm.Run(sm.named("rand-k-balanced", k=(0.2, 0.1)), 20_000)
    made = sharding(run, 2, journal=tmp_path)
    shard, dealt = Shard(made, 0), [["a"], ["b", "c"]]
    wrongs: list[Any] = [[["a"], ["a"]], [["a"], ["b"], ["c"]], [["a"], "b"], [["a"], [""]]]
    for wrong in wrongs:
        with pytest.raises(sm.InvalidInput, match="slots are dealt to"):
            shard.deal(-1, 0, wrong)
    shard.deal(-1, 0, dealt)
    digest = shard.digest()
    shard.close()
    shard = Shard(made, 0)
    assert (shard.digest(), shard.roll()[2]) == (digest, dealt)
    shard.close()


def test_the_golden_journals_of_shards_are_opened_and_go_on(tmp_path: Path) -> None:
    maker = runpy.run_path(str(ROOT / "scripts" / "make_golden_journals.py"))
    golden = ROOT / "tests" / "golden" / "journal" / "v1"
    with zipfile.ZipFile(golden / "shards.zip") as archive:
        archive.extractall(tmp_path)
    story = json.loads((golden / "shards.json").read_text(encoding="utf-8"))
    run = sm.Run.from_json(json.dumps(story["run"]))
    made = sharding(run, 2, journal=tmp_path)
    server, nodes, cut = sm.Server(run), maker["Nodes"](run), ByHand(made)
    maker["begin"](server, nodes)
    nodes.send(server, tuple(story["waiting"]))
    assert {shard.status().round for shard in cut.shards} == {story["round"]}
    for node, expected in story["expected"].items():
        np.testing.assert_array_equal(np.concatenate([shard.remembered(node) for shard in cut.shards]), expected)
    (cut.sequence,) = {shard.status().sequence for shard in cut.shards}
    for expected in story["next"]:
        submissions = []
        for node in maker["NODES"][2:] if server.round == story["round"] else maker["NODES"]:
            weight = [1.0 + len(node) / 8, 1.0]
            blob = sm.Client(run, node).encode(maker["vector"](node, server.round, run.dim), server.round)
            submissions.append(cut.cut(server, node, blob, weight))
            server.accept(node, blob, weight)
        cut.accept(server.round, submissions)
        server.close_round()
        assert cut.close().mean.tolist() == expected["mean"]


def test_a_shard_refuses_what_does_not_follow_on_its_last_record(tmp_path: Path) -> None:
    run = sm.Run(sm.named("rand-k", k=0.1), 20_000)
    server, cut = sm.Server(run), ByHand(sharding(run, 2, journal=tmp_path))
    submission = cut.cut(server, "a", sm.Client(run, "a").encode(np.ones(run.dim), 0), 1.0)
    cut.accept(0, [submission])
    shard = cut.shards[0]
    assert (shard.status().before, shard.status().sequence) == (-1, 0)
    with pytest.raises(ShardLost, match="stands at record 0, not 4"):
        shard.forget(4, 0, "a")
    shard.rewind(-1)
    assert shard.status().sequence == -1
    assert shard.roll()[1] == []
    cut.shards[1].close()
    shard.accept(-1, 0, submission[:1])  # the same node may come again
    assert [taken.receipt.node for taken in shard.roll()[1]] == ["a"]
    shard.forget(0, 0, "b")
    for _ in range(2):
        assert (shard.status().before, shard.status().sequence) == (0, 1)
        shard.close()  # and take all of it from the journal again
    with pytest.raises(ShardLost, match="no journal to go back to"):
        Shard(sharding(run, 2), 0).rewind(-1)


def test_pieces_are_views_of_the_payload_and_cover_it() -> None:
    run = sm.Run(sm.named("rand-k", k=0.1), 20_000)
    server, cut = sm.Server(run), ByHand(sharding(run, 3))
    blob = sm.Client(run, "a").encode(np.arange(run.dim, dtype=np.float32), 0)
    whole = entry(server, "a", blob, 1.0)
    assert whole.payload is not None
    cuts = pieces(run, cut.sharding.bounds, whole, None)
    values = whole.payload.parts[0].values
    assert all(np.shares_memory(piece.sent[0].values, values) for piece in cuts)
    assert sum(piece.sent[0].values.size for piece in cuts) == values.size == 2000
    for piece, lo, hi in zip(cuts, cut.sharding.bounds, cut.sharding.bounds[1:], strict=False):
        payload = piece.payload(run, lo, hi)
        assert payload is not None
        np.testing.assert_array_equal(payload.parts[0].coordinates + lo, payload.parts[0].values)


def test_arrays_of_a_shard_are_those_of_its_range() -> None:
    run = sm.Run(sm.named("rand-k-temporal", k=0.01), 1 << 16)
    whole, half = (Shard(sharding(run, shards), 0) for shards in (1, 2))
    for shard, shards in ((whole, 1), (half, 2)):
        server, cut = sm.Server(run), ByHand(sharding(run, shards))
        for node in NODES:
            submission = cut.cut(server, node, sm.Client(run, node).encode(np.ones(run.dim), 0), 1.0)
            shard.accept(shard.status().sequence, 0, submission[:1])
    assert array_bytes(half._ready()) < 0.6 * array_bytes(whole._ready())
