"""Errors in the middle of a call: before anything has changed the round stays open, after that a journal is needed."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.errors import BrokenServer
from sparsemean.extending import Belief, Doubles, RoundTotals
from sparsemean.memory.table import RowTable
from sparsemean.server.uninterrupted import uninterrupted

RUN = sm.Run(sm.named("rand-k-temporal", k=0.25), 40, seed=3)


def send(server: sm.Server, nodes: str = "abc") -> None:
    for node in nodes:
        vector = np.random.default_rng((ord(node), server.round)).normal(size=server.run.dim)
        server.accept(node, sm.Client(server.run, node).encode(vector, server.round))


@dataclass(frozen=True)
class Interrupted(sm.Spatial):
    """A decoder that is interrupted the first time, once it has done its work."""

    def innovation(self, totals: RoundTotals, shares: tuple[float, ...], beliefs: tuple[Belief, ...]) -> Doubles:
        found = super().innovation(totals, shares, beliefs)
        if not TRIED.is_set():
            TRIED.set()
            raise KeyboardInterrupt
        return found


TRIED = threading.Event()


@pytest.mark.parametrize("memory", [None, sm.PerNode(), sm.Hybrid()])
def test_a_round_interrupted_in_close_can_be_closed_again(memory):
    TRIED.set()
    run = sm.Run(sm.Scheme(sm.RandK(0.25), Interrupted("avg"), memory), 40)
    server, plain = sm.Server(run), sm.Server(run)
    for _ in range(3):
        for each in (server, plain):
            send(each)
        expected = plain.close_round()
        before = server.digest()
        TRIED.clear()
        with pytest.raises(KeyboardInterrupt):
            server.close_round()
        assert server.digest() == before
        estimate = server.close_round()
        assert np.array_equal(estimate.mean, expected.mean)
        assert (estimate.error, estimate.nodes) == (expected.error, expected.nodes)
    assert server.digest() == plain.digest()


def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """What is remembered can no longer be changed, half-way; returns how to undo that."""
    learn = RowTable.learn

    def fail(self: RowTable, round: int, estimate: Doubles | None) -> None:
        learn(self, round, estimate)
        raise MemoryError

    monkeypatch.setattr(RowTable, "learn", fail)
    return lambda: monkeypatch.setattr(RowTable, "learn", learn)


def test_without_a_journal_an_error_in_the_middle_of_a_change_is_told_by_every_call(monkeypatch):
    server = sm.Server(RUN)
    send(server)
    undo = failing(monkeypatch)
    with pytest.raises(MemoryError):
        server.close_round()
    undo()
    blob = sm.Client(RUN, "d").encode(np.ones(40), 0)
    for call in (
        server.close_round,
        server.skip_round,
        server.digest,
        lambda: server.accept("d", blob),
        lambda: server.accept_many({"d": blob}),
        lambda: server.forget("d"),
        lambda: server.expected("a"),
        lambda: server.round,
    ):
        with pytest.raises(BrokenServer, match="make a new server"):
            call()
    server.close()


def test_with_a_journal_an_error_in_the_middle_of_a_change_is_recovered_from(monkeypatch, tmp_path):
    plain = sm.Server(RUN)
    with sm.Server(RUN, journal=tmp_path) as server:
        for each in (plain, server):
            send(each)
        undo = failing(monkeypatch)
        with pytest.raises(MemoryError):
            server.close_round()
        undo()
        assert server.round == 0
        assert server.digest() == plain.digest()
        assert np.array_equal(server.close_round().mean, plain.close_round().mean)
        assert server.digest() == plain.digest()


def test_an_estimate_that_was_not_delivered_is_returned_by_the_next_close(tmp_path):
    """Whoever watches the rounds is told before the estimate is returned, and is interrupted here."""
    told = []

    def interrupt(report: sm.RoundReport) -> None:
        told.append(report.round)
        if report.round == 0:
            raise KeyboardInterrupt

    for journal in (None, tmp_path / "journal"):
        told.clear()
        server, plain = sm.Server(RUN, on_round=[interrupt], journal=journal), sm.Server(RUN)
        for each in (server, plain):
            send(each)
        expected = plain.close_round()
        with pytest.raises(KeyboardInterrupt):
            server.close_round()
        assert server.round == 1
        last = server.last_estimate()
        assert last is not None
        assert last.mean.tolist() == expected.mean.tolist()
        again = server.close_round()
        assert (again.round, again.mean.tolist()) == (0, expected.mean.tolist())
        with pytest.raises(sm.TooFewNodes):
            server.close_round()
        send(server)
        assert server.close_round().round == 1
        with pytest.raises(sm.TooFewNodes):
            server.close_round()
        assert told == [0, 1]
        server.close()


def test_an_estimate_that_nobody_asked_for_again_is_dropped_with_the_next_round():
    def interrupt(report: sm.RoundReport) -> None:
        if report.round == 0:
            raise KeyboardInterrupt

    server = sm.Server(RUN, on_round=[interrupt])
    send(server)
    with pytest.raises(KeyboardInterrupt):
        server.close_round()
    server.skip_round()
    with pytest.raises(sm.TooFewNodes, match="round 2"):
        server.close_round()


def test_what_is_done_elsewhere_returns_and_raises_as_if_it_were_done_here():
    assert uninterrupted(threading.current_thread) is not threading.main_thread()
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0)
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        uninterrupted(lambda: np.ones(1) / 0)
    found: list[threading.Thread] = []
    thread = threading.Thread(target=lambda: found.append(uninterrupted(threading.current_thread)))
    thread.start()
    thread.join()
    assert found == [thread]


def test_an_interrupt_is_raised_when_the_work_it_came_into_has_ended():
    main, interrupted, ended = threading.main_thread().ident, threading.Event(), threading.Event()
    assert main is not None

    def work() -> None:
        time.sleep(0.05)  # until the main thread waits
        for _ in range(12):
            signal.pthread_kill(main, signal.SIGINT)
            if interrupted.wait(5):  # else it came just before the main thread began to wait, which Python does not see
                break
        time.sleep(0.05)  # who does not wait is gone by now
        ended.set()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell leaves it ignored
    try:
        with pytest.raises(KeyboardInterrupt):
            uninterrupted(work, interrupted)
        assert ended.is_set()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_divergence_is_told_where_the_round_is_closed(recwarn):
    run = sm.Run(sm.named("rand-k-temporal-shared", k=0.05), 40)
    server = sm.Server(run)
    for _ in range(2):
        send(server, "ab")
        server.close_round()
    (warning,) = recwarn.list
    assert warning.category is sm.DivergenceWarning
    assert warning.filename == __file__
