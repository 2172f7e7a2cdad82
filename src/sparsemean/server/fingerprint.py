"""A digest of everything an object holds, so that "nothing was changed" can be tested."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import threading
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sparsemean.memory.rows import Section

_LOCK = type(threading.Lock())


def fingerprint(thing: object) -> str:
    """Changes with any array, number, name or order reachable from ``thing``; fields that only cache do not count.

    >>> fingerprint([1, 2]) == fingerprint([1, 2]), fingerprint([1, 2]) == fingerprint([2, 1])
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    for piece in _pieces(thing):
        digest.update(len(piece).to_bytes(8, "little"))
        digest.update(piece)
    return digest.hexdigest()


def _pieces(thing: Any) -> Iterator[bytes | memoryview]:
    if isinstance(thing, Section):  # where rows stand is not what they hold
        return
    yield type(thing).__name__.encode()
    if isinstance(thing, np.ndarray):
        yield f"{thing.dtype} {thing.shape}".encode()
        yield np.ascontiguousarray(thing).tobytes()
    elif thing is None or isinstance(thing, bool | int | float | str | np.generic | np.dtype):
        yield repr(thing).encode()
    elif isinstance(thing, bytes):
        yield thing
    elif isinstance(thing, Mapping):
        yield str(len(thing)).encode()
        for name, value in thing.items():
            yield from _pieces(name)
            yield from _pieces(value)
    elif isinstance(thing, tuple | list | deque):
        yield str(len(thing)).encode()
        for item in thing:
            yield from _pieces(item)
    elif isinstance(thing, functools.partial):
        yield from _pieces((thing.func, thing.args, thing.keywords))
    elif isinstance(thing, type | types.FunctionType):
        yield f"{thing.__module__}.{thing.__qualname__}".encode()
    elif isinstance(thing, _LOCK):
        return
    elif dataclasses.is_dataclass(thing):
        yield from _pieces({field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)})
    else:
        yield from _pieces(vars(thing))
