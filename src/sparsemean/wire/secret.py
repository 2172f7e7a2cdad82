"""Secret: what a node and its server share, to authenticate compact frames; nothing shows it."""

from __future__ import annotations

import hashlib
from typing import NoReturn

from sparsemean.errors import InvalidInput

LEAST, MOST = 16, 32


class Secret:
    """The key of BLAKE2s; without one, digests are plain.

    Parameters
    ----------
    key : bytes, optional
        16 to 32 bytes.

    >>> Secret(b"not so secret: 16 or more"), Secret()
    (Secret(…), Secret())
    """

    __slots__ = ("_key",)

    def __init__(self, key: bytes | None = None) -> None:
        if key is not None and not isinstance(key, bytes | bytearray | memoryview):
            raise InvalidInput(f"a secret is {LEAST} to {MOST} bytes, not {type(key).__name__}")
        self._key = b"" if key is None else bytes(key)
        if key is not None and not LEAST <= len(self._key) <= MOST:
            raise InvalidInput(
                f"a secret has {LEAST} to {MOST} bytes, this one has {len(self._key)}; draw one with "
                f"secrets.token_bytes({MOST})"
            )

    def digest(self, *pieces: bytes | memoryview) -> bytes:
        """BLAKE2s of these bytes, 32 long."""
        found = hashlib.blake2s(key=self._key)
        for piece in pieces:
            found.update(piece)
        return found.digest()

    def __bool__(self) -> bool:
        return bool(self._key)

    def __repr__(self) -> str:
        return "Secret(…)" if self else "Secret()"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled; give it to each process by itself")
