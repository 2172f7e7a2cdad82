"""Fronts without Ray: any order of arrival gives what a Server gives that accepts in the order of tickets."""

from __future__ import annotations

import functools
import operator
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm

pytest.importorskip("ray", reason="Ray is not installed: pip install 'sparsemean[ray]'")

from sparsemean.integrations.ray.front import Front
from sparsemean.integrations.ray.offers import (
    Admitted,
    Answered,
    Ask,
    Delivered,
    Failed,
    Offer,
    Outcome,
    Refused,
    Standing,
    Ticket,
    View,
)
from sparsemean.integrations.ray.pieces import Piece, pieces
from sparsemean.integrations.ray.ranges import Sharding, ShardLost
from sparsemean.integrations.ray.round_end import RoundEnd
from sparsemean.integrations.ray.sequencer import Sequencer
from sparsemean.integrations.ray.shard import Shard
from sparsemean.integrations.ray.turns import Turn, Withdrawn
from sparsemean.integrations.ray.usage import array_bytes
from sparsemean.server.local import Entry
from sparsemean.server.submissions import submission_of

NODES = [f"node-{i}" for i in range(12)]


class Twin:
    """Shards, the order of tickets, and beside them a Server that accepts in that order."""

    def __init__(self, run: sm.Run, journal: Path | None, shards: int = 3) -> None:
        self.made = Sharding(run, shards, "drop", 0, 1 << 12, None if journal is None else str(journal), True, None)
        self.server, self.sequencer = sm.Server(run, batch_bytes=1 << 12), Sequencer(shards)
        self.shards = [Shard(self.made, number) for number in range(shards)]
        self.blobs: dict[str, bytes] = {}
        self.begin()

    def begin(self) -> list[Any]:
        """Bring all shards to one state, that of the shortest, in a new era; returns what all have after all."""
        states = [shard.status(self.sequencer.era + 1) for shard in self.shards]
        shortest = min(state.sequence for state in states)
        assert all(state.before <= shortest for state in states)
        for shard, state in zip(self.shards, states, strict=True):
            if state.sequence > shortest:
                shard.rewind(shortest)
        flights = self.sequencer.restart(shortest)
        self.enter(flights)
        return flights

    def ticket(self, front: int, nodes: Sequence[str]) -> tuple[Ticket, list[list[Piece]]]:
        """A ticket for new payloads of these nodes, and the pieces of each shard."""
        roster, run, cut, offers = self.server._rounds.roster, self.server.run, [], []
        for node in nodes:
            vector = np.random.default_rng([NODES.index(node), roster.round]).normal(size=run.dim)
            self.blobs[node] = sm.Client(run, node).encode(vector, roster.round)
            submission = submission_of(run, None, roster, node, self.blobs[node], 1.0)
            acceptance, afresh = roster.acceptance(submission)
            offers.append(Offer.of(submission, acceptance))
            cut.append(pieces(run, self.made.bounds, Entry(acceptance, afresh, submission.payload), None))
        ticket = self.sequencer.issue(front, roster.round, offers)
        return ticket, [list(column) for column in zip(*cut, strict=True)]

    def hand(self, shard: int, ticket: Ticket, columns: Sequence[list[Piece]]) -> None:
        """Hand one shard its pieces, and note how far it is; of the others nothing is known."""
        sequences = [-1] * len(self.shards)
        sequences[shard] = self.shards[shard].accept(ticket.after, ticket.round, columns[shard], ticket.turn)
        self.sequencer.note(Delivered(ticket, sequences))

    def enter(self, flights: Sequence[Any]) -> None:
        for offer in (offer for flight in flights for offer in flight.offers):
            self.server.accept(offer.receipt.node, self.blobs[offer.receipt.node])

    def close(self) -> tuple[sm.Estimate, list[sm.Estimate]]:
        """The end of the round in the Server and in each shard."""
        sequence = self.shards[0].status().sequence
        summary = functools.reduce(operator.add, [shard.summary(sequence) for shard in self.shards])
        for shard in self.shards:
            shard.end(RoundEnd(sequence, "close", summary, 1000))
        self.sequencer.moved(sequence + 1)
        return self.server.close_round(), [found for shard in self.shards if (found := shard.result()) is not None]


def assert_same(plain: sm.Estimate, found: Sequence[sm.Estimate]) -> None:
    np.testing.assert_array_equal(np.concatenate([each.mean for each in found]), plain.mean)
    np.testing.assert_array_equal(np.concatenate([each.counts for each in found]), plain.counts)
    assert {each.nodes for each in found} == {plain.nodes}


