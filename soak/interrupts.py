"""A call of the server is interrupted (KeyboardInterrupt) wherever Python can see a signal; nothing is ever half done.

Python runs signal handlers in the main thread, between two instructions: after a call of a C function, at the end of a
loop's body, and when a function is entered. Each of these places that a call of the server passes is tried, with a new
server in the same state, for every operation, with and without a journal. There are five ways to interrupt:

signal
    A real SIGINT with Python's own handler, raised just before the instruction, so that the interpreter sees it there.
raise
    KeyboardInterrupt raised by the tracer after the instruction, which no handler or mask of signals can put off.
timer
    SIGALRM after a random time, with a handler that raises KeyboardInterrupt, so that waiting is interrupted too; every
    third time another one soon after.
helper
    A real SIGINT when a thread that the server uses comes to such a place, and stops there for a moment.
twice
    The same with two of them, so that the main thread need not wait, and makes the next call while the work goes on.

Afterwards the state is that before the call or that after it (of ``accept_many``: after some of its payloads), or every
call raises a typed error. The same call made again succeeds with the same result, an estimate that was not delivered
among them, and the run goes on as one that nobody interrupted, to the bit. So does the journal when it is opened again.

    python soak/interrupts.py
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dis
import faulthandler
import functools
import logging
import multiprocessing
import os
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
from cases.small import WEIGHTS, WHERE, Move, moves, plain, run_of, server_of

import sparsemean as sm
from sparsemean.errors import SparseMeanError

SCHEMES = ("rand-k-spatial-avg", "rand-k-temporal", "rand-k-hybrid", "diana")
TWO_ROUNDS = ["a", "b", "c", "d", "close_round", "a", "b", "c", "close_round"]
LAST_ROUND = ["a", "b", "c", "d", "close_round"]
BESIDE = "accept, beside another thread"
# What is played in the open round before the call that is interrupted, the call, and the rest of the round.
OPERATIONS: dict[str, tuple[list[str], str, list[str]]] = {
    "accept": (["a"], "b", ["c", "close_round"]),
    "accept_many": (["a"], "bcd", ["close_round"]),
    "close_round": (["a", "b", "c"], "close_round", []),
    "skip_round": (["a", "b", "c"], "skip_round", []),
    "forget": (["a"], "-d", ["b", "c", "close_round"]),
    "close": (["a", "b"], "close", ["c", "close_round"]),
    BESIDE: (["a"], "b", ["close_round"]),
}
OTHER, OTHER_THREAD = "c", "the other thread"  # its node, its name
WAYS = ("signal", "raise", "helper", "twice", "timer")
HELPER = ("helper", "twice")
OUTCOMES = ("before", "part", "after", "typed", "returned", "WRONG")
PACKAGE = str(Path(sm.__file__).parent) + os.sep
# Standard modules in whose frames an interrupt may leave a lock of the server held.
LOCKING = ("threading.py", "contextlib.py", "queue.py", "concurrent")
LIBRARY = tuple(str(Path(os.__file__).parent / name) for name in LOCKING)
# Instructions at which the interpreter looks for signals (and at the entry of a function, by RESUME).
CHECKS = {dis.opmap[name] for name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD") if name in dis.opmap}
ENTRY = -1
HEAD_START = 0.003  # seconds that another thread has to come as far as it can
SHORTEST = 1e-4  # seconds that an operation is taken to last, at least
LINES_AHEAD = 6  # the other thread begins so many lines before the interrupt, at most

_raise = ctypes.PyDLL(None)["raise"]
_raise.argtypes, _raise.restype = [ctypes.c_int, ctypes.py_object], ctypes.c_int


class _Interrupt:
    """``now`` raises SIGINT without a call instruction, at which the interpreter would see it in the tracer itself."""

    now = property(functools.partial(_raise, int(signal.SIGINT)))


INTERRUPT = _Interrupt()


class Wrong(Exception):
    """What must not be: its kind, and what was seen."""

    def __init__(self, kind: str, seen: str) -> None:
        super().__init__(f"{kind}: {seen}")
        self.kind = kind


class Hung(BaseException):
    """The time is over; says where the main thread waited."""


@dataclass(frozen=True)
class Place:
    """An instruction, or the entry, of a function, the n-th time that a call comes to it."""

    code: CodeType
    offset: int
    nth: int = 0

    @property
    def line(self) -> int:
        """In its file."""
        if self.offset == ENTRY:
            return self.code.co_firstlineno
        lines = {at: line for at, line in dis.findlinestarts(self.code) if at <= self.offset and line is not None}
        return lines[max(lines)]

    def __str__(self) -> str:
        name = self.code.co_filename.removeprefix(PACKAGE)
        at = "entry" if self.offset == ENTRY else f"offset {self.offset}"
        return f"{name}:{self.line} {self.code.co_qualname} ({at}, time {self.nth + 1})"


@dataclass
class Tracer:
    """Notes the places that a call comes to and, at ``target``, interrupts it; ``first`` is called before."""

    way: str
    target: Place | None = None
    first: Callable[[], object] | None = None
    first_at: Place | None = None  # the line where ``first`` is called; at the target by default
    lines: list[Place] = field(default_factory=list)
    lines_before: dict[Place, list[Place]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    armed: bool = True
    seen: dict[tuple[CodeType, int], int] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    fired: bool = False
    entered: FrameType | None = None  # the frame from which a Python function was called last

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        """What ``sys.settrace`` wants: called for every function that is entered."""
        self.entered = frame.f_back
        if not traced(frame.f_code):
            return None
        frame.f_trace_opcodes = True
        caller_traced = frame.f_back is not None and traced(frame.f_back.f_code)
        # A signal that is raised at the call instruction is seen at the entry of the function.
        enters = self.way == "raise" or (self.way == "signal" and not caller_traced)
        if enters and self._is_target(frame.f_code, ENTRY):
            if self.way == "raise":
                raise KeyboardInterrupt
            sys.settrace(None)
            INTERRUPT.now  # noqa: B018
            return None
        return self._local(frame)

    def _local(self, frame: FrameType) -> Any:
        code, checks, regions = frame.f_code, checks_of(frame.f_code), regions_of(frame.f_code)
        before = ENTRY

        def signalled(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line" and self.way == "signal":
                self._line(code, frame.f_lineno)
            if event == "opcode" and frame.f_lasti in checks and self._is_target(code, frame.f_lasti):
                if self.way in HELPER:
                    self._interrupt_main()
                    return None
                sys.settrace(None)
                INTERRUPT.now  # noqa: B018
                return None
            return signalled

        def raised(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal before
            if event == "opcode":
                after, before = before, frame.f_lasti
                # Not after a Python function, where no signal is seen; and the exception must go the way that one
                # at the instruction before would: at the end of a ``with`` it is the other side of the exit.
                fits = after in checks and self.entered is not frame and regions[after] == regions[before]
                self.entered = None
                if fits and self._is_target(code, after):
                    raise KeyboardInterrupt
            return raised

        return raised if self.way == "raise" else signalled

    def _interrupt_main(self) -> None:
        for again in range(2 if self.way == "twice" else 1):
            with self.lock:
                if not self.armed:
                    self.fired = again > 0
                    return
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(HEAD_START)

    def disarm(self) -> None:
        """No interrupt is sent after this."""
        with self.lock:
            self.armed = False

    def _line(self, code: CodeType, line: int) -> None:
        nth = self.seen.get((code, ~line), 0)
        self.seen[code, ~line] = nth + 1
        place = Place(code, ~line, nth)
        if self.target is None:
            self.lines.append(place)
        elif self.first is not None and self.first_at == place:
            self.first()

    def _is_target(self, code: CodeType, offset: int) -> bool:
        nth = self.seen.get((code, offset), 0)
        self.seen[code, offset] = nth + 1
        if self.target is None:
            place = Place(code, offset, nth)
            self.places.append(place)
            self.lines_before[place] = self.lines[-LINES_AHEAD:]
            return False
        if self.fired or (self.target.code, self.target.offset, self.target.nth) != (code, offset, nth):
            return False
        self.fired = True
        if self.first is not None and self.first_at is None:
            self.first()
        return True


class Helpers:
    """Traces every thread but the main one, and that of ``Other``, for the tracer that is set at the time."""

    tracer: Tracer | None = None

    @classmethod
    def trace(cls, frame: FrameType, event: str, argument: Any) -> Any:
        """For ``threading.settrace``."""
        if cls.tracer is None or threading.current_thread().name == OTHER_THREAD:
            return None
        return cls.tracer(frame, event, argument)


@functools.cache
def traced(code: CodeType) -> bool:
    """Whether a function is one of ours, or of those of Python that deal with locks."""
    return code.co_filename.startswith((PACKAGE, *LIBRARY))


@functools.cache
def checks_of(code: CodeType) -> frozenset[int]:
    """Offsets of the instructions at which a signal is seen."""
    return frozenset(each.offset for each in dis.get_instructions(code) if each.opcode in CHECKS)


@functools.cache
def regions_of(code: CodeType) -> dict[int, tuple[int, int] | None]:
    """Where an exception at each instruction is handled: the target and depth of its entry in the exception table."""
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    return {
        each.offset: next(((e.target, e.depth) for e in entries if e.start <= each.offset < e.end), None)
        for each in dis.get_instructions(code)
    }


@dataclass
class Alarm:
    """SIGALRM: first an interrupt if one is wanted, then, when ``patience`` is over, ``Hung``."""

    patience: float
    interrupts: int = 0
    again: float = 0.0

    def __enter__(self) -> Alarm:
        self._handler = signal.signal(signal.SIGALRM, self._ring)
        faulthandler.dump_traceback_later(3 * self.patience + 60, exit=True)  # if even a signal cannot end the wait
        self.calm()
        return self

    def interrupt_in(self, seconds: float, again: float = 0.0) -> None:
        """Raise KeyboardInterrupt in the main thread so many seconds from now, and ``again`` so many later."""
        self.interrupts, self.again = 2 if again else 1, again
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))

    def _ring(self, _: int, frame: FrameType | None) -> None:
        if self.interrupts:
            self.interrupts, self.until = self.interrupts - 1, time.monotonic() + 0.9 * self.patience
            signal.setitimer(signal.ITIMER_REAL, self.again if self.interrupts else self.patience)
            raise KeyboardInterrupt
        if time.monotonic() < self.until:  # it rang just when it was put off
            return
        signal.setitimer(signal.ITIMER_REAL, 0.5)  # whoever catches this and waits again is told again
        where = [f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in traceback.extract_stack(frame)]
        raise Hung(f"after {self.patience:g} s the main thread waited at {' > '.join(where[-5:])}")

    def calm(self) -> None:
        """No interrupt any more; only the time is watched."""
        self.interrupts, self.until = 0, time.monotonic() + 0.9 * self.patience
        signal.setitimer(signal.ITIMER_REAL, self.patience)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, self._handler)


@dataclass(frozen=True)
class Ending:
    """How a run goes on after the operation: results of the further calls, and the last digest."""

    results: list[object]
    digest: str


class Plan:
    """One operation of a scheme: the state it starts from, and what a server does that nobody interrupts."""

    def __init__(self, scheme: str, operation: str, journal: bool, home: Path) -> None:
        self.name = f"{operation}, {scheme}, {'journal' if journal else 'no journal'}"
        self.operation, self.home, self.number = operation, home, 0
        self.beside = operation == BESIDE
        self.run = run_of(scheme)
        begin, word, rest = OPERATIONS[operation]
        script = [*TWO_ROUNDS, *begin, word, *([OTHER] if self.beside else []), *rest, *LAST_ROUND]
        made = list(moves(self.run, script))
        at = len(TWO_ROUNDS) + len(begin)
        self.begin, self.move, self.rest = made[:at], made[at], made[at + 1 + self.beside :]
        self.other = made[at + 1] if self.beside else None
        twin = self.fresh()
        self.before = twin.digest()
        self.rounds = {self.before: twin.round}  # the states that are right, and their open round
        self.result = None if self.operation == "close" else plain(self.move.play(twin))
        self.after = twin.digest()
        self.rounds[self.after] = twin.round
        self.ends: dict[str, Ending] = {}
        if self.other is None:
            self.ends[self.after] = self._ending(twin)
        if self.move.kind == "accept_many":
            self._after(*(Move("accept_many", self.move.payloads[:count]) for count in range(len(self.move.payloads))))
        if self.other is not None:
            self.other_result = plain(self.other.play(twin))
            self._after(self.other)
            for order in ((self.move, self.other), (self.other, self.move)):
                last = self.fresh()
                for move in order:
                    move.play(last)
                digest = last.digest()
                self.rounds[digest] = last.round
                self.ends[digest] = self._ending(last)
        self.template = None
        if journal:
            self.template = home / "template"
            with server_of(self.run, self.template) as server:
                for move in self.begin:
                    move.play(server)
                expect("digest", server.digest(), self.before)
                # A copy of a journal in use is what a killed server leaves.
                shutil.copytree(self.template, home / "copy", ignore=shutil.ignore_patterns("*-shm"))
            shutil.rmtree(self.template)
            (home / "copy").rename(self.template)

    def fresh(self) -> sm.Server:
        """A server without a journal in the state from which the operation starts."""
        server = server_of(self.run)
        for move in self.begin:
            move.play(server)
        return server

    def begun(self) -> tuple[sm.Server, Path | None]:
        """A server in that state, and the folder of its journal."""
        if self.template is None:
            return self.fresh(), None
        folder = self.copy(self.template)
        return server_of(self.run, folder), folder

    def copy(self, folder: Path) -> Path:
        """What a server that is killed now would leave."""
        self.number += 1
        copied = self.home / str(self.number)
        shutil.copytree(folder, copied, ignore=shutil.ignore_patterns("*-shm"))
        return copied

    def _after(self, *each: Move) -> None:
        for move in each:
            server = self.fresh()
            move.play(server)
            self.rounds[server.digest()] = server.round

    def _ending(self, server: sm.Server) -> Ending:
        results = [plain(move.play(server)) for move in self.rest]
        return Ending(results, server.digest())

    def go_on(self, server: sm.Server) -> None:
        """From a state after the operation: the rest is as without an interrupt."""
        found = server.digest()
        expect("wrong state", found, *self.ends)
        ending = self.ends[found]
        for move, result in zip(self.rest, ending.results, strict=True):
            again = plain(move.play(server))
            if again != result:
                kind = "wrong mean" if move.kind == "close_round" else "wrong result"
                raise Wrong(kind, f"{move.kind} later on gave {shown(again)}, not {shown(result)}")
        expect("wrong state", server.digest(), ending.digest)


def expect(kind: str, found: object, *wanted: object) -> None:
    """Stop where it is none of these."""
    if found not in wanted:
        raise Wrong(kind, f"{shown(found)} is none of {', '.join(map(shown, wanted))}")


def shown(thing: object) -> str:
    """Short enough for a line."""
    text = str(thing)
    return text if len(text) < 100 else f"{text[:97]}..."


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

    def play(self) -> Case:
        """Interrupt, look, go on."""
        server, folder = self.plan.begun()
        self.server: sm.Server | None = server
        with Alarm(self.patience) as alarm:
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
        with contextlib.suppress(BaseException), Alarm(min(2.0, self.patience)):
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
                    Helpers.tracer = tracer
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


class Other:
    """Another thread that accepts a payload; it must get its receipt, whatever happens to the main thread."""

    def __init__(self, move: Move, server: sm.Server) -> None:
        self._move, self._server = move, server
        self._go, self._begun = threading.Event(), False
        self._thread = threading.Thread(target=self._accept, name=OTHER_THREAD, daemon=True)
        self._thread.start()
        self.answer: object = None

    def _accept(self) -> None:
        self._go.wait()
        try:
            self.answer = self._move.play(self._server)
        except BaseException as error:
            self.answer = error

    def begin(self, wait: bool = True) -> None:
        """Let it go, and let it come as far as it can."""
        self._go.set()
        if wait:
            self._thread.join(HEAD_START)

    def end(self, patience: float) -> None:
        """Wait for its answer."""
        self._go.set()
        self._thread.join(patience)
        if self._thread.is_alive():
            frame = sys._current_frames().get(self._thread.ident or 0)
            where = [f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in traceback.extract_stack(frame)]
            raise Wrong("hung", f"after {patience:g} s the other thread waited at {' > '.join(where[-5:])}")
        if not isinstance(self.answer, sm.Receipt):
            raise Wrong("no receipt", f"the other thread's accept gave {self.answer!r}")
        if self.answer.node != self._move.payloads[0][0]:
            raise Wrong("wrong receipt", f"the other thread's accept gave {self.answer!r}")


def described(error: BaseException) -> str:
    """Its type, message, and the place where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {shown(error)}{where}"


