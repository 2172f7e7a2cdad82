"""A tree as bytes: JSON for its shape, the arrays as they are, and a checksum over both.

``SPMT``, four bytes of CRC-32 over the rest, eight bytes of length of the JSON, the JSON, then the arrays in order,
each at a multiple of 16 from the start. In the JSON an array is ``{"array": [type, shape]}``; all is little-endian.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from sparsemean.errors import DamagedJournal
from sparsemean.state_tree import Array, Tree
from sparsemean.wire.checksum import crc32

MAGIC = b"SPMT"
START = struct.Struct("<4sIQ")
ALIGNED = 16
ARRAY = "array"
TYPES = {name: np.dtype(name) for name in ("|u1", "<i4", "<i8", "<f4", "<f8")}


def written(tree: Tree) -> list[bytes | memoryview]:
    """The tree as bytes, in pieces to be written one after the other."""
    arrays: list[Array] = []
    shape = json.dumps(_shape(tree, arrays), separators=(",", ":")).encode()
    length = START.size + len(shape)
    pieces: list[bytes | memoryview] = [shape]
    for array in arrays:
        pieces += [bytes(-length % ALIGNED), _bytes(array)]
        length += -length % ALIGNED + array.nbytes
    crc = crc32(struct.pack("<Q", len(shape)))
    for piece in pieces:
        crc = crc32(piece, crc)
    return [START.pack(MAGIC, crc, len(shape)), *pieces]


def _bytes(array: Array) -> bytes | memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data if array.size else b""


def _shape(tree: Tree, arrays: list[Array]) -> Any:
    if isinstance(tree, np.ndarray):
        if tree.dtype.str not in TYPES:
            raise TypeError(f"arrays of {tree.dtype.str} are not written down, only of {', '.join(TYPES)}")
        arrays.append(tree)
        return {ARRAY: [tree.dtype.str, list(tree.shape)]}
    if isinstance(tree, dict):
        if ARRAY in tree:
            raise TypeError(f"{ARRAY!r} is no name for a branch")
        return {name: _shape(value, arrays) for name, value in tree.items()}
    return [_shape(item, arrays) for item in tree] if isinstance(tree, list) else tree


def read_tree(blob: bytes) -> Tree:
    """The tree again, with arrays of its own.

    >>> read_tree(b"".join(written({"round": 3, "sums": np.arange(3.0)})))
    {'round': 3, 'sums': array([0., 1., 2.])}
    """
    try:
        magic, crc, length = START.unpack_from(blob)
        if magic != MAGIC or crc32(memoryview(blob)[START.size - 8 :]) != crc:
            raise DamagedJournal("the checksum of what was written down does not fit")
        shape = json.loads(blob[START.size : START.size + length])
        return _tree(shape, _taker(blob, START.size + length))
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise DamagedJournal(f"what was written down cannot be read: {error}") from None


def _taker(blob: bytes, at: int) -> Callable[[str, list[int]], Array]:
    """Gives one array after the other."""

    def take(kind: str, shape: list[int]) -> Array:
        nonlocal at
        dtype, count = TYPES[kind], math.prod(shape)
        at += -at % ALIGNED
        array = np.frombuffer(blob, dtype, count, at) if count else np.empty(0, dtype)
        at += array.nbytes
        return array.reshape(shape).copy()

    return take


def _tree(shape: Any, take: Callable[[str, list[int]], Array]) -> Tree:
    if isinstance(shape, dict):
        if ARRAY in shape:
            return take(*shape[ARRAY])
        return {name: _tree(value, take) for name, value in shape.items()}
    return [_tree(item, take) for item in shape] if isinstance(shape, list) else shape
