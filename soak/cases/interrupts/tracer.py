"""Trace functions that list the places a call reaches, or interrupt it at one of them."""

from __future__ import annotations

import ctypes
import functools
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from sparsemean.server import uninterrupted

from .other_thread import HEAD_START, OTHER_THREAD
from .places import ENTRY, Place, checks_of, regions_of, traced

HELPER = ("helper", "twice")
LINES_AHEAD = 6  # the other thread begins so many lines before the interrupt, at most

_raise = ctypes.PyDLL(None)["raise"]
_raise.argtypes, _raise.restype = [ctypes.c_int, ctypes.py_object], ctypes.c_int


class _Interrupt:
    """``now`` raises SIGINT without a call instruction, at which the interpreter would see it in the tracer itself."""

    now = property(functools.partial(_raise, int(signal.SIGINT)))


INTERRUPT = _Interrupt()


@dataclass
class Tracer:
    """A function for ``sys.settrace``: without ``target`` it notes every place, with one it interrupts there.

    Parameters
    ----------
    way
        How to interrupt, one of the ways that ``soak/interrupts.py`` lists.
    target
        Where to interrupt.
    first
        Called before the interrupt: lets the other thread begin.
    first_at
        The line where ``first`` is called; the target by default.
    """

    way: str
    target: Place | None = None
    first: Callable[[], object] | None = None
    first_at: Place | None = None
    lines: list[Place] = field(default_factory=list)
    lines_before: dict[Place, list[Place]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    armed: bool = True
    seen: dict[tuple[CodeType, int], int] = field(default_factory=dict)
    places: list[Place] = field(default_factory=list)
    fired: bool = False
    entered: FrameType | None = None  # the frame from which a Python function was called last

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        """Trace a function that is entered, if it is one of those that matter."""
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
        # Nothing more is traced in this thread: CPython 3.11 loops for ever at the entry of a function in a traced
        # thread while a signal waits for the main thread, which may have gone to sleep just before the signal came.
        sys.settrace(None)
        for again in range(2 if self.way == "twice" else 1):
            with self.lock:
                if not self.armed:
                    self.fired = again > 0
                    return
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            time.sleep(HEAD_START)

    def disarm(self) -> None:
        """Send no interrupt after this."""
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
    """Traces every thread but the main one, and that of ``Other``, with the tracer that is set at the time."""

    tracer: Tracer | None = None

    @classmethod
    def follow(cls, tracer: Tracer) -> None:
        """Trace with this one, in a new thread for changes: one is traced only up to its first interrupt."""
        uninterrupted._jobs.cache_clear()
        cls.tracer = tracer

    @classmethod
    def trace(cls, frame: FrameType, event: str, argument: Any) -> Any:
        """For ``threading.settrace``."""
        if cls.tracer is None or threading.current_thread().name == OTHER_THREAD:
            return None
        return cls.tracer(frame, event, argument)
