"""A server is killed (SIGKILL) again and again, whatever it does, and goes on each time as if nothing had happened.

A process serves a run step by step and says through a pipe what it has done. It is killed at a random instant: while
it opens its journal, some time later, or just when it accepts, closes, skips or forgets. Another one then opens the
journal. Its state must be, to the bit, that of a server without a journal that did all that was acknowledged, or that
and what was under way. All receipts and estimates must be the same too, those whose caller was killed among them.

    python soak/kill.py --kills 1000
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from cases.runs import Case, Step, cases, steps

import sparsemean as sm
from sparsemean.journal import faults
from sparsemean.server.fingerprint import fingerprint
from sparsemean.wire.frame import frame_digest

OPENING, LATER, INSIDE = "opening", "some time later", "inside"


def main() -> None:
    """Kill, compare, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--kills", type=int, default=1000)
    options.add_argument("--rounds", type=int, default=8, help="of each run")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--folder", help="where journals are written; a temporary folder by default")
    given = options.parse_args()
    logging.getLogger("sparsemean").setLevel(logging.ERROR)
    rng, found, runs = np.random.default_rng(given.seed), Counter[tuple[str, str]](), 0
    everything = cases()
    try:
        with tempfile.TemporaryDirectory(dir=given.folder) as folder:
            while found.total() < given.kills:
                case = everything[runs % len(everything)]
                run = Killed(case, Path(folder) / "journal", steps(case, given.rounds, given.seed + runs), rng)
                # So many in a run that each setting has its share.
                found.update(run.play(min(given.kills // len(everything) + 1, given.kills - found.total())))
                shutil.rmtree(Path(folder) / "journal")
                runs += 1
                print(f"\r{found.total():,} kills in {runs} runs", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(" (interrupted)", file=sys.stderr)
    print(file=sys.stderr)
    print(f"{'killed during':20}{'state as before':>18}{'state after':>14}")
    for doing in sorted({doing for doing, _ in found}):
        print(f"{doing:20}{found[doing, 'old']:>18,}{found[doing, 'new']:>14,}")
    print(f"{found.total():,} kills in {runs} runs; every state, receipt and estimate as without a journal")


@dataclass
class Killed:
    """One run. ``model`` is a server without a journal, which does what was acknowledged, or turns out to be done."""

    case: Case
    folder: Path
    to_do: list[Step]
    rng: np.random.Generator
    done: int = 0
    found: Counter[tuple[str, str]] = field(default_factory=Counter)
    under_way: str | None = None  # when the last process was killed

    def __post_init__(self) -> None:
        self.model = self.case.server()

    def play(self, most: int) -> Counter[tuple[str, str]]:
        """Up to so many kills, then the rest of the run without; what was going on at each, and how it came out."""
        while self.done < len(self.to_do) or self.under_way:
            self.live(kill=self.found.total() < most)
        return self.found

    def live(self, kill: bool) -> None:
        """The life of one process, until it is killed or has done all."""
        to_child, to_parent = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            os.close(to_child[1])
            os.close(to_parent[0])
            serve(self.case, self.folder, self.to_do, to_child[0], to_parent[1])
            os._exit(0)
        os.close(to_child[0])
        os.close(to_parent[1])
        life = Life(child, to_parent[0])
        try:
            self.watch(life, to_child[1], kill)
        finally:
            life.end()
            os.close(to_child[1])
            os.close(to_parent[0])

    def watch(self, life: Life, go: int, kill: bool) -> None:
        """Follow what the process does."""
        when = str(self.rng.choice([OPENING, LATER, INSIDE, INSIDE])) if kill else ""
        if when == OPENING:
            life.kill_in(self.rng.uniform(0, 0.03))
        opened = life.heard()
        if opened is None:
            self.found["opening", "old"] += 1
            return
        self.compare(opened)
        if when == LATER:
            life.kill_in(self.rng.exponential(0.05))
        chosen = self.done + int(self.rng.geometric(0.15)) - 1 if when == INSIDE else -1
        life.tell(go, f"{self.done}\n")
        while (said := life.heard()) is not None:
            if "doing" in said:
                self.under_way = said["doing"]
                if said["at"] == chosen:
                    life.kill_in(self.rng.exponential(self.rng.choice([0.0005, 0.005, 0.03])))
            elif "did" in said:
                self.under_way = None
                self.acknowledged(said)
        if life.killed:
            self.under_way = self.under_way or "nothing"
        else:
            expect(self.done, len(self.to_do))

    def compare(self, opened: dict[str, Any]) -> None:
        """The state that was found is that of the model, or of the model and what was under way."""
        step, before = self.to_do[self.done] if self.done < len(self.to_do) else None, self.model.digest()
        if step and step.kind == "accept":
            self.take(step, opened["waiting"])
        elif step and opened["digest"] != before:
            result = step.play(self.model)
            self.done += 1
            if step.kind == "close":
                expect(opened["estimate"], result)
        expect(opened["digest"], self.model.digest())
        if self.under_way:
            self.found[self.under_way, "old" if opened["digest"] == before else "new"] += 1
        self.under_way = None

    def acknowledged(self, said: dict[str, Any]) -> None:
        """Let the model do the same, with the same result."""
        step = self.to_do[self.done]
        expect(said["at"], self.done)
        if step.kind == "accept":
            self.take(step, said["waiting"])
            expect(said["at"] + 1, self.done)
        else:
            expect(step.play(self.model), said["did"])
            self.done += 1

    def take(self, step: Step, waiting: list[str]) -> None:
        """Let the model accept what was accepted, in that order; the step is done when all of it was."""
        had = list(self.model._rounds.roster.accepted)
        expect(waiting[: len(had)], had)
        submitted = {payload.node: payload for payload in step.payloads}
        for node in waiting[len(had) :]:
            self.model.accept(node, submitted[node].blob, submitted[node].weight)
        self.done += submitted.keys() <= set(waiting)


@dataclass
class Life:
    """A process, the end of the pipe where it is heard, and when it is to be killed."""

    process: int
    pipe: int
    at: float = float("inf")
    killed: bool = False
    heard_so_far: bytes = b""

    def kill_in(self, seconds: float) -> None:
        """Kill it so many seconds from now, whatever it does."""
        self.at = min(self.at, time.monotonic() + seconds)

    def tell(self, pipe: int, what: str) -> None:
        """Write to it, if it still lives."""
        with suppress(BrokenPipeError):
            os.write(pipe, what.encode())

    def heard(self) -> dict[str, Any] | None:
        """The next thing that it says; None when it is dead and all was heard."""
        while b"\n" not in self.heard_so_far:
            left = self.at - time.monotonic()
            if not self.killed and left <= 0:
                os.kill(self.process, signal.SIGKILL)
                self.killed = True
            wait = None if self.killed or left == float("inf") else max(0.0, left)
            if not select.select([self.pipe], [], [], wait)[0]:
                continue
            piece = os.read(self.pipe, 1 << 16)
            if not piece:
                return None
            self.heard_so_far += piece
        line, self.heard_so_far = self.heard_so_far.split(b"\n", 1)
        said: dict[str, Any] = json.loads(line)
        if "problem" in said:
            raise AssertionError(said["problem"])
        return said

    def end(self) -> None:
        """It is gone."""
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


def serve(case: Case, folder: Path, to_do: list[Step], hear: int, say_to: int) -> None:
    """The process that is killed: do the steps from where the other side says, and say what is done."""

    def say(**what: object) -> None:
        os.write(say_to, json.dumps(what).encode() + b"\n")

    try:
        server = case.server(folder)
        estimate = server.last_estimate()
        found = list(server._rounds.roster.accepted)
        say(digest=server.digest(), waiting=found, estimate=None if estimate is None else fingerprint(estimate))
        done = int(os.read(hear, 100))
        check_repeats(server, to_do[:done])
        for at in range(done, len(to_do)):
            say(doing=to_do[at].kind, at=at)
            result = to_do[at].play(server)
            say(did=result, at=at, waiting=list(server._rounds.roster.accepted))
        expect(faults(folder), [])
    except BaseException:
        say(problem=f"{case.name}: {traceback.format_exc()}")


def check_repeats(server: sm.Server, did: list[Step]) -> None:
    """What was acknowledged in this round and the last one is there, and accepting it again changes nothing."""
    before = server.digest()
    for step in did:
        if step.kind == "accept" and step.round >= server.round - 1:
            for payload in step.payloads:
                receipt = server.accept(payload.node, payload.blob, payload.weight)
                expect(receipt, sm.Receipt(payload.node, step.round, frame_digest(payload.blob)))
    expect(server.digest(), before)


def expect(found: object, wanted: object) -> None:
    """Stop where the two differ."""
    if found != wanted:
        raise AssertionError(f"{found} is not {wanted}")


if __name__ == "__main__":
    main()
