"""Recent: what was computed last, kept as long as it fits in a given memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """A cache bounded by bytes; what was used longest ago goes first. Threads may share it.

    Parameters
    ----------
    room : int
        How many bytes the values take at most, in all.

    >>> recent = Recent[str](room=10)
    >>> recent.put("a", "first", 5)
    >>> recent.put("b", "second", 6)
    >>> recent.get("a"), recent.get("b"), recent.used
    (None, 'second', 6)
    """

    def __init__(self, room: int) -> None:
        self.room, self.used = room, 0
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Value | None:
        """The value of this key, if it is still there."""
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: Hashable, value: Value, nbytes: int) -> None:
        """Keep a value of this size, in place of any other of its key."""
        with self._lock:
            self.used -= self._values.pop(key, (None, 0))[1]
            if nbytes > self.room:
                return
            self._values[key] = value, nbytes
            self.used += nbytes
            while self.used > self.room:
                self.used -= self._values.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self.used = 0
