"""One interrupt of one call, and the checks of what it leaves."""

from __future__ import annotations

import contextlib
import functools
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import sparsemean as sm
from cases.small import WEIGHTS, plain, server_of
from sparsemean.errors import SparseMeanError

from .alarm import Alarm
from .other_thread import Other
from .places import Place
from .plan import Plan
from .tracer import HELPER, Helpers, Tracer
from .wrong import Hung, Wrong, described, expect, shown

OUTCOMES = ("before", "part", "after", "typed", "returned", "WRONG")
CLOSING = 60.0  # seconds for closing a server that is not used any more


@dataclass
class Case:
    """One interrupt of one call. ``outcome`` is one of OUTCOMES."""

    plan: Plan
    way: str
    patience: float
    place: Place | None = None
    delay: float = 0.0
    again: float = 0.0
    begin_at: Place | None = None  # the line where the other thread begins; where the interrupt is by default
    outcome: str = "unreached"
    wrong: Wrong | None = None

    def __str__(self) -> str:
        at = str(self.place) if self.place is not None else f"after {self.delay * 1e3:.3f} ms"
        if self.begin_at is not None:
            at += f", the other thread begins at line {~self.begin_at.offset} of {self.begin_at.code.co_qualname}"
        return f"{self.plan.name}, {self.way} at {at}"

    def play(self) -> Case:
        """Interrupt the call, check the state, make the call again, finish the run."""
        server, folder = self.plan.begun()
        self.server: sm.Server | None = server
        with Alarm(self.patience, str(self)) as alarm:
            try:
                self._interrupt(alarm, folder)
            except Wrong as wrong:
                self.outcome, self.wrong = "WRONG", wrong
            except Hung as hung:
                self.outcome, self.wrong, self.server = "WRONG", Wrong("hung", str(hung)), None
            except SparseMeanError as error:
                self.outcome, self.wrong = "WRONG", Wrong("refused", described(error))
            except BaseException as error:
                self.outcome, self.wrong = "WRONG", Wrong("untyped error", described(error))
        with contextlib.suppress(BaseException), Alarm(min(CLOSING, self.patience), "closing the server"):
            if self.server is not None:
                self.server.close()
        for left in self.plan.home.iterdir():
            if left != self.plan.template:
                shutil.rmtree(left, ignore_errors=True)
        return self

    def _interrupt(self, alarm: Alarm, folder: Path | None) -> None:
        plan, server = self.plan, self.server
        assert server is not None
        other = None if plan.other is None else Other(plan.other, server)
        tracer = Tracer(self.way, self.place, None if other is None else other.begin, self.begin_at)
        returned, interrupted, result = False, False, None
        if other is not None and self.way == "timer":
            other.begin(wait=False)
        try:
            try:
                if self.way == "timer":
                    alarm.interrupt_in(self.delay, self.again)
                elif self.way in HELPER:
                    Helpers.follow(tracer)
                else:
                    sys.settrace(tracer)
                result = plan.move.play(server)
                returned = True  # nothing looks for signals between the end of the call and here
                sys.settrace(None)
                tracer.disarm()
                alarm.calm()
            except KeyboardInterrupt:
                interrupted = True
                tracer.disarm()
                alarm.calm()
        except KeyboardInterrupt:  # the second one
            interrupted = True
        alarm.calm()
        sys.settrace(None)
        Helpers.tracer = None
        if self.way != "timer" and not tracer.fired:
            if other is not None:
                other.end(self.patience)
            return
        if not interrupted and self.way != "timer":
            raise Wrong("swallowed", f"the call went on and returned {shown(result)}")
        if returned and plan.operation != "close":
            expect("wrong result", plain(result), plan.result)
        if other is not None:
            other.end(self.patience)
        if plan.operation == "close":
            self.outcome = self._closed(returned, folder)
        else:
            self.outcome = self._state(folder, other, returned)

    def _closed(self, returned: bool, folder: Path | None) -> str:
        """After an interrupted ``close``: it can be called again, and another server can have the journal."""
        plan, server = self.plan, self.server
        assert server is not None
        outcome = "returned"
        if not returned:
            try:
                expect("wrong state", server.digest(), plan.before)
                outcome = "before"
            except SparseMeanError:
                outcome = "after"
        server.close()
        if folder is not None:
            server = self._reopened(folder)
            expect("wrong state", server.digest(), plan.before)
            plan.go_on(server)
        return outcome

    def _state(self, folder: Path | None, other: Other | None, returned: bool) -> str:
        """The state that is found; then the same call again, and the rest."""
        plan, server = self.plan, self.server
        assert server is not None
        try:
            digest, round = server.digest(), server.round
        except SparseMeanError as error:
            return self._refused(error, folder)
        expect("wrong state", digest, *plan.rounds)
        expect("wrong round", round, plan.rounds[digest])
        if other is not None and digest in (plan.before, plan.after):
            raise Wrong("lost payload", "the other thread has a receipt, and its payload is not counted")
        if folder is not None:
            with server_of(plan.run, plan.copy(folder)) as crashed:
                expect("wrong state in the journal", crashed.digest(), *plan.rounds)
        if returned:
            expect("wrong state", digest, *(plan.ends or (plan.after,)))
        else:
            self._again(digest)
        plan.go_on(server)
        if folder is not None:
            last = server.digest()
            server.close()
            expect("wrong state in the journal", self._reopened(folder).digest(), last)
        if returned:
            return "returned"
        return "before" if digest == plan.before else "after" if digest in {plan.after, *plan.ends} else "part"

    def _again(self, digest: str) -> None:
        """The same call once more: it is done, or turns out to be done, with the result of an undisturbed one."""
        plan, server = self.plan, self.server
        assert server is not None
        done = digest in plan.ends
        if done and plan.move.kind == "skip_round":  # another one would skip the next round
            return
        try:
            again = plain(plan.move.play(server))
        except SparseMeanError as error:
            if done and plan.move.kind == "close_round":
                raise Wrong("lost estimate", f"close_round again: {described(error)}") from error
            raise Wrong("refused", f"{plan.move.kind} again: {described(error)}") from error
        if again != plan.result:
            kind = "wrong mean" if plan.move.kind == "close_round" else "wrong result"
            raise Wrong(kind, f"{plan.move.kind} again gave {shown(again)}, not {shown(plan.result)}")
        if plan.other is not None:
            expect("wrong result", plain(plan.other.play(server)), plan.other_result)

    def _refused(self, error: SparseMeanError, folder: Path | None) -> str:
        """The server is of no use any more: it says so whatever is asked, and the journal is whole."""
        plan, server = self.plan, self.server
        assert server is not None
        node, blob = plan.begin[0].payloads[0]
        calls: list[Callable[[], object]] = [
            functools.partial(server.accept, node, blob, WEIGHTS[node]),
            functools.partial(server.accept_many, [(node, blob)]),
            server.close_round,
            server.skip_round,
            functools.partial(server.forget, "d"),
            functools.partial(server.expected, "a"),
            server.digest,
        ]
        for call in calls:
            try:
                answer = call()
            except SparseMeanError:
                continue
            if isinstance(answer, list) and all(isinstance(each, SparseMeanError) for _, each in answer):
                continue
            raise Wrong("half refused", f"after {described(error)}, another call returned {shown(answer)}")
        if folder is not None:
            with contextlib.suppress(SparseMeanError):
                server.close()
            server = self._reopened(folder)
            digest = server.digest()
            expect("wrong state in the journal", digest, *plan.rounds)
            self._again(digest)
            plan.go_on(server)
        return "typed"

    def _reopened(self, folder: Path) -> sm.Server:
        self.server = None
        self.server = server_of(self.plan.run, folder)
        return self.server
