"""All interrupts of one operation, in a process of its own, which may hang or die."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from cases.small import WHERE

from .alarm import Alarm
from .case import Case
from .places import Place, one_per_line
from .plan import Plan
from .tracer import HELPER, Helpers, Tracer
from .wrong import Hung, described

SHORTEST = 1e-4  # seconds that an operation is taken to last, at least


@dataclass(frozen=True)
class Setting:
    """An operation of a scheme, with a journal or without."""

    scheme: str
    operation: str
    journal: bool

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.operation}, {self.scheme}, {'journal' if self.journal else 'no journal'}"


@dataclass(frozen=True)
class Choice:
    """Which interrupts are tried of a setting.

    Parameters
    ----------
    ways
        How to interrupt.
    lines
        Each line once, in place of every event.
    nth, helper_nth
        Only each n-th of the places in the main thread, and in the thread that makes the changes; the seed says which.
    timers
        Number of random delays, for the way "timer".
    patience
        Seconds after which a wait counts as hung.
    seed
        Of the delays and of the sample of places.
    """

    ways: tuple[str, ...]
    lines: bool
    nth: int
    helper_nth: int
    timers: int
    patience: float
    seed: int


@dataclass
class Found:
    """What came of the cases of one setting."""

    name: str
    places: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[tuple[str, str, str]] = field(default_factory=list)  # case, kind, what was seen


def swept(setting: Setting, choice: Choice) -> Found:
    """What a process of its own finds; if it dies, the case at which it did is wrong."""
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload([__name__, "sparsemean.kernels.compiled"])  # imported once for all processes
    ours, theirs = forks.Pipe()
    process = forks.Process(target=_process, args=(theirs, setting, choice), daemon=True)
    process.start()
    theirs.close()
    under_way = "setting up"
    try:
        while isinstance(answer := ours.recv(), str):
            under_way = answer
        found: Found = answer
    except EOFError:
        process.join()
        found = Found(setting.name)
        # Where it ran out of time, the stacks of its threads are on stderr.
        found.wrong.append((under_way, "dead", f"the process ended with {process.exitcode} during {under_way}"))
    finally:
        process.kill()
        process.join()
    return found


def _process(pipe: Connection, setting: Setting, choice: Choice) -> None:
    """Send each case before it is tried, then what was found, or what went wrong without any interrupt."""
    try:
        pipe.send(_sweep(pipe, setting, choice))
    except (Exception, Hung) as error:
        found = Found(setting.name)
        seen = f"{described(error)}\n{traceback.format_exc(limit=-4)}"
        found.wrong.append(("setting up", "broken without an interrupt", seen))
        pipe.send(found)
    os._exit(0)  # threads of servers that hang may never end


def _sweep(pipe: Connection, setting: Setting, choice: Choice) -> Found:
    logging.getLogger("sparsemean").setLevel(logging.CRITICAL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parent = os.getppid()
    sys.unraisablehook = lambda _: None  # an interrupt that Python itself ignores, in the callback of a weak reference
    with tempfile.TemporaryDirectory(dir=WHERE, ignore_cleanup_errors=True) as home:
        plan = Plan(setting.name, setting.scheme, setting.operation, setting.journal, Path(home))
        found = Found(setting.name)
        for case in _cases(plan, choice, found):
            if os.getppid() != parent:
                os._exit(1)
            pipe.send(str(case))
            case.play()
            found.outcomes[case.way, case.outcome] += 1
            if case.wrong is not None:
                found.wrong.append((str(case), case.wrong.kind, str(case.wrong)))
                if case.wrong.kind == "hung":  # it took the whole patience, and so would the next one
                    break
    return found


def _cases(plan: Plan, choice: Choice, found: Found) -> Iterator[Case]:
    """Every interrupt of an operation."""
    # Threads are traced only where that is the way (``Tracer`` says why), and then by new ones: SIGALRM may come to any
    # thread, which does not wake the main one.
    ways = sorted(choice.ways, key=HELPER.__contains__)
    for way in ways:
        if way in HELPER:
            threading.settrace(Helpers.trace)
        rng = np.random.default_rng((len(plan.name), choice.seed))
        if way == "timer":
            length = max(_seconds(plan), SHORTEST)
            for number, delay in enumerate(rng.uniform(0, 1.3 * length, choice.timers)):
                again = float(rng.uniform(SHORTEST / 10, length)) if number % 3 == 2 else 0.0
                yield Case(plan, way, choice.patience, delay=float(delay), again=again)
            continue
        if way in HELPER and plan.beside:
            continue
        with Alarm(choice.patience, f"{plan.name} without an interrupt"):
            tracer = _noted(plan, way)
        seen = tracer.places
        found.places[way] = len({(place.code, place.offset) for place in seen})
        found.events[way] = len(seen)
        at: list[tuple[Place, Place | None]] = []  # the interrupt, and the line where the other thread begins
        for place in one_per_line(seen) if choice.lines else seen:
            at.append((place, None))
            if plan.beside and way == "signal":
                at += [(place, line) for line in tracer.lines_before[place]]
        nth = choice.helper_nth if way in HELPER else choice.nth
        alike = [other for other in ways if other != "timer" and (other in HELPER) == (way in HELPER)]
        turn = alike.index(way) * nth // len(alike)  # so that ways take turns where places are left out
        for place, line in at[(int(rng.integers(nth)) + turn) % nth :: nth]:
            yield Case(plan, way, choice.patience, place, begin_at=line)


def _noted(plan: Plan, way: str) -> Tracer:
    """A tracer that has noted the places that the operation comes to, in order."""
    for _ in range(2):  # what is cached or compiled at the first time is not there at the second
        server, _ = plan.begun()
        tracer = Tracer(way)
        if way in HELPER:
            Helpers.follow(tracer)
        else:
            sys.settrace(tracer)
        try:
            plan.move.play(server)
        finally:
            sys.settrace(None)
            Helpers.tracer = None
        server.close()
    return tracer


def _seconds(plan: Plan) -> float:
    """How long the operation takes."""
    taken = []
    for _ in range(5):
        server, _ = plan.begun()
        since = time.perf_counter()
        plan.move.play(server)
        taken.append(time.perf_counter() - since)
        server.close()
    return statistics.median(taken)