@pytest.mark.parametrize("durable", [True, False], ids=["journal", "memory"])
def test_batches_that_come_in_any_order_and_twice_are_added_in_the_order_of_tickets(
    durable: bool, tmp_path: Path
) -> None:
    twin = Twin(sm.Run(sm.named("rand-k-temporal", k=0.05), 20_000, seed=3), tmp_path if durable else None)
    chance = random.Random(7)
    for _ in range(3):
        nodes = chance.sample(NODES, 10)
        batches = [twin.ticket(chance.randrange(4), nodes[i : i + 2]) for i in range(0, 10, 2)]
        entered: list[str] = []
        calls = [(shard, batch) for shard in range(3) for batch in batches] * 2
        chance.shuffle(calls)
        for shard, (ticket, columns) in calls:
            twin.hand(shard, ticket, columns)
            flights = twin.sequencer.settled()
            twin.enter(flights)
            entered += [offer.receipt.node for flight in flights for offer in flight.offers]
            least = min(each.status().sequence for each in twin.shards)
            assert len(entered) == sum(len(columns[0]) for ticket, columns in batches if ticket.after < least)
        assert entered == nodes
        assert [array_bytes(each._turns) for each in twin.shards] == [0] * 3  # nothing is kept that was added
        assert twin.sequencer.wait(0.0)
        plain, found = twin.close()
        assert plain.nodes == tuple(nodes)
        assert_same(plain, found)
    if durable:
        digests = [shard.digest() for shard in twin.shards]
        for each in twin.shards:
            each.close()
        assert [Shard(twin.made, number).digest() for number in range(3)] == digests


def test_behind_a_hole_nothing_is_confirmed_and_what_came_too_late_is_refused(tmp_path: Path) -> None:
    twin = Twin(sm.Run(sm.named("rand-k-temporal", k=0.05), 20_000, seed=3), tmp_path, shards=2)
    first, hole, third, fourth = (twin.ticket(i % 2, NODES[2 * i : 2 * i + 2]) for i in range(4))
    for ticket, columns in (first, third, fourth):
        for number in range(2):
            twin.hand(number, ticket, columns)
    twin.hand(0, *hole)  # its front dies before shard 1 has it
    assert [shard.status().sequence for shard in twin.shards] == [7, 1]
    twin.enter(twin.sequencer.settled())
    outcomes = [twin.sequencer.outcome(ticket) for ticket, _ in (first, hole, third, fourth)]
    assert outcomes == [Outcome.CONFIRMED, None, None, None]
    twin.sequencer.lost(1)
    assert not twin.sequencer.wait(10.0)
    twin.shards[0].close()
    twin.shards[0] = Shard(twin.made, 0)  # and a shard dies, too
    with pytest.raises(Withdrawn, match="ask for a new ticket"):
        twin.hand(0, *fourth)
    assert twin.begin() == []
    outcomes = [twin.sequencer.outcome(ticket) for ticket, _ in (first, hole, third, fourth)]
    assert outcomes == [Outcome.CONFIRMED, *[Outcome.WITHDRAWN] * 3]
    for number in range(2):
        with pytest.raises(Withdrawn):
            twin.hand(number, *hole)  # its front was not dead but slow
    assert {shard.status().sequence for shard in twin.shards} == {1}
    batches = [twin.ticket(0, NODES[4:8]), twin.ticket(1, NODES[2:4])]
    assert [ticket.turn.safe for ticket, _ in batches] == [1, 1]  # all shards have what all had before
    for batch in batches:
        for number in (1, 0):
            twin.hand(number, *batch)
    twin.enter(twin.sequencer.settled())
    plain, found = twin.close()
    assert plain.nodes == (*NODES[:2], *NODES[4:8], *NODES[2:4])
    assert_same(plain, found)


def test_what_all_shards_have_counts_though_its_front_died_before_it_said_so(tmp_path: Path) -> None:
    twin = Twin(sm.Run(sm.named("rand-k", k=0.05), 20_000), tmp_path, shards=2)
    ticket, columns = twin.ticket(0, NODES[:3])
    behind, _ = twin.ticket(1, NODES[3:5])  # which no shard has
    for number, shard in enumerate(twin.shards):
        shard.accept(ticket.after, 0, columns[number], ticket.turn)
    twin.sequencer.lost(0)
    (flight,) = twin.begin()
    assert flight.ticket == ticket
    assert twin.sequencer.outcome(ticket) is Outcome.CONFIRMED
    assert twin.sequencer.outcome(behind) is Outcome.WITHDRAWN
    assert twin.sequencer.nodes == set()
    assert twin.server.came == tuple(NODES[:3])


