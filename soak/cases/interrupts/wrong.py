"""What a case finds wrong, and how it is described in one line."""

from __future__ import annotations

import traceback
from pathlib import Path


class Wrong(Exception):
    """A property that does not hold: its kind, and what was seen."""

    def __init__(self, kind: str, seen: str) -> None:
        super().__init__(f"{kind}: {seen}")
        self.kind = kind


class Hung(BaseException):
    """The time limit of a case has passed; the message says where each thread waited."""


def expect(kind: str, found: object, *wanted: object) -> None:
    """Raise ``Wrong`` unless ``found`` is one of ``wanted``."""
    if found not in wanted:
        raise Wrong(kind, f"{shown(found)} is none of {', '.join(map(shown, wanted))}")


def shown(thing: object) -> str:
    """At most 100 characters of it."""
    text = str(thing)
    return text if len(text) < 100 else f"{text[:97]}..."


def described(error: BaseException) -> str:
    """Its type, message, and the place where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {shown(error)}{where}"
