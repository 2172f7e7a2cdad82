"""Places in the byte code where CPython looks for signals."""

from __future__ import annotations

import dis
import functools
import os
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

import sparsemean as sm

PACKAGE = str(Path(sm.__file__).parent) + os.sep
# Standard modules in whose frames an interrupt may leave a lock of the server held.
LOCKING = ("threading.py", "contextlib.py", "queue.py", "concurrent")
LIBRARY = tuple(str(Path(os.__file__).parent / name) for name in LOCKING)
# Instructions at which the interpreter looks for signals (and at the entry of a function, by RESUME).
CHECKS = {dis.opmap[name] for name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD") if name in dis.opmap}
ENTRY = -1


@dataclass(frozen=True)
class Place:
    """The n-th time that a call reaches an instruction of a function, or its entry."""

    code: CodeType
    offset: int
    nth: int = 0

    @property
    def line(self) -> int:
        """Line number in its file."""
        if self.offset == ENTRY:
            return self.code.co_firstlineno
        lines = {at: line for at, line in dis.findlinestarts(self.code) if at <= self.offset and line is not None}
        return lines[max(lines)]

    def __str__(self) -> str:
        name = self.code.co_filename.removeprefix(PACKAGE)
        at = "entry" if self.offset == ENTRY else f"offset {self.offset}"
        return f"{name}:{self.line} {self.code.co_qualname} ({at}, time {self.nth + 1})"


@functools.cache
def traced(code: CodeType) -> bool:
    """Whether a function is one of ours, or one of the standard library's that handle locks."""
    return code.co_filename.startswith((PACKAGE, *LIBRARY))


@functools.cache
def checks_of(code: CodeType) -> frozenset[int]:
    """Offsets of the instructions at which a signal is seen."""
    return frozenset(each.offset for each in dis.get_instructions(code) if each.opcode in CHECKS)


@functools.cache
def regions_of(code: CodeType) -> dict[int, tuple[int, int] | None]:
    """Where an exception at each instruction is handled: target and depth of its entry in the exception table."""
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    return {
        each.offset: next(((e.target, e.depth) for e in entries if e.start <= each.offset < e.end), None)
        for each in dis.get_instructions(code)
    }


def one_per_line(found: list[Place]) -> list[Place]:
    """Each line of each function once: at the last place of the line, when its work is done."""
    return list({(place.code, place.offset == ENTRY, place.line): place for place in found if place.nth == 0}.values())