@dataclass
class Found:
    """What came of the cases of one plan."""

    name: str
    places: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[tuple[str, str, str, str]] = field(default_factory=list)  # way, place, kind, what was seen


def places(plan: Plan, way: str) -> Tracer:
    """A tracer that has noted the places that the operation comes to, in order."""
    for _ in range(2):  # what is cached or compiled at the first time is not there at the second
        server, _ = plan.begun()
        tracer = Tracer(way)
        if way in HELPER:
            Helpers.tracer = tracer
        else:
            sys.settrace(tracer)
        try:
            plan.move.play(server)
        finally:
            sys.settrace(None)
            Helpers.tracer = None
        server.close()
    return tracer


def chosen(found: list[Place], every: bool) -> list[Place]:
    """All of them, or each line of each function once: at the last place of the line, when its work is done."""
    if every:
        return found
    return list({(place.code, place.offset == ENTRY, place.line): place for place in found if place.nth == 0}.values())


def seconds(plan: Plan) -> float:
    """How long the operation takes."""
    taken = []
    for _ in range(5):
        server, _ = plan.begun()
        since = time.perf_counter()
        plan.move.play(server)
        taken.append(time.perf_counter() - since)
        server.close()
    return statistics.median(taken)


def cases(plan: Plan, options: argparse.Namespace, found: Found) -> Iterator[Case]:
    """Every interrupt of an operation."""
    for way in options.way:
        if way == "timer":
            rng, length = np.random.default_rng((len(plan.name), options.seed)), max(seconds(plan), SHORTEST)
            for number, delay in enumerate(rng.uniform(0, 1.3 * length, options.timers)):
                again = float(rng.uniform(SHORTEST / 10, length)) if number % 3 == 2 else 0.0
                yield Case(plan, way, options.patience, delay=float(delay), again=again)
            continue
        if way in HELPER and plan.beside:
            continue
        with Alarm(options.patience):
            tracer = places(plan, way)
        seen = tracer.places
        found.places[way] = len({(place.code, place.offset) for place in seen})
        found.events[way] = len(seen)
        for place in chosen(seen, options.every):
            yield Case(plan, way, options.patience, place)
            if plan.beside and way == "signal":
                for line in tracer.lines_before[place]:
                    yield Case(plan, way, options.patience, place, begin_at=line)


