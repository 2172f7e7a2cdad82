"""Payloads are reordered, doubled, lost and late, servers crash and nodes are forgotten; answers stay what they should.

Four servers of a run live side by side: with a journal, and without; one without that never sees what is refused or
repeated; and one that gets what a round accepted in another order. The first three are the same to the bit at every
step, whatever they answer; the last one's estimates are the same to rounding. Where whole vectors travel, as
differences to a state or to a mean that a node has heard, now or some rounds ago, every estimate is the true mean of
those who were accepted: what is out of step is refused, and never counted. A node that keeps what the server remembers
of it, and is in step, has the very same. Plans are the same from all servers, and the same again after a crash.

    python soak/schedules.py --examples 10000 [--only auto,remembered]
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import sparsemean as sm
from sparsemean.errors import OutOfStep, SparseMeanError
from sparsemean.journal import journal as journal_module
from sparsemean.server.fingerprint import fingerprint
from sparsemean.server.local import LocalRounds

DIM, NAMES, CAP = 24, ("a", "b", "c", "d", "e"), 3
SCHEMES = {
    "temporal": sm.named("rand-k-temporal", k=0.25),
    "stale": sm.named("rand-k-temporal-stale", k=0.25, forget_after=2),
    "window": sm.named("rand-k-temporal-window", k=0.25, size=2),
    "hybrid": sm.named("rand-k-hybrid", k=0.25),
    "shared": sm.named("rand-k-temporal-shared-stable", k=0.5),
    "adaptive": sm.named("rand-k-spatial-adaptive", k=0.5, values="int8"),
    "diana": sm.named("diana", k=0.25),
    "lag": sm.named("lag", moved=0.5),
    "feedback": sm.named("error-feedback-top-k", k=0.25),
    "relative hybrid": sm.Scheme(sm.Relative(sm.RandK(0.25)), sm.Spatial("learned"), sm.Hybrid(), values="int8"),
    "whole relative": sm.Scheme(sm.Relative(sm.Identity()), values="float64"),
    "whole difference": sm.Scheme(sm.Difference(sm.Identity(), step=0.5), memory=sm.Offset(), values="float64"),
    "whole remembered": sm.Scheme(sm.Remembered(sm.Identity(), step=0.5), memory=sm.Hybrid()),
    "remembered": sm.Scheme(sm.Remembered(sm.RandK(0.25)), sm.Spatial("learned"), sm.Hybrid(), values="int8"),
    "auto": sm.named("auto", bytes=76),
    "auto broadcast": sm.named("auto", bytes=76, node="broadcast"),
    "auto stateful": sm.named("auto", bytes=76, node="stateful"),
}
SOME = st.lists(st.sampled_from(NAMES), min_size=1, max_size=len(NAMES), unique=True)
WEIGHTS = st.sampled_from([1.0, 1.0, 0.5, 2.0, 0.0])
WHERE = "/dev/shm" if Path("/dev/shm").is_dir() else None
PART = 125  # schedules that one process plays at a time
did: Counter[str] = Counter()
chosen_schemes = sorted(SCHEMES)


class Schedules(RuleBasedStateMachine):
    """One schedule. ``sent`` is all that is on its way, and may arrive any number of times."""

    @initialize(
        name=st.deferred(lambda: st.sampled_from(chosen_schemes)),
        durability=st.sampled_from(["accept", "round"]),
        carry=st.booleans(),
        few_bytes=st.booleans(),
        capped=st.booleans(),
        number=st.integers(0, 2**32 - 1),
    )
    def begin(self, name: str, durability: str, carry: bool, few_bytes: bool, capped: bool, number: int) -> None:
        did["schedules"] += 1
        self.rng, scheme = np.random.default_rng(number), SCHEMES[name]
        listed = NAMES if scheme.encoder.facts.planned else None  # else slots depend on the order of payloads
        self.run = sm.Run(scheme, DIM, seed=number, blocks=[DIM - 5, 5], nodes=listed)
        self.options: dict[str, Any] = {"missing": "carry" if carry and scheme.memory.facts.stands_in else "drop"}
        if few_bytes and not isinstance(scheme.memory, sm.Hybrid):  # its averages are those at a round's first batch
            self.options["batch_bytes"] = 150
        self.home = Path(tempfile.mkdtemp(dir=WHERE))
        self.folder, self.crashes, self.durability = self.home / "0", 0, durability
        self.most = CAP if capped else len(NAMES)
        journal_module.UNSYNCED = int(self.rng.choice([0, 500, 1 << 28]))
        self.plain, self.tidy, self.durable = self.server(), self.server(), self.opened()
        # Who is forgotten for want of room depends on the order, and so would the estimates.
        self.shuffled = None if capped else self.server()
        self.clients = {node: sm.Client(self.run, node) for node in NAMES}
        self.sent: list[tuple[str, bytes, float]] = []
        self.exact = name.startswith("whole") and self.options["missing"] == "drop"
        self.vectors: dict[bytes, Any] = {}  # of every payload
        self.came: list[tuple[float, Any]] = []  # weights and vectors that the open round has accepted
        self.heard: list[Any] = [None]  # the means that were broadcast
        self.effects: list[Callable[[sm.Server], object]] = []  # forgets of the open round, then what it accepted
        self.accepted: list[Callable[[sm.Server], object]] = []

    def server(self) -> sm.Server:
        return self.with_room(sm.Server(self.run, **self.options))

    def opened(self) -> sm.Server:
        return self.with_room(sm.Server(self.run, journal=self.folder, durability=self.durability, **self.options))

    def with_room(self, server: sm.Server) -> sm.Server:
        server._most_nodes = self.most  # the same with a journal and without, which takes a little less for a node
        return server

    def both(self, act: Callable[[sm.Server], Any]) -> Any:
        """What both servers answer to the same: it must be the same, an error or not."""
        answers = []
        for server in (self.plain, self.durable):
            try:
                answers.append(act(server))
            except SparseMeanError as refused:
                answers.append(refused)
        one, other = ((type(each), str(each)) if isinstance(each, Exception) else fingerprint(each) for each in answers)
        assert one == other, answers
        return answers[0]

    def submit(self, node: str, weight: float, ahead: int = 0) -> None:
        round = self.plain.round + ahead
        noise = np.random.default_rng((self.run.seed, NAMES.index(node), round)).normal(size=DIM)
        with suppress(SparseMeanError):  # the node may have delivered something for a later round
            vector = np.sin(np.arange(DIM) + NAMES.index(node)) + 0.2 * noise
            reference = self.heard[-int(self.rng.choice([1, 1, 1, 2, 3])) :][0] if self.run.relative else None
            blob = self.clients[node].encode(vector, round, self.plan(node), reference)
            self.vectors[blob] = vector
            self.sent.append((node, blob, weight))
            did["sent"] += 1

    def plan(self, node: str) -> bytes | None:
        """What all servers ask of the node in the open round."""
        if not self.run.planned:
            return None
        plan: bytes = self.both(lambda server: server.plan(node))
        assert self.tidy.plan(node) == plan
        self.effects.append(lambda server: server.plan(node))
        return plan

    def deliver(self, at: int, kept: bool = False) -> None:
        node, blob, weight = self.sent[at] if kept else self.sent.pop(at)
        before = len(self.plain._rounds.roster.accepted)
        self.answered(node, blob, weight, self.both(lambda server: server.accept(node, blob, weight)), before)

    @rule(nodes=SOME, weight=WEIGHTS, ahead=st.sampled_from([0, 0, 0, 1]))
    def send(self, nodes: list[str], weight: float, ahead: int) -> None:
        for node in nodes:
            self.submit(node, weight, ahead)

    @rule(nodes=SOME, weight=WEIGHTS, kept=st.booleans())
    def send_and_arrive(self, nodes: list[str], weight: float, kept: bool) -> None:
        for node in nodes:
            self.submit(node, weight)
            if self.sent:
                self.deliver(len(self.sent) - 1, kept)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), kept=st.booleans())
    def arrive(self, data: st.DataObject, kept: bool) -> None:
        for _ in range(min(3, len(self.sent))):
            self.deliver(data.draw(st.integers(0, len(self.sent) - 1)), kept)

    @precondition(lambda self: len(self.sent) > 1)
    @rule(data=st.data())
    def arrive_together(self, data: st.DataObject) -> None:
        chosen = data.draw(st.permutations(self.sent).map(lambda found: found[:4]))
        before = dict(self.plain._rounds.roster.accepted)
        # Weights are given by node there, so only payloads of the common weight can come this way.
        batch = [(node, blob) for node, blob, weight in chosen if weight == 1.0]
        answers = self.both(lambda server: [_comparable(answer) for answer in server.accept_many(batch)])
        for (node, blob), (_, answer) in zip(batch, answers, strict=True):
            new = node in self.plain._rounds.roster.accepted and node not in before and isinstance(answer, sm.Receipt)
            if new and self.plain._rounds.roster.accepted[node].receipt == answer:
                before[node] = self.plain._rounds.roster.accepted[node]
                self.answered(node, blob, 1.0, answer, len(self.plain._rounds.roster.accepted) - 1)

    def answered(self, node: str, blob: bytes, weight: float, answer: Any, before: int) -> None:
        """Tell the node, and the servers that see only what counts."""
        if not isinstance(answer, sm.Receipt):
            did[f"refused: {type(answer).__name__}"] += 1
            if isinstance(answer, OutOfStep):
                self.clients[node].reset()
            return
        if len(self.plain._rounds.roster.accepted) > before:
            did["accepted"] += 1
            take = lambda server: server.accept(node, blob, weight)  # noqa: E731
            take(self.tidy)
            self.accepted.append(take)
            self.came.append((weight, self.vectors[blob]))
        else:
            did["repeated"] += 1
        with suppress(OutOfStep):  # a receipt for something that the node has sent anew since
            self.clients[node].delivered(answer)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        del self.sent[data.draw(st.integers(0, len(self.sent) - 1))]

    @rule(node=st.sampled_from(NAMES))
    def reset(self, node: str) -> None:
        self.clients[node].reset()

    @rule(node=st.sampled_from(NAMES))
    def forget(self, node: str) -> None:
        answer = self.both(lambda server: server.forget(node))
        if answer is None:
            if self.accepted and isinstance(self.run.scheme.memory, sm.Hybrid):
                self.shuffled = None  # what it expects of others depends on whether they came before
            did["forgotten"] += 1
            self.tidy.forget(node)
            self.effects.append(lambda server: server.forget(node))

    @rule(minimum=st.integers(1, 3))
    def close(self, minimum: int) -> None:
        self.end(lambda server: server.close_round(minimum))

    @rule()
    def skip(self) -> None:
        self.end(lambda server: server.skip_round())

    def end(self, act: Callable[[sm.Server], Any]) -> None:
        answer = self.both(act)
        if isinstance(answer, SparseMeanError):
            did["too few"] += 1
            return
        did["ended"] += 1
        assert fingerprint(act(self.tidy)) == fingerprint(answer)
        assert self.tidy.digest() == self.plain.digest()
        if self.shuffled is not None:
            for play in (*self.effects, *(self.accepted[at] for at in self.rng.permutation(len(self.accepted)))):
                play(self.shuffled)
            near = act(self.shuffled)
            if answer is not None:
                np.testing.assert_allclose(near.mean, answer.mean, rtol=1e-9, atol=1e-9)
                np.testing.assert_array_equal(near.counts, answer.counts)
        if self.exact and answer is not None:
            weights, vectors = zip(*self.came, strict=True)
            rounding = 1e-9 if self.run.scheme.values == "float64" else 1e-5
            np.testing.assert_allclose(answer.mean, np.average(vectors, axis=0, weights=weights), rtol=0, atol=rounding)
            did["compared with the truth"] += 1
        if self.run.scheme.encoder.facts.remembered:
            self.in_step()
        if self.run.relative:
            self.heard.append(self.plain.reference)
        self.effects, self.accepted, self.came = [], [], []

    def in_step(self) -> None:
        """Nodes whose last payload is the last one that the server has of them remember what it remembers."""
        rounds = self.plain._rounds
        assert isinstance(rounds, LocalRounds)
        for node, client in self.clients.items():
            if client._basis and client._basis == rounds.roster._basis.get(node):
                _, last, _ = rounds.estimator.memory.last_heard(node, np.arange(DIM))
                np.testing.assert_array_equal(client._state["last"], last)
                did["in step"] += 1

    @rule(politely=st.booleans())
    def crash(self, politely: bool) -> None:
        did["crashed"] += 1
        self.crashes += 1
        last = self.durable.last_estimate()
        if politely:
            self.durable.close()
        else:  # a copy is what a server leaves behind that is killed now
            copy = self.home / str(self.crashes)
            shutil.copytree(self.folder, copy, ignore=shutil.ignore_patterns("*-shm"))
            self.durable.close()
            shutil.rmtree(self.folder)
            self.folder = copy
        self.durable = self.opened()
        assert fingerprint(self.durable.last_estimate()) == fingerprint(last)

    @invariant()
    def same(self) -> None:
        if hasattr(self, "durable"):
            digest = self.plain.digest()
            assert self.durable.digest() == digest

    def teardown(self) -> None:
        if hasattr(self, "durable"):
            self.durable.close()
            shutil.rmtree(self.home)


def _comparable(answer: tuple[str, Any]) -> tuple[str, Any]:
    node, found = answer
    return (node, found) if isinstance(found, sm.Receipt) else (node, f"{type(found).__name__}: {found}")


def play(examples: int, number: int = 0, only: str = "") -> Counter[str]:
    """So many schedules, others for each number, of schemes with one of these words in their name; what happened."""
    did.clear()
    chosen_schemes[:] = [name for name in sorted(SCHEMES) if any(word in name for word in only.split(","))]
    unsynced = journal_module.UNSYNCED
    chosen = settings(
        max_examples=examples,
        stateful_step_count=20,
        deadline=None,
        derandomize=False,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
    )
    try:
        run_state_machine_as_test(seed(number)(type("Schedules", (Schedules,), {})), settings=chosen)
    finally:
        journal_module.UNSYNCED = unsynced
    return did


def main() -> None:
    """Play, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--examples", type=int, default=10_000)
    options.add_argument("--only", default="", help="schemes with one of these words in their name")
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = options.parse_args()
    logging.getLogger("sparsemean").setLevel(logging.ERROR)
    since, found = time.monotonic(), Counter[str]()
    shares = [min(PART, given.examples - at) for at in range(0, given.examples, PART)]
    with ProcessPoolExecutor(given.workers) as pool:
        for done in pool.map(play, shares, range(len(shares)), [given.only] * len(shares)):
            found.update(done)
            print(f"\r{found['schedules']:,} schedules", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for what, count in found.most_common():
        print(f"{what:28}{count:>12,}")
    print(f"{time.monotonic() - since:.0f} s; same answers and the same bytes at every step of every schedule")


if __name__ == "__main__":
    main()