def test_a_shard_that_lacks_what_all_had_is_told_from_one_that_is_a_batch_behind(tmp_path: Path) -> None:
    twin = Twin(sm.Run(sm.named("rand-k", k=0.05), 20_000), tmp_path, shards=2)
    for _ in range(2):
        ticket, columns = twin.ticket(0, [NODES[len(twin.blobs)]])
        for number in range(2):
            twin.hand(number, ticket, columns)
        twin.sequencer.settled()
    ticket, columns = twin.ticket(0, [NODES[5]])
    twin.hand(0, ticket, columns)
    for _ in range(2):
        assert [(shard.status().before, shard.status().sequence) for shard in twin.shards] == [(1, 2), (0, 1)]
        for number, shard in enumerate(twin.shards):
            shard.close()  # and take it from the journal again
            twin.shards[number] = Shard(twin.made, number)


@pytest.mark.parametrize(
    "turn",
    [7, Turn("1", 0), Turn(1, -2), Turn(1, True), Turn(-1, 0)],  # type: ignore[arg-type]
    ids=repr,
)
def test_what_is_no_turn_is_refused_and_changes_nothing(turn: Any) -> None:
    twin = Twin(sm.Run(sm.named("rand-k", k=0.05), 20_000), None, shards=2)
    ticket, columns = twin.ticket(0, NODES[:1])
    before = twin.shards[0].digest()
    with pytest.raises(sm.InvalidInput, match="is no turn"):
        twin.shards[0].accept(ticket.after, 0, columns[0], turn)
    with pytest.raises(sm.InvalidInput, match="eras are counted"):
        twin.shards[0].status("2")  # type: ignore[arg-type]
    assert twin.shards[0].digest() == before


def test_a_round_waits_for_what_is_under_way_and_no_longer() -> None:
    twin = Twin(sm.Run(sm.named("rand-k", k=0.05), 20_000), None, shards=2)
    ticket, columns = twin.ticket(0, NODES[:2])
    assert not twin.sequencer.wait(0.0)
    twin.hand(0, ticket, columns)
    later = threading.Timer(0.05, twin.hand, (1, ticket, columns))
    later.start()
    assert twin.sequencer.wait(60.0)
    twin.ticket(1, NODES[2:3])
    failing = threading.Timer(0.05, twin.sequencer.lost, (1,))
    failing.start()
    assert not twin.sequencer.wait(60.0)
    assert twin.sequencer.trouble == "front 1 is gone"
    twin.begin()
    assert twin.sequencer.wait(0.0)
    ticket, _ = twin.ticket(0, NODES[3:4])
    twin.sequencer.note(Delivered(ticket, [2, 7]))  # of which the last one is not given
    assert not twin.sequencer.wait(60.0)
    assert twin.sequencer.settled() == []


@contextmanager
def asked(front: Front, answer: Callable[[Ask], Answered | None]) -> Iterator[list[Ask]]:
    """Carries what a front asks to ``answer``, as the process with the server does; yields what was asked."""
    over = threading.Event()
    heard: list[Ask] = []

    def carry() -> None:
        answers: dict[str, Answered] = {}
        while not over.is_set():
            asks = front.exchange(answers)
            heard.extend(asks.open.values())
            found = {key: answer(ask) for key, ask in asks.open.items()}
            answers = {key: each for key, each in found.items() if each is not None}

    thread = threading.Thread(target=carry)
    thread.start()
    try:
        yield heard
    finally:
        over.set()
        thread.join(30.0)
        assert not thread.is_alive()


def front_of(server: sm.Server, replies: Sequence[Any] = (1, 1)) -> tuple[Front, list[tuple[Ticket, Any]]]:
    """A front, and what it hands over to two shards, which give these replies."""
    made = Sharding(server.run, 2, "drop", 0, 1 << 20, None, True, None)
    handed: list[tuple[Ticket, Any]] = []

    def deliver(_: Any, ticket: Ticket, columns: Any) -> list[Any]:
        handed.append((ticket, columns))
        return list(replies)

    return Front(made, None, deliver, 60.0), handed


def payloads(run: sm.Run, nodes: Sequence[str], round: int = 0) -> dict[str, bytes]:
    return {node: sm.Client(run, node).encode(np.ones(run.dim), round) for node in nodes}


