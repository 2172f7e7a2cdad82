"""What a shard takes of its machine's memory."""

from __future__ import annotations

import dataclasses
import resource
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True, slots=True)
class Usage:
    """What one shard holds now, and the most that its process has taken."""

    lo: int
    """The first coordinate of its range."""
    hi: int
    """The one after its last."""
    nodes: int
    """How many nodes it knows from rounds that ended."""
    arrays: int
    """Bytes of its arrays: sums, counts, memories, the last estimate. With a journal, mapped rows are among them."""
    peak: int
    """Bytes of memory that its process has had at most since it started, with Python and Ray."""


def array_bytes(thing: object) -> int:
    """Bytes of all arrays that can be reached from here, each memory once.

    >>> whole = np.zeros(10)
    >>> array_bytes({"whole": whole, "part": [whole[:5]], "other": np.zeros(3, np.int32)})
    92
    """
    return sum({id(array): array.nbytes for array in _arrays(thing, set())}.values())


def _arrays(thing: Any, seen: set[int]) -> Iterator[Any]:
    if thing is None or isinstance(thing, bool | int | float | str | bytes | type) or id(thing) in seen:
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        while isinstance(thing.base, np.ndarray):
            thing = thing.base
        yield thing
    elif isinstance(thing, Mapping):
        for item in thing.values():
            yield from _arrays(item, seen)
    elif isinstance(thing, tuple | list | deque | set):
        for item in thing:
            yield from _arrays(item, seen)
    else:
        for item in vars(thing).values() if hasattr(thing, "__dict__") else ():
            yield from _arrays(item, seen)
        for name in getattr(type(thing), "__slots__", ()):
            yield from _arrays(getattr(thing, name, None), seen)


def peak_bytes() -> int:
    """The most memory this process has had."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
