"""A cursor over hostile bytes: every read checks that the bytes are there before anything is allocated."""

from __future__ import annotations

from sparsemean.errors import MalformedPayload
from sparsemean.wire import varint


class Reader:
    """Takes bytes from the front of a buffer.

    >>> reader = Reader(memoryview(b"abc"))
    >>> bytes(reader.take(2)), reader.left
    (b'ab', 1)
    """

    def __init__(self, buffer: memoryview) -> None:
        self._buffer = buffer

    @property
    def left(self) -> int:
        """Bytes not yet taken."""
        return len(self._buffer)

    def take(self, size: int) -> memoryview:
        """The next ``size`` bytes."""
        if size > len(self._buffer):
            raise MalformedPayload(f"{size} bytes are announced where {len(self._buffer)} are left")
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    def integer(self) -> int:
        """The next variable-length integer."""
        for size in range(1, min(varint.LONGEST, len(self._buffer)) + 1):
            if self._buffer[size - 1] < 0x80:
                return int(varint.unpack(self.take(size))[0])
        raise MalformedPayload("an integer is cut off or too long")

    def finish(self) -> None:
        """Refuse what is left over."""
        if self._buffer:
            raise MalformedPayload(f"{len(self._buffer)} bytes too many")
