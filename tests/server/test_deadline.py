"""Rounds that end: waiting for nodes, late and early payloads, and nodes that were away."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sparsemean as sm
from sparsemean._names import SchemeName

DIM = 12
LONG = 60.0  # seconds nobody waits for in a test that passes


def run_named(name: SchemeName = "rand-k-temporal") -> sm.Run:
    scheme = sm.named(name, k=4)
    return sm.Run(scheme, DIM, nodes=["a", "b"] if scheme.encoder.facts.planned else None)


def blob(server: sm.Server, node: str, round: int | None = None) -> bytes:
    return sm.Client(server.run, node).encode(np.arange(DIM), server.round if round is None else round)


class Waiting:
    """A thread that closes the round, known to be waiting for nodes before anything else is done."""

    def __init__(self, server: sm.Server, **options: Any) -> None:
        self.result: sm.Estimate | BaseException | None = None
        self._server, self._options = server, options
        self._thread = threading.Thread(target=self._close)
        begun = threading.Event()
        wait_for = server._came.wait_for

        def noticed(predicate: Callable[[], bool], timeout: float | None = None) -> bool:
            begun.set()  # the lock is held until the condition waits, so whoever takes it now comes after
            return wait_for(predicate, timeout)

        server._came.wait_for = noticed  # type: ignore[method-assign,assignment]
        self._thread.start()
        assert begun.wait(LONG)
        server._came.wait_for = wait_for  # type: ignore[method-assign]

    def _close(self) -> None:
        try:
            self.result = self._server.close_round(**self._options)
        except BaseException as error:
            self.result = error

    def ended(self) -> sm.Estimate | BaseException | None:
        self._thread.join(LONG)
        assert not self._thread.is_alive()
        return self.result

    @property
    def waits(self) -> bool:
        return self._thread.is_alive()


@pytest.fixture(params=["in memory", "journal"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[sm.Server]:
    with sm.Server(run_named(), journal=None if request.param == "in memory" else tmp_path) as server:
        yield server


def test_it_waits_until_those_wanted_have_come(server):
    waiting = Waiting(server, minimum=1, wanted=3, deadline=LONG)
    began = time.monotonic()
    for node in "ab":
        server.accept(node, blob(server, node))
        server.accept(node, blob(server, node))  # again, which is nobody new
        assert waiting.waits
        assert server.round == 0
    server.accept("c", blob(server, "c"))
    estimate = waiting.ended()
    assert isinstance(estimate, sm.Estimate)
    assert set(estimate.nodes) == set("abc")
    assert time.monotonic() - began < LONG
    assert server.round == 1


def test_minimum_is_what_it_waits_for_unless_more_are_wanted(server):
    waiting = Waiting(server, minimum=2, deadline=LONG)
    server.accept("a", blob(server, "a"))
    assert waiting.waits
    server.accept_many({node: blob(server, node) for node in "bc"})
    estimate = waiting.ended()
    assert isinstance(estimate, sm.Estimate)
    assert set(estimate.nodes) == set("abc")


def test_refused_payloads_do_not_end_the_waiting(server):
    waiting = Waiting(server, minimum=1, deadline=LONG)
    for node, bad in (("a", b"rubbish"), ("a", blob(server, "b")), ("a", blob(server, "a", 7))):
        with pytest.raises(sm.PayloadError):
            server.accept(node, bad)
    assert waiting.waits
    server.accept("a", blob(server, "a"))
    assert isinstance(waiting.ended(), sm.Estimate)


@pytest.mark.parametrize("deadline", [0, 0.0, 0.01])
def test_when_the_time_is_over_those_who_came_are_the_round(server, deadline):
    server.accept("a", blob(server, "a"))
    assert server.close_round(minimum=1, wanted=100, deadline=deadline).nodes == ("a",)


def test_with_too_few_by_then_the_round_stays_open(server):
    server.accept("a", blob(server, "a"))
    before = server.digest()
    with pytest.raises(sm.TooFewNodes, match="round 0 has 1 of 2 nodes; wait for more, or skip_round"):
        server.close_round(minimum=2, deadline=0.01)
    assert server.digest() == before
    server.accept("b", blob(server, "b"))
    assert server.close_round(minimum=2, deadline=0).nodes == ("a", "b")


@pytest.mark.parametrize("end", ["close_round", "skip_round"])
def test_a_round_that_another_thread_ends_is_not_ended_twice(server, end):
    server.accept("a", blob(server, "a"))
    waiting = Waiting(server, minimum=5, deadline=LONG)
    getattr(server, end)()
    answer = waiting.ended()
    assert isinstance(answer, sm.WrongRound)
    assert str(answer) == "round 0 was ended by another thread; the open round is 1"
    assert server.round == 1


def test_two_threads_that_wait_end_one_round(server):
    first, second = (Waiting(server, minimum=2, deadline=LONG) for _ in range(2))
    for node in "ab":
        server.accept(node, blob(server, node))
    answers = {type(waiting.ended()) for waiting in (first, second)}
    assert answers == {sm.Estimate, sm.WrongRound}
    assert server.round == 1


def test_a_round_that_another_thread_ends_between_waiting_and_closing_is_not_taken_for_the_next(server):
    """Both have stopped waiting when the first of them ends the round, and the next one has enough nodes too."""
    alone, first = server._alone, True

    def slow(work: Callable[[], Any], *rest: Any) -> Any:
        nonlocal first
        if first:
            first = False
            server.close_round()
            server.accept("a", blob(server, "a"))
        return alone(work, *rest)

    server.accept("a", blob(server, "a"))
    server._alone = slow
    with pytest.raises(sm.WrongRound, match="round 0 was ended by another thread; the open round is 1"):
        server.close_round(minimum=1, deadline=LONG)
    assert server.round == 1


@pytest.mark.parametrize("deadline", [math.inf, 1e30])
def test_it_may_wait_for_ever(server, deadline):
    waiting = Waiting(server, minimum=1, deadline=deadline)
    server.accept("a", blob(server, "a"))
    assert isinstance(waiting.ended(), sm.Estimate)


@pytest.mark.parametrize(
    "options",
    [
        {"deadline": -1.0},
        {"deadline": math.nan},
        {"deadline": "soon"},
        {"minimum": 0},
        {"minimum": 1.5},
        {"minimum": 3, "wanted": 2, "deadline": 1.0},
        {"wanted": 2},
        {"wanted": 0, "deadline": 1.0},
    ],
)
def test_wrong_arguments_are_named_and_leave_the_round_open(options):
    server = sm.Server(run_named())
    server.accept("a", blob(server, "a"))
    with pytest.raises(sm.InvalidInput):
        server.close_round(**options)
    assert server.round == 0


# --- Payloads at the wrong time, and nodes that were away.


def test_late_and_early_payloads_are_told_the_open_round(server):
    for _ in range(3):
        server.accept("a", blob(server, "a"))
        server.close_round()
    for round, what in ((0, "is over"), (1, "is over"), (2, "is over"), (4, "has not begun"), (99, "has not begun")):
        with pytest.raises(sm.WrongRound, match=f"^round {round} {what}; the open round is 3$"):
            server.accept("b", blob(server, "b", round))
    ((_, answer),) = server.accept_many({"b": blob(server, "b", 0)})
    assert isinstance(answer, sm.WrongRound)
    assert "the open round is 3" in str(answer)


def test_duplicates_are_answered_alike_and_conflicts_name_the_round(server):
    first = server.accept("a", blob(server, "a"), 2.0)
    assert server.accept("a", blob(server, "a"), 2.0) == first
    with pytest.raises(sm.ConflictingPayload, match="node 'a' sent other bytes or another weight in round 0"):
        server.accept("a", blob(server, "a"), 3.0)
    server.close_round()
    assert server.accept("a", blob(server, "a", 0), 2.0) == first  # the receipt may have been lost
    with pytest.raises(sm.WrongRound, match="the open round is 1"):
        server.accept("a", blob(server, "a", 0), 3.0)
    server.accept("b", blob(server, "b"))
    server.close_round()
    with pytest.raises(sm.WrongRound, match="round 0 is over; the open round is 2"):
        server.accept("a", blob(server, "a", 0), 2.0)


@pytest.mark.parametrize("name", [name for name in sm.names() if name != "rand-k-spatial-opt"])
@pytest.mark.filterwarnings("ignore::sparsemean.errors.DivergenceWarning")
def test_a_node_that_missed_rounds_comes_back_without_ceremony(name):
    """The very same client goes on as if nothing had happened; a node that keeps state has kept it."""
    run = run_named(name)
    server, away, stays = sm.Server(run), sm.Client(run, "away"), sm.Client(run, "stays")
    rng = np.random.default_rng(1)
    for round in range(12):
        present = {"stays": stays} if 3 <= round < 9 else {"stays": stays, "away": away}
        for node, client in present.items():
            client.delivered(server.accept(node, client.encode(rng.normal(size=DIM), round)))
        if round == 5:
            away.encode(rng.normal(size=DIM), round)  # tried, and never arrived
        assert server.close_round().nodes == tuple(present)


def test_a_payload_that_was_on_its_way_for_too_long_does_no_harm(server):
    late = blob(server, "slow")
    server.accept("a", blob(server, "a"))
    server.close_round()
    before = server.digest()
    with pytest.raises(sm.WrongRound, match="round 0 is over; the open round is 1"):
        server.accept("slow", late)
    assert server.digest() == before
    server.accept("slow", blob(server, "slow"))
    assert server.close_round().nodes == ("slow",)
