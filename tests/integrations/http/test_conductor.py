"""Rounds by policy: what ends them, and what happens where the server cannot."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest

import sparsemean as sm
from sparsemean.integrations.http.broadcast import broadcast_of, broadcast_run, heard_in
from sparsemean.integrations.http.service import conductor as module
from sparsemean.integrations.http.service.conductor import Conductor, Policy
from sparsemean.integrations.http.service.history import History
from sparsemean.integrations.http.service.live import HEARTBEAT, Events

RUN = sm.Run(sm.named("rand-k-hybrid", k=20), dim=100, seed=1)


def play(story: Callable[[Conductor], Awaitable[None]], policy: Policy, journal: Path | None = None) -> Conductor:
    """A conductor that lives through this story."""

    async def told() -> Conductor:
        server = sm.Server(RUN, journal=journal, on_round=[lambda report: conductor.report(report)])
        history = History(None if journal is None else journal.with_suffix(".jsonl"))
        conductor = Conductor(server, policy, lambda: ["a", "b"], broadcast_run(RUN, "float32"), history)
        await conductor.start()
        try:
            await story(conductor)
        finally:
            await conductor.stop()
        return conductor

    return asyncio.run(told())


async def send(conductor: Conductor, node: str, weight: float = 1.0, round: int | None = None) -> sm.Receipt:
    t = conductor.round if round is None else round
    return await conductor.accept(node, sm.Client(RUN, node).encode(np.full(100, t + 1.0), t), weight)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("came", "waiting", "age", "enough", "left"),
    [
        (0, 9, 99, None, None),  # fewer than the minimum wait for ever
        (1, 8, 99, None, None),
        (2, 7, 4, None, 6.0),
        (2, 7, 12, None, 0.0),
        (3, 6, 4, 0.5, 1.5),  # others have some time left
        (3, 6, 4, 3, 0.0),
        (3, 6, 9.5, 0.5, 0.5),
        (9, 0, 0, 0, 0.0),  # there are no others
    ],
)
def test_when_a_round_is_over(came, waiting, age, enough, left):
    assert Policy(2, 3, 10.0, grace=2.0).left(came, waiting, age, enough) == left


def test_how_many_nodes_are_enough():
    assert [Policy(2, 3).enough(came, 9) for came in (1, 2, 3)] == [False, False, True]
    assert [Policy(2).enough(2, waiting) for waiting in (1, 0)] == [False, True]
    assert not Policy(2).enough(1, 0)
    assert Policy(2).left(2, 1, 1e6, None) is None  # without a deadline it waits for all


def test_a_round_of_all_ends_once_those_who_are_missing_may_not_come_any_more(monkeypatch):
    monkeypatch.setattr(module, "LOOK", 0.01)

    async def story(conductor: Conductor) -> None:
        invited = ["a", "b"]
        conductor._invited = lambda: invited
        await send(conductor, "a")
        await asyncio.sleep(0.1)
        assert conductor.round == 0
        invited.remove("b")  # revoked, or expired
        await until(lambda: conductor.round == 1)

    play(story, Policy(1))


def test_who_is_a_little_late_is_still_in_the_round():
    async def story(conductor: Conductor) -> None:
        await send(conductor, "a")
        await asyncio.sleep(0.05)
        await send(conductor, "b")
        await until(lambda: conductor.round == 1)

    assert [row["nodes"] for row in play(story, Policy(1, 1, grace=3600.0)).history.rows] == [2]


def test_policies_that_are_none():
    for wrong in ((0, 1, None), (2, 1, None), (1, None, 0.0), (1, None, float("nan")), (1, 1, None, -1.0)):
        with pytest.raises(sm.InvalidInput):
            Policy(*wrong)


def test_payloads_that_come_together_and_twice():
    async def story(conductor: Conductor) -> None:
        receipts = await asyncio.gather(*(send(conductor, node) for node in ("a", "a", "b", "a")))
        assert [receipt.node for receipt in receipts] == ["a", "a", "b", "a"]
        await until(lambda: conductor.round == 1)
        with pytest.raises(sm.ConflictingPayload):
            await asyncio.gather(send(conductor, "a"), send(conductor, "a", weight=2.0))
        assert conductor.refused == {"ConflictingPayload": 1}

    played = play(story, Policy(2, 2))
    assert [row["nodes"] for row in played.history.rows] == [2]


def test_a_round_that_cannot_be_closed_is_closed_when_it_can(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "AGAIN", 0.01)
    failing = [3]
    close = sm.Server.close_round

    def close_round(server: sm.Server, *arguments: int) -> sm.Estimate:
        if failing[0]:
            failing[0] -= 1
            raise sm.JournalError("the disk is full")
        return close(server, *arguments)

    monkeypatch.setattr(sm.Server, "close_round", close_round)

    async def story(conductor: Conductor) -> None:
        await send(conductor, "a")
        await until(lambda: conductor.failure == "the disk is full")
        assert not conductor.sound
        await until(lambda: conductor.round == 1)
        await until(lambda: conductor.sound)

    assert play(story, Policy(1, 1), tmp_path / "journal").estimate is not None


def test_a_server_that_is_broken_ends_the_service(monkeypatch):
    def broken(*_: object) -> None:
        raise sm.BrokenServer("make a new server")

    async def story(conductor: Conductor) -> None:
        died = asyncio.Event()
        conductor.on_death(died.set)
        monkeypatch.setattr(sm.Server, "close_round", broken)
        await send(conductor, "a")
        await asyncio.wait_for(died.wait(), 60)
        assert not conductor.sound
        with pytest.raises(sm.BrokenServer):
            conductor.raise_failure()

    play(story, Policy(1, 1))


def test_without_any_weight_a_round_waits_for_more(monkeypatch):
    monkeypatch.setattr(module, "AGAIN", 0.01)

    async def story(conductor: Conductor) -> None:
        await send(conductor, "a", weight=0.0)
        await asyncio.sleep(0.1)
        assert conductor.round == 0
        await send(conductor, "b")
        await until(lambda: conductor.round == 1)

    play(story, Policy(1, 1))


def test_a_page_hears_at_once_what_happens_while_it_is_told_of_something_else():
    async def story(conductor: Conductor) -> None:
        events = Events(conductor).stream()
        assert [(await anext(events)).split(b"\n")[0] for _ in range(2)] == [b"event: history", b"event: open"]
        await send(conductor, "a")
        async with asyncio.timeout(HEARTBEAT / 2):
            assert b'"came": ["a"]' in await anext(events)
            conductor.refuse("NotAdmitted")
            assert b'"refused": {"NotAdmitted": 1}' in await anext(events)
        await events.aclose()

    play(story, Policy(2, 2))


def test_a_refusal_costs_no_look_at_who_may_come():
    async def story(conductor: Conductor) -> None:
        await send(conductor, "a")
        await asyncio.sleep(0.05)
        looks: list[int] = []
        conductor._invited = lambda: looks.append(1) or ["a", "b"]  # type: ignore[func-returns-value]
        for _ in range(100):
            conductor.refuse("NotAdmitted")
            await asyncio.sleep(0)
        assert len(looks) <= 1  # the one that comes by itself

    play(story, Policy(1))


def test_history_and_mean_survive(tmp_path):
    async def story(conductor: Conductor) -> None:
        for _ in range(2):
            before = conductor.round
            await send(conductor, "a")
            await until(lambda before=before: conductor.round == before + 1)  # type: ignore[misc]

    first = play(story, Policy(1, 1), tmp_path / "journal")
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"round": 2, "cut off by a cra')

    async def looks(conductor: Conductor) -> None:
        assert conductor.round == 2
        assert conductor.broadcast is not None
        assert first.broadcast is not None
        assert conductor.broadcast.frame == first.broadcast.frame
        assert [row["round"] for row in conductor.history.rows] == [0, 1]
        await send(conductor, "a")
        await until(lambda: conductor.round == 3)

    play(looks, Policy(1, 1), tmp_path / "journal")
    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    assert [json.loads(line)["round"] for line in lines] == [0, 1, 2]


def test_a_history_that_is_none(tmp_path):
    for content in ("[]\n", "x\n", '{"round": "1"}\n'):
        (tmp_path / "history").write_text(content)
        with pytest.raises(sm.InvalidInput, match="move it away"):
            History(tmp_path / "history")
        assert (tmp_path / "history").read_text() == content


@pytest.mark.parametrize("values", ["float32", "int8", "eden-4"])
def test_both_ends_read_the_same_mean(values):
    with sm.Server(sm.Run(sm.named("identity"), dim=300)) as server:
        vector = np.random.default_rng(0).normal(size=300)
        server.accept("a", sm.Client(server.run, "a").encode(vector, 0))
        estimate = server.close_round()
    run = broadcast_run(server.run, values)
    made = broadcast_of(run, estimate)
    np.testing.assert_array_equal(heard_in(run, made.frame).mean, made.heard.mean)
    assert made.frame == broadcast_of(run, estimate).frame
    assert np.abs(made.heard.mean - estimate.mean).max() < {"float32": 1e-6, "int8": 0.05, "eden-4": 1.0}[values]
    for wrong in (b"", made.frame[:-1], bytes(len(made.frame))):
        with pytest.raises(sm.PayloadError):
            heard_in(run, wrong)
