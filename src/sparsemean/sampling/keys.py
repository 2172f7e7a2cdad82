"""Keys: what randomness is derived from, and the streams of words drawn with them (docs/sampling.md)."""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sparsemean._types import Words
from sparsemean.errors import InvalidInput
from sparsemean.kernels.stream import stream_index, stream_word
from sparsemean.sampling.plan import Plan

VERSION = 1


@dataclass(frozen=True, slots=True)
class Key:
    """What a sample depends on.

    Parameters
    ----------
    seed, round : int
        Of the run; which round it is.
    node : str or None
        Whose sample; None for one that all nodes share.
    part : int, default 0
        Which part of the payload, 0 to 255.
    plan : Plan, optional
        What the server asked of the node; not part of the digest, from which all streams of words are made.

    >>> Key(7, 0, "station-12").child(1)
    Key(seed=7, round=0, node='station-12', part=1)
    """

    seed: int
    round: int
    node: str | None
    part: int = 0
    plan: Plan | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name, bits in (("seed", 64), ("round", 63), ("part", 8)):
            value = integer(name, getattr(self, name), 0, (1 << bits) - 1)
            object.__setattr__(self, name, value)
        _utf8(self.node)

    def shared(self) -> Key:
        """The key whose coordinates all nodes have in common."""
        return replace(self, node=None)

    def child(self, part: int) -> Key:
        """The key of one random part of the same payload."""
        return replace(self, part=part)

    def digest(self, label: bytes) -> bytes:
        """32 bytes, different whenever label, seed, round, part or node is."""
        return hashlib.blake2b(
            b"sparsemean"
            + bytes([VERSION, integer("length of label", len(label), 0, 255)])
            + label
            + self.seed.to_bytes(8, "little")
            + self.round.to_bytes(8, "little")
            + bytes([self.part, self.node is not None])
            + _utf8(self.node),
            digest_size=32,
        ).digest()


def words(key: Key, label: bytes, count: int, start: int = 0) -> Words:
    """``count`` uniform 64-bit words of the stream ``label``, from position ``start``.

    >>> [hex(word) for word in words(Key(7, 0, "station-12"), b"dither", 2)]
    ['0x5a8bbb9bec8d1b0b', '0xc9e6346a3af3b8ee']
    """
    start = integer("start", start, 0, 1 << 62)
    count = integer("count", count, 0, 1 << 62)
    return stream_word(stream_of(key, label), stream_index(start, count))


def stream_of(key: Key, label: bytes) -> list[int]:
    """The two words that a stream is drawn with."""
    return [int(word) for word in np.frombuffer(key.digest(label), "<u8")[:2]]


def integer(name: str, value: Any, low: int, high: int) -> int:
    """The value as a plain int, if it is one from ``low`` to ``high``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, bool) or not low <= number <= high:
        raise InvalidInput(f"{name} is {value!r}; give an integer from {low} to {high}")
    return number


def _utf8(node: str | None) -> bytes:
    try:
        return b"" if node is None else str.encode(node)
    except (TypeError, UnicodeEncodeError):
        raise InvalidInput(f"node is {node!r}; give text, or None if shared") from None
