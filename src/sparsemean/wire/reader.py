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
        number = 0
        for place, byte in enumerate(self._buffer[: varint.LONGEST]):
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                if place and not byte:
                    raise MalformedPayload("an integer is padded")
                self.take(place + 1)
                return number
        raise MalformedPayload("an integer is cut off or too long")

    def finish(self) -> None:
        """Refuse what is left over."""
        if self._buffer:
            raise MalformedPayload(f"{len(self._buffer)} bytes too many")
