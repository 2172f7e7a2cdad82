"""One part of a payload ↔ bytes, by its layout."""

from __future__ import annotations

import numpy as np

from sparsemean.errors import MalformedPayload
from sparsemean.payload import Floats, Layout, Part
from sparsemean.sampling import Key
from sparsemean.sampling import coordinates as sample
from sparsemean.wire import coordinates, values
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import ValueKind


def pack(part: Part, layout: Layout, dim: int, kind: ValueKind) -> bytes:
    """The bytes of one part: its coordinates where they travel, then its values."""
    if layout.fixed:
        return kind.pack(part.values)
    listed = coordinates.pack(part.coordinates, dim)
    return listed + (_pack_levelled(part.values, kind) if layout.where == "levelled" else kind.pack(part.values))


def unpack(reader: Reader, layout: Layout, dim: int, kind: ValueKind, key: Key) -> Part:
    """The part that comes next."""
    if layout.fixed:
        sent = kind.unpack(reader, layout.count)
        if layout.where == "all":
            return Part(np.arange(dim), sent, layout.scale)
        drawn_by = key.child(layout.part)
        drawn = sample(drawn_by.shared() if layout.where == "shared" else drawn_by, dim, layout.count)
        return Part(drawn, sent, layout.scale)
    listed = coordinates.unpack(reader, dim, layout.count)
    levelled = layout.where == "levelled"
    sent = _unpack_levelled(reader, listed.size, kind) if levelled else kind.unpack(reader, listed.size)
    return Part(listed, sent, layout.scale)


def most_bytes(layout: Layout, dim: int, kind: ValueKind) -> int:
    """Exact size where the layout is fixed, else the most that any part can take."""
    if layout.fixed:
        return kind.size(layout.count)
    listed = coordinates.most_bytes(layout.count, dim) + kind.size(layout.count)
    if layout.where == "levelled" and layout.count:  # at worst one value is at the level, and one byte holds its sign
        return listed + coordinates.most_bytes(layout.count - 1, layout.count) + 1
    return listed


def _pack_levelled(sent: Floats, kind: ValueKind) -> bytes:
    """The smallest magnitude, where larger ones stand, the signs of the others, the larger values."""
    if sent.size == 0:
        return b""
    magnitude = np.abs(sent.astype(kind.dtype))
    larger = magnitude > magnitude.min()
    return (
        kind.pack(magnitude.min(keepdims=True))
        + coordinates.pack(np.flatnonzero(larger), sent.size)
        + values.pack_signs(sent[~larger])
        + kind.pack(sent[larger])
    )


def _unpack_levelled(reader: Reader, count: int, kind: ValueKind) -> Floats:
    if count == 0:
        return np.empty(0, kind.dtype)
    level = kind.unpack(reader, 1)
    larger = np.zeros(count, bool)
    larger[coordinates.unpack(reader, count, count - 1)] = True
    sent = np.empty(count, kind.dtype)
    sent[~larger] = level * values.unpack_signs(reader, int(np.count_nonzero(~larger)))
    sent[larger] = kind.unpack(reader, int(np.count_nonzero(larger)))
    if np.signbit(level[0]) or not np.all(np.abs(sent[larger]) > level):
        raise MalformedPayload("the common level is negative, or not the smallest magnitude")
    return sent