def test_a_front_refuses_only_by_the_newest_terms() -> None:
    server = sm.Server(sm.Run(sm.named("rand-k", k=0.05), 20_000))
    front, _ = front_of(server)
    roster = server._rounds.roster
    views = iter([View(1, roster.terms_alone(), ())] * 2)
    ticket = Ticket(-1, 1, Turn(1, -1))

    def answer(ask: Ask) -> Answered:
        if isinstance(ask, Refused):
            return next(views, View(2, roster.terms_alone(), ()))
        return Outcome.CONFIRMED if isinstance(ask, Delivered) else Admitted([Standing.IN], ticket)

    with asked(front, answer) as heard:
        ((_, wrong),) = front.accept_many(payloads(server.run, ["a"], round=1))
        assert isinstance(wrong, sm.WrongRound)
        server.skip_round()
        (good, (_, bad)) = front.accept_many([*payloads(server.run, ["a"], round=1).items(), ("b", b"")])
    assert good[1] == sm.Receipt("a", 1, good[1].digest)  # type: ignore[union-attr]
    assert isinstance(bad, sm.MalformedPayload)
    refused = [[type(error) for error in ask.errors] for ask in heard if isinstance(ask, Refused) and ask.errors]
    assert refused == [[sm.WrongRound], [sm.MalformedPayload]]


def test_a_front_offers_again_what_was_withdrawn_or_waits_for_another_of_its_node() -> None:
    server = sm.Server(sm.Run(sm.named("rand-k", k=0.05), 20_000))
    front, handed = front_of(server)
    turns = iter(Ticket(at, 0, Turn(era, at)) for at, era in ((-1, 1), (-1, 2), (1, 2)))
    verdicts: Iterator[list[Any]] = iter(
        [
            [sm.Receipt("a", 0, "before"), Standing.IN, Standing.LATER, Standing.IN],
            [Standing.IN, Standing.LATER, Standing.IN],
            [sm.ConflictingPayload("c has another")],
        ]
    )
    outcomes = iter([None, Outcome.WITHDRAWN, None, None, Outcome.CONFIRMED])

    def answer(ask: Ask) -> Answered | None:
        if isinstance(ask, Refused):
            return View(1, server._rounds.roster.terms_alone(), ())
        if isinstance(ask, Delivered):
            return next(outcomes)
        assert not isinstance(ask, Failed)
        found = next(verdicts)
        return Admitted(found, next(turns) if Standing.IN in found else None)

    with asked(front, answer):
        answers = front.accept_many(payloads(server.run, ["a", "b", "c", "d"]))
    kinds = [(node, type(found).__name__) for node, found in answers]
    assert kinds == [("a", "Receipt"), ("b", "Receipt"), ("c", "ConflictingPayload"), ("d", "Receipt")]
    assert [[piece.acceptance.receipt.node for piece in columns[1]] for _, columns in handed] == [["b", "d"]] * 2
    assert [ticket.turn.era for ticket, _ in handed] == [1, 2]


@pytest.mark.parametrize(
    ("failure", "times"), [(sm.JournalError("the disk is full"), 1), (ShardLost("shard 1 of 2 died"), 2)], ids=repr
)
def test_a_full_disk_is_answered_at_once_and_a_lost_shard_once_the_server_says_so(
    failure: sm.SparseMeanError, times: int
) -> None:
    server = sm.Server(sm.Run(sm.named("rand-k", k=0.05), 20_000))
    front, handed = front_of(server, (1, failure))
    broken = sm.BrokenServer("no state to go on from")

    def answer(ask: Ask) -> Answered:
        if isinstance(ask, Refused):
            return View(1, server._rounds.roster.terms_alone(), ())
        if isinstance(ask, Failed):
            assert ask.reason == str(failure)
            return Outcome.WITHDRAWN if len(handed) == 1 else broken
        return Admitted([Standing.IN], Ticket(-1, 0, Turn(len(handed) + 1, -1)))

    with asked(front, answer):
        ((_, found),) = front.accept_many(payloads(server.run, ["a"]))
    assert len(handed) == times
    assert found is (failure if times == 1 else broken)


def test_what_is_no_list_of_payloads_is_refused() -> None:
    front, handed = front_of(sm.Server(sm.Run(sm.named("rand-k", k=0.05), 20_000)))
    with pytest.raises(sm.InvalidInput, match="weights are a dict"):
        front.accept_many({}, weights=[1.0])  # type: ignore[arg-type]
    with pytest.raises(sm.InvalidInput):
        front.accept_many([b"no pair"])  # type: ignore[list-item]
    assert front.accept_many({}) == []
    assert not handed
