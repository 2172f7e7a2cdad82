"""Calls that cannot be right: a shard refuses them with a typed error, and its state and its journal are as before."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName
from sparsemean.decoding.summary import Summary
from sparsemean.sampling import Plan
from sparsemean.server.estimator import Estimator
from sparsemean.server.local import Entry
from sparsemean.server.submissions import submission_of

pytest.importorskip("ray", reason="Ray is not installed: pip install 'sparsemean[ray]'")

from sparsemean.integrations.ray import replies
from sparsemean.integrations.ray.pieces import Piece, Sent, pieces
from sparsemean.integrations.ray.ranges import Sharding, ShardLost
from sparsemean.integrations.ray.round_end import RoundEnd
from sparsemean.integrations.ray.shard import Shard
from sparsemean.journal import contents, faults

DIM, SHARD = 20_000, 1  # of three shards, the one in the middle
SCHEMES = {
    "seeded": sm.named("rand-k-temporal", k=0.05),
    "listed": sm.named("top-k", k=0.05),
    "several": sm.named("rand-k-spatial-adaptive", k=(0.05, 0.02), values="int8"),
    "all": sm.named("identity"),
    "in step": sm.named("diana", k=0.05),
    "balanced": sm.named("rand-k-balanced-hybrid", k=0.05),
}
Bad = tuple[Callable[[Piece], Any], type[sm.SparseMeanError]]

replace: Any = dataclasses.replace  # also by what a type checker would refuse


def entry(server: sm.Server, node: str, blob: bytes, weight: Any) -> Entry:
    """A payload as the server would count it."""
    roster = server._rounds.roster
    submission = submission_of(server.run, None, roster, node, blob, weight)
    roster.check_basis(submission)
    return Entry(*roster.acceptance(submission), submission.payload)


def accepted(**changes: Any) -> Callable[[Piece], Piece]:
    return lambda piece: replace(piece, acceptance=replace(piece.acceptance, **changes))


def receipt(**changes: Any) -> Callable[[Piece], Piece]:
    return lambda piece: accepted(receipt=replace(piece.acceptance.receipt, **changes))(piece)


def sent(change: Callable[[Sent], Any]) -> Callable[[Piece], Piece]:
    return lambda piece: replace(piece, sent=(change(piece.sent[0]), *piece.sent[1:]))


def values(change: Callable[[Any], Any]) -> Callable[[Piece], Piece]:
    return sent(lambda of: replace(of, values=change(of.values)))


def with_nan(array: Any) -> Any:
    return np.where(np.arange(array.size) == 3, np.nan, array).astype(array.dtype)


BAD_PIECES: dict[str, Bad] = {
    "no piece": (lambda piece: {"node": "b"}, sm.MalformedPayload),
    "none": (lambda piece: None, sm.MalformedPayload),
    "no description": (lambda piece: replace(piece, acceptance=None), sm.MalformedPayload),
    "no receipt": (accepted(receipt=("b", 0, "00")), sm.MalformedPayload),
    "no name": (receipt(node=7), sm.MalformedPayload),
    "empty name": (receipt(node=""), sm.MalformedPayload),
    "digest of bytes": (receipt(digest=b"00"), sm.MalformedPayload),
    "receipt of another round": (receipt(round=0), sm.WrongRound),
    "weight of another shape": (accepted(weight=np.ones(2)), sm.MalformedPayload),
    "weight of another type": (accepted(weight=np.ones(1, np.float32)), sm.MalformedPayload),
    "weight is a number": (accepted(weight=1.0), sm.MalformedPayload),
    "negative weight": (accepted(weight=-np.ones(1)), sm.MalformedPayload),
    "weight is NaN": (accepted(weight=np.array([np.nan])), sm.MalformedPayload),
    "size is text": (accepted(bytes="many"), sm.MalformedPayload),
    "basis beyond 64 bits": (accepted(basis=1 << 64), sm.MalformedPayload),
    "afresh is text": (lambda piece: replace(piece, afresh="yes"), sm.MalformedPayload),
    "unknown encoder": (lambda piece: replace(piece, choice=9), sm.MalformedPayload),
    "unchanged, which it cannot say": (lambda piece: replace(piece, choice=-1, sent=()), sm.MalformedPayload),
    "no parts": (lambda piece: replace(piece, sent=()), sm.MalformedPayload),
    "a part too many": (lambda piece: replace(piece, sent=piece.sent * 2), sm.MalformedPayload),
    "parts in a list": (lambda piece: replace(piece, sent=list(piece.sent)), sm.MalformedPayload),
    "part of another type": (sent(lambda of: (of.values, of.noise, of.at)), sm.MalformedPayload),
    "values in a list": (values(lambda array: array.tolist()), sm.MalformedPayload),
    "values of another type": (values(lambda array: array.astype(np.float64)), sm.MalformedPayload),
    "values in a column": (values(lambda array: array[:, None]), sm.MalformedPayload),
    "one value for all": (values(lambda array: array[:1]), sm.MalformedPayload),
    "a value too few": (values(lambda array: array[:-1]), sm.MalformedPayload),
    "a value too many": (values(lambda array: np.append(array, array[:1])), sm.MalformedPayload),
    "a value is NaN": (values(with_nan), sm.MalformedPayload),
    "noise is text": (sent(lambda of: replace(of, noise="some")), sm.MalformedPayload),
    "noise is NaN": (sent(lambda of: replace(of, noise=np.nan)), sm.MalformedPayload),
    "negative noise": (sent(lambda of: replace(of, noise=np.full(of.values.size, -1.0))), sm.MalformedPayload),
    "noise of another length": (sent(lambda of: replace(of, noise=np.ones(3))), sm.MalformedPayload),
    "coordinates of another type": (sent(lambda of: replace(of, at=of.values)), sm.MalformedPayload),
    "coordinates of another length": (sent(lambda of: replace(of, at=np.arange(3))), sm.MalformedPayload),
    "another slot": (lambda piece: replace(piece, plan=Plan(0, 2)), sm.WrongPlan),
    "more slots": (lambda piece: replace(piece, plan=Plan(1, 3)), sm.WrongPlan),
    "plan without a slot": (lambda piece: replace(piece, plan=Plan()), sm.WrongPlan),
    "plan of bytes": (lambda piece: replace(piece, plan=b"\1" * 13), sm.WrongPlan),
}


def listed(change: Callable[[Any], Any]) -> Callable[[Piece], Piece]:
    return sent(lambda of: replace(of, at=change(of.at)))


BAD_LISTS: dict[str, Bad] = {
    "not listed": (listed(lambda at: None), sm.MalformedPayload),
    "below the range": (listed(lambda at: np.append(0, at[1:])), sm.MalformedPayload),
    "beyond the range": (listed(lambda at: np.append(at[:-1], DIM - 1)), sm.MalformedPayload),
    "negative": (listed(lambda at: at - DIM), sm.MalformedPayload),
    "twice": (listed(lambda at: np.append(at[:1], at[:-1])), sm.MalformedPayload),
    "backwards": (listed(lambda at: at[::-1]), sm.MalformedPayload),
}


class Standing:
    """A shard in its second round, with node "a" in it; the piece of node "b" is to come."""

    def __init__(self, scheme: sm.Scheme, journal: Path | None) -> None:
        self.run, self.journal = sm.Run(scheme, DIM, seed=3), journal
        folder = None if journal is None else str(journal)
        self.sharding = Sharding(self.run, 3, "drop", 0, 1 << 16, folder, True, None)
        self.server, self.shard = sm.Server(self.run), Shard(self.sharding, SHARD)
        self.clients = {node: sm.Client(self.run, node) for node in "ab"}
        for round in range(2):
            self.plans = self.server.plans(["a", "b"])
            if self.run.planned:
                self.shard.deal(self.sequence, round, ["a", "b"])
            for node in "ab" if round == 0 else "":
                self.take(self.piece(node))
            if round == 0:
                self.end()
        self.last = self.piece("a")
        self.take(self.last)

    def piece(self, node: str) -> Piece:
        round = self.server.round
        blob = self.clients[node].encode(np.cos(np.arange(DIM)), round, self.plans[node])
        plan = self.server._rounds.roster.plan(node, round)
        cut = pieces(self.run, self.sharding.bounds, entry(self.server, node, blob, 1.0), plan)[SHARD]
        if node == "a" or self.server.round == 0:
            self.clients[node].delivered(self.server.accept(node, blob))
        return cut

    @property
    def sequence(self) -> int:
        return self.shard.status().sequence

    def take(self, piece: Piece) -> None:
        self.shard.accept(self.sequence, self.shard.status().round, [piece])

    def ending(self) -> RoundEnd:
        return RoundEnd(self.sequence, "close", self.shard.summary(self.sequence), 1000)

    def end(self) -> None:
        self.shard.end(self.ending())
        self.server.close_round()

    def state(self) -> tuple[Any, ...]:
        held = self.shard.status(), self.shard.digest(), [each.receipt.node for each in self.shard.roll()[1]]
        if self.journal is None:
            return held
        folder = self.journal / f"shard-00{SHARD}"
        return *held, faults(folder), contents(folder)

    def reopened(self) -> str:
        """The digest of a new process that has nothing but the journal."""
        self.shard.close()
        self.shard = Shard(self.sharding, SHARD)
        return self.shard.digest()


@pytest.fixture(params=["in memory", "journal"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "journal" else None


def refusal(standing: Standing, call: Callable[[], object]) -> type[Exception] | str:
    """The error that the call raises, twice, or what it did in its place."""
    before = standing.state()
    found: set[type[Exception]] = set()
    for _ in range(2):
        try:
            call()
        except sm.SparseMeanError as refused:
            found.add(type(refused))
        else:
            return "it was not refused"
        if standing.state() != before:
            return "something changed"
    (error,) = found
    return error


# Half of the schemes with a journal, half without: what is refused is refused before either is looked at.
@pytest.mark.parametrize(
    ("scheme", "journal"),
    list(zip(SCHEMES, ["journal", "in memory"] * 3, strict=True)),
    indirect=["journal"],
)
def test_a_piece_that_cannot_be_right_is_refused_before_it_is_written_or_counted(
    scheme: str, journal: Path | None
) -> None:
    standing = Standing(SCHEMES[scheme], journal)
    shard, good, at = standing.shard, standing.piece("b"), standing.sequence
    bad = {**BAD_PIECES, **(BAD_LISTS if scheme == "listed" else {})}
    found = {name: refusal(standing, partial(shard.accept, at, 1, [change(good)])) for name, (change, _) in bad.items()}
    assert found == {name: error for name, (_, error) in bad.items()}
    standing.take(good)
    assert [each.receipt.node for each in shard.roll()[1]] == ["a", "b"]
    standing.end()
    if journal is not None:
        digest = shard.digest()
        assert standing.reopened() == digest
    standing.shard.close()


def test_a_good_piece_beside_a_bad_one_is_not_counted_either(journal: Path | None) -> None:
    standing = Standing(SCHEMES["all"], journal)
    good, at = standing.piece("b"), standing.sequence
    bad = values(with_nan)(receipt(node="c")(good))
    for both in ([good, bad], [bad, good]):
        assert refusal(standing, partial(standing.shard.accept, at, 1, both)) is sm.MalformedPayload
    standing.shard.close()


def test_pieces_of_another_round_or_of_a_node_that_came_are_refused(journal: Path | None) -> None:
    standing = Standing(SCHEMES["seeded"], journal)
    shard, good, at = standing.shard, standing.piece("b"), standing.sequence
    for round in (0, 2, -1, None, "1"):
        assert refusal(standing, lambda: shard.accept(at, round, [good])) is sm.WrongRound  # type: ignore[arg-type]  # noqa: B023
    assert refusal(standing, lambda: shard.accept(at, 1, [good, good])) is sm.ConflictingPayload
    assert refusal(standing, lambda: shard.accept(at, 1, [standing.last])) is sm.ConflictingPayload
    garbage: tuple[Any, ...] = (None, [], good, "pieces", 7)
    for given in garbage:
        assert refusal(standing, lambda: shard.accept(at, 1, given)) is sm.MalformedPayload  # type: ignore[arg-type]  # noqa: B023
    for after in (None, "1", at + 7, -2, 1.5):
        assert refusal(standing, lambda: shard.accept(after, 1, [good])) is ShardLost  # type: ignore[arg-type]  # noqa: B023
    shard.close()


def test_a_repeated_call_must_repeat_what_was_done(journal: Path | None) -> None:
    """Ray may run a call twice; but another call is not taken for the one that was done."""
    standing = Standing(SCHEMES["seeded"], journal)
    shard, good = standing.shard, standing.piece("b")
    ending, at = standing.ending(), standing.sequence
    assert refusal(standing, lambda: shard.accept(at - 1, 1, [good])) is sm.ConflictingPayload  # "a" came last, not "b"
    assert refusal(standing, lambda: shard.end(replace(ending, after=at - 1))) is sm.InvalidInput
    shard.accept(at, 1, [good])
    before = standing.state()
    shard.accept(at, 1, [good])
    assert standing.state() == before
    shard.close()


def other(name: str, change: Callable[[Any], Any]) -> Callable[[RoundEnd], Any]:
    return lambda ending: replace(
        ending, summary=replace(ending.summary, **{name: change(getattr(ending.summary, name))})
    )


BAD_ENDINGS: dict[str, Callable[[RoundEnd], Any]] = {
    "none": lambda ending: None,
    "a tree": lambda ending: ending.tree(),
    "another kind": lambda ending: replace(ending, kind="stop"),
    "no summary": lambda ending: replace(ending, summary=None),
    "room is text": lambda ending: replace(ending, most_nodes="all"),
    "no room": lambda ending: replace(ending, most_nodes=0),
    "record is text": lambda ending: replace(ending, after="last"),
    "more nodes": other("class_nodes", lambda array: array + 1),
    "more weight": other("weight", lambda array: array * 2),
    "more slots": other("class_slots", lambda array: array + 1),
    "weight of another shape": other("weight", lambda array: np.repeat(array, 2)),
    "squares of another shape": other("class_squares", lambda array: array[0]),
    "squares of another type": other("class_squares", lambda array: array.astype(np.float32)),
    "noise is a number": other("class_noise", lambda array: 0.0),
    "fits of another shape": other("fits", lambda array: np.ones((2, 1))),
    "no moments": other("moments", lambda moments: None),
    "moments in a tuple": other("moments", lambda moments: tuple(vars(moments).values())),
    "moments of another shape": other("moments", lambda moments: replace(moments, q=np.ones(5))),
    "no sums by count": other("by_count", lambda by_count: by_count.sums),
    "sums by count of another shape": other("by_count", lambda by_count: replace(by_count, sums=by_count.sums[:2])),
    "counts that descend": other("by_count", lambda by_count: replace(by_count, counts=-by_count.counts)),
}


@pytest.mark.parametrize(
    ("scheme", "kind", "journal"),
    [
        ("seeded", "close", "journal"),
        ("several", "skip", "in memory"),
        ("in step", "close", "in memory"),
        ("balanced", "skip", "journal"),
    ],
    indirect=["journal"],
)
def test_an_end_that_cannot_be_right_is_refused_before_anything_changes(
    scheme: str, kind: Any, journal: Path | None
) -> None:
    standing = Standing(SCHEMES[scheme], journal)
    good = replace(standing.ending(), kind=kind)
    found = {name: refusal(standing, partial(standing.shard.end, bad(good))) for name, bad in BAD_ENDINGS.items()}
    assert found == dict.fromkeys(BAD_ENDINGS, sm.InvalidInput)
    standing.shard.end(good)
    assert standing.shard.status().round == 2
    if journal is not None:
        digest = standing.shard.digest()
        assert standing.reopened() == digest
    standing.shard.close()


def test_nodes_and_records_that_cannot_be_are_refused(journal: Path | None) -> None:
    standing = Standing(SCHEMES["seeded"], journal)
    shard, at = standing.shard, standing.sequence
    for node in (None, "", 7, ["a"]):
        assert refusal(standing, lambda: shard.forget(at, 1, node)) is sm.InvalidInput  # type: ignore[arg-type]  # noqa: B023
    assert refusal(standing, lambda: shard.forget(at, 1, "a")) is sm.InvalidInput  # who is in the open round
    assert refusal(standing, lambda: shard.forget(at, 0, "b")) is sm.InvalidInput
    assert refusal(standing, lambda: shard.remembered(["a"])) is sm.InvalidInput  # type: ignore[arg-type]
    error: type[Exception] = ShardLost if journal is None else sm.InvalidInput
    for sequence in (None, "0", at + 1, -2, 0):  # the last of which is in a round that has ended
        assert refusal(standing, lambda: shard.rewind(sequence)) is error  # type: ignore[arg-type]  # noqa: B023
    shard.close()


def test_slots_that_cannot_be_dealt_are_refused(journal: Path | None) -> None:
    standing = Standing(SCHEMES["balanced"], journal)
    shard, at = standing.shard, standing.sequence
    for round in (0, 1, 2, None):  # the round is over, begun, or not open
        assert refusal(standing, lambda: shard.deal(at, round, ["b", "a"])) is sm.InvalidInput  # type: ignore[arg-type]  # noqa: B023
    standing.end()
    at = standing.sequence
    garbage: tuple[Any, ...] = (None, 7, 32, "ab", {"a", "b"}, ["a", "a"], ["a", ""], ["a", 7], ["a", ["b"]], [b"a"])
    for names in garbage:
        assert refusal(standing, lambda: shard.deal(at, 2, names)) is sm.InvalidInput  # noqa: B023
    for after in (None, "1", at + 7, -2):
        assert refusal(standing, lambda: shard.deal(after, 2, ["a"])) is ShardLost  # type: ignore[arg-type]  # noqa: B023
    shard.deal(at, 2, ["b", "a"])
    before = standing.state()
    shard.deal(at, 2, ["b", "a"])  # Ray may run a call twice
    assert standing.state() == before
    for other in (["a", "b"], ["b"], []):
        assert refusal(standing, lambda: shard.deal(at, 2, other)) is sm.InvalidInput  # noqa: B023
    assert shard.roll()[2] == ["b", "a"]
    shard.close()
    plain = Standing(SCHEMES["seeded"], None)
    plain.end()
    assert refusal(plain, lambda: plain.shard.deal(plain.sequence, 2, ["a"])) is sm.InvalidInput  # it has no slots


def test_a_shard_that_fails_while_it_adds_up_is_not_used_again(journal: Path | None, monkeypatch: Any) -> None:
    """Half of the pieces may be in the totals then, and would be added once more."""
    standing = Standing(SCHEMES["seeded"], journal)
    shard, whole = standing.shard, standing.ending().summary
    assert isinstance(whole, Summary)
    standing.take(standing.piece("b"))
    rounds = shard._ready()
    monkeypatch.setattr(rounds.estimator.memory, "take", _fails)
    with pytest.raises(MemoryError):
        shard.summary(standing.sequence)
    if journal is None:
        with pytest.raises(ShardLost, match="in the middle of a change"):
            shard.summary(0)
    else:
        assert shard.summary(standing.sequence).nodes.tolist() == [2]
        assert shard.summary(standing.sequence).weight.tolist() == [2.0]
    shard.close()


def _fails(_: object) -> None:
    raise MemoryError


@pytest.mark.parametrize("magnitude", [1.0, 1e97, 0.0])
@pytest.mark.parametrize("name", sm.names())
def test_no_honest_answer_is_taken_for_garbage_however_large_the_values(name: SchemeName, magnitude: float) -> None:
    ratio: dict[str, Any] = {"ratio": 2.0} if name.endswith("-opt") else {}
    run = sm.Run(sm.named(name, k=0.02, values="float64", **ratio), DIM, seed=3, blocks=(5_000, 15_000))
    sharding = Sharding(run, 2, "drop", 0, 1 << 16, None, True, None)
    server, found = sm.Server(run), [Shard(sharding, number) for number in range(2)]
    clients = {node: sm.Client(run, node) for node in "abc"}
    weights = {"a": [1e30, 0.0], "b": [1e-30, 0.0], "c": [0.0, 0.0]}  # nobody speaks for the second layer
    like, finite = Estimator(run, None, 0, 0).summary(), replies.bounded(run)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sm.DivergenceWarning)
        for round in range(3):
            plans = server.plans(["b", "a"])
            for shard in found if run.planned else []:
                shard.deal(shard.status().sequence, round, server._rounds.roster.dealt or ["b", "a"])
            for node, client in clients.items():
                blob = client.encode(
                    magnitude * np.cos(np.arange(DIM) + round), round, plans.get(node) or server.plan(node)
                )
                plan = server._rounds.roster.plan(node, round)
                cut = pieces(run, sharding.bounds, entry(server, node, blob, weights[node]), plan)
                for shard, piece in zip(found, cut, strict=True):
                    shard.accept(shard.status().sequence, round, [piece])
                client.delivered(server.accept(node, blob, weights[node]))
            at, accepted = found[0].status().sequence, server._rounds.roster.accepted
            told = [replies.summary(shard.summary(at), like, accepted, finite) for shard in found]
            ending = RoundEnd(at, "close", told[0] + told[1], 100)
            for number, shard in enumerate(found):
                shard.end(ending)
                lo, hi = sharding.range(number)
                most = 3 * max(map(len, run.layouts))
                replies.estimate(shard.result(), round, tuple("abc"), hi - lo, most, finite)
                assert replies.ending(shard.ending(), like) is ending
                replies.status(shard.status())
                assert replies.roll(shard.roll(), round + 1, 2)[1:] == ([], None)
                replies.vector(shard.remembered("a"), hi - lo, finite)
                replies.usage(shard.usage(), lo, hi)
            server.close_round()