def apart(scheme: str, operation: str, journal: bool, options: argparse.Namespace) -> Found:
    """All interrupts of one operation of one scheme, in a process of its own, which may hang or die."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=swept, args=(theirs, scheme, operation, journal, options), daemon=True)
    process.start()
    theirs.close()
    found = Found(f"{operation}, {scheme}, {'journal' if journal else 'no journal'}")
    try:
        found = ours.recv()
    except EOFError:
        process.join()
        found.wrong.append(("none", "some place", "dead", f"the process ended with {process.exitcode}"))
    finally:
        process.kill()
        process.join()
    return found


def swept(pipe: Connection, scheme: str, operation: str, journal: bool, options: argparse.Namespace) -> None:
    """The process: send what was found, or what went wrong without any interrupt."""
    try:
        pipe.send(_swept(scheme, operation, journal, options))
    except (Exception, Hung) as error:
        found = Found(f"{operation}, {scheme}, {'journal' if journal else 'no journal'}")
        seen = f"{described(error)}\n{traceback.format_exc(limit=-4)}"
        found.wrong.append(("none", "setting up", "broken without an interrupt", seen))
        pipe.send(found)
    os._exit(0)  # threads of servers that hang may never end


def _swept(scheme: str, operation: str, journal: bool, options: argparse.Namespace) -> Found:
    logging.getLogger("sparsemean").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.settrace(Helpers.trace)
    parent = os.getppid()
    sys.unraisablehook = lambda _: None  # an interrupt that Python itself ignores, in the callback of a weak reference
    with tempfile.TemporaryDirectory(dir=WHERE, ignore_cleanup_errors=True) as home:
        plan = Plan(scheme, operation, journal, Path(home))
        found = Found(plan.name)
        for case in cases(plan, options, found):
            if os.getppid() != parent:
                os._exit(1)
            case.play()
            found.outcomes[case.way, case.outcome] += 1
            if case.wrong is not None:
                at = str(case.place) if case.place is not None else f"after {case.delay * 1e3:.3f} ms"
                if case.begin_at is not None:
                    begins = f"line {~case.begin_at.offset} of {case.begin_at.code.co_qualname}"
                    at += f", the other thread begins at {begins}"
                found.wrong.append((case.way, at, case.wrong.kind, str(case.wrong)))
    return found


def report(found: list[Found], show: int) -> int:
    """Print what was found; how many cases were wrong."""
    width = max((len(each.name) for each in found), default=0) + 2
    print(f"{'':{width}}{'way':8}{'places':>8}{'events':>8}" + "".join(f"{name:>10}" for name in OUTCOMES))
    for each in found:
        for way in WAYS:
            row = [each.outcomes[way, outcome] for outcome in OUTCOMES]
            if sum(row):
                counts = "".join(f"{count:>10,}" for count in row)
                print(f"{each.name:{width}}{way:8}{each.places[way]:>8,}{each.events[way]:>8,}{counts}")
    kinds: Counter[tuple[str, str]] = Counter()
    for each in found:
        kinds.update((kind, each.name) for *_, kind, _ in each.wrong)
        for way, place, _, seen in each.wrong[:show]:
            print(f"WRONG {each.name}, {way} at {place}\n      {seen}")
        if len(each.wrong) > show:
            print(f"      and {len(each.wrong) - show:,} more of {each.name}")
    for kind in sorted({kind for kind, _ in kinds}):
        of_kind = {name: count for (other, name), count in kinds.items() if other == kind}
        print(f"{kind}: {sum(of_kind.values()):,}")
        for name, count in of_kind.items():
            print(f"    {name}: {count:,}")
    total = sum(sum(each.outcomes.values()) for each in found)
    unreached = sum(count for each in found for (_, outcome), count in each.outcomes.items() if outcome == "unreached")
    wrong = sum(len(each.wrong) for each in found)
    print(f"{total:,} interrupts ({unreached:,} not reached) in {len(found)} settings, {wrong:,} left something wrong")
    return wrong


def main() -> None:
    """Interrupt, compare, print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--scheme", action="append", choices=SCHEMES, help="only this one; may be repeated")
    options.add_argument("--operation", action="append", choices=OPERATIONS, help="only this one; may be repeated")
    options.add_argument("--journal", choices=("with", "without"), help="only with or without a journal")
    options.add_argument("--way", action="append", choices=WAYS, help="only this one; may be repeated")
    options.add_argument("--lines", dest="every", action="store_false", help="each line once, not every event")
    options.add_argument("--timers", type=int, default=300, help="random delays for each operation and scheme")
    options.add_argument("--patience", type=float, default=60.0, help="seconds after which a case counts as hung")
    options.add_argument("--show", type=int, default=5, help="wrong cases to print of each operation and scheme")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = options.parse_args()
    given.way = given.way or list(WAYS)
    journals = {"with": [True], "without": [False], None: [False, True]}[given.journal]
    settings = [
        (scheme, operation, journal)
        for operation in given.operation or OPERATIONS
        for journal in journals
        for scheme in given.scheme or SCHEMES
    ]
    since, found = time.monotonic(), []
    pool = ThreadPoolExecutor(given.workers)
    try:
        for each in [pool.submit(apart, *setting, given) for setting in settings]:
            found.append(each.result())
            print(f"\r{len(found)} of {len(settings)} settings", end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(" (interrupted)", end="", file=sys.stderr)
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.kill()
    print(file=sys.stderr)
    wrong = report(found, given.show)
    print(f"{time.monotonic() - since:.0f} s")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
