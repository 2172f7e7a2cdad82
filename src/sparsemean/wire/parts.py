"""One part of a payload ↔ bytes, by its layout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput, MalformedPayload
from sparsemean.kernels import Sample
from sparsemean.payload import Layout, Part
from sparsemean.payload.noise import Levels, Octaves
from sparsemean.sampling import Drawn, Key
from sparsemean.wire import coordinates, packed_coordinates
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import FLOAT32, ValueKind, pack_signs, unpack_signs
from sparsemean.wire.values.dithered import Dithered
from sparsemean.wire.values.modulo import Modulo
from sparsemean.wire.values.stratified import Stratified
from sparsemean.wire.values.stratified import most_bytes as most_common


def pack(parts: Sequence[Part], layout: Layout, dim: int, kind: ValueKind, key: Key) -> bytes:
    """The bytes of one part: its coordinates where they travel, then its values, rounded by the node's own dither.

    It may be several in the payload, one for each class of coordinates, whose values are rounded together.
    """
    own, (part, *others) = key.child(layout.part), parts
    if layout.where == "signs":
        return _pack_signs(part.values, kind, own)
    if layout.fixed:
        values = np.concatenate([each.values for each in parts]) if others else part.values
        return _rounding(kind, layout, dim, own).pack(values, own)
    if np.any(np.diff(part.coordinates) <= 0):
        raise InvalidInput("an encoder lists coordinates out of order; sort them, and the values with them")
    if layout.where == "packed":
        return packed_coordinates.pack(part.coordinates, dim) + kind.pack(part.values, own)
    listed = coordinates.pack(part.coordinates, dim)
    if layout.where == "levelled":
        return listed + _pack_levelled(part.values, kind, own)
    return listed + kind.pack(part.values, own)


def unpack(reader: Reader, layout: Layout, dim: int, kind: ValueKind, key: Key) -> tuple[Part, ...]:
    """The part that comes next; several where its coordinates were drawn with several probabilities."""
    own = key.child(layout.part)
    if layout.where == "signs":
        return (Part(np.arange(dim), _unpack_signs(reader, dim, kind, own), layout.scale),)
    if layout.fixed:
        if layout.where == "all":
            sent, noise = kind.unpack(reader, layout.count, own)
            return (Part(np.arange(dim), sent, layout.scale, noise),)
        sent, noise, wanted = _rounding(kind, layout, dim, own).read(reader, layout.count, own)
        classes = layout.drawn(own, dim)
        if len(classes) == 1:
            suits = None if sized(layout, kind) else wanted
            return (Part(classes[0].where, sent, layout.scale, noise, suits),)
        return tuple(_split(classes, sent, noise))
    if layout.where == "packed":
        listed = packed_coordinates.unpack(reader, layout.count, dim)
    else:
        listed = coordinates.unpack(reader, dim, layout.count)
    if layout.where == "levelled":
        sent, noise = _unpack_levelled(reader, listed.size, kind, own)
    else:
        sent, noise = kind.unpack(reader, listed.size, own)
    return (Part(listed, sent, layout.scale, noise),)


def unpack_wrapped(reader: Reader, layout: Layout, dim: int, kind: Modulo, key: Key) -> Part:
    """The part that comes next, at fixed coordinates; values that depend on what the receiver expects are 0 so far."""
    own = key.child(layout.part)
    codes = kind.codes(reader, layout.count, own)
    where = np.arange(dim) if layout.where == "all" else layout.drawn(own, dim)[0].where
    found = None if np.any(codes.steps > 0.0) else codes.near(np.zeros(layout.count))
    values = np.zeros(layout.count, kind.dtype) if found is None else found.values
    return Part(where, values, layout.scale, 0.0 if found is None else found.noise, wrapped=codes)


def _split(classes: Sequence[Drawn], sent: Floats, noise: Levels | Octaves | float) -> Iterator[Part]:
    begin = 0
    for each in classes:
        end = begin + (each.where.size if isinstance(each.where, np.ndarray) else each.where.k)
        yield Part(
            each.where, sent[begin:end], each.scale, noise if isinstance(noise, float) else noise.between(begin, end)
        )
        begin = end


def _rounding(kind: ValueKind, layout: Layout, dim: int, key: Key) -> ValueKind:
    """How values of this part are rounded: by the plan's scale where it has one, and by ranks; else by ``kind``."""
    plan = key.plan
    if plan is None or plan.scale is None or not layout.draw.common_bits or not isinstance(kind, Dithered):
        return kind
    (drawn,) = layout.drawn(key, dim)
    assert isinstance(drawn.where, Sample)  # a draw with a common scale is balanced
    return Stratified(kind, plan.scale, drawn.where)


def sized(layout: Layout, kind: ValueKind) -> bool:
    """Whether every part with this layout has the same length."""
    if layout.where == "packed":
        return True
    return layout.fixed and not (isinstance(kind, Dithered) and kind.bits <= layout.draw.common_bits)


def most_bytes(layout: Layout, dim: int, kind: ValueKind) -> int:
    """Exact size where the part is ``sized``, else the most that any can take."""
    if layout.where == "signs":
        return _of_level(kind).size(1) + (dim + 7) // 8
    if layout.where == "packed":
        return packed_coordinates.size(layout.count, dim) + kind.size(layout.count)
    if sized(layout, kind):
        return kind.size(layout.count)
    if layout.fixed and isinstance(kind, Dithered):
        return 1 + most_common(kind, layout.count)
    listed = coordinates.most_bytes(layout.count, dim)
    if layout.where == "levelled" and layout.count:
        # At worst one value is at the level, and one byte holds its sign: a larger value takes no less than a sign.
        larger = layout.count - 1
        return listed + _of_level(kind).size(1) + coordinates.most_bytes(larger, layout.count) + 1 + kind.size(larger)
    return listed + kind.size(layout.count)


def _of_level(kind: ValueKind) -> ValueKind:
    """How the level travels: its noise would be common to many values, so it is spared the few bits."""
    return kind if kind.exact else FLOAT32


def _pack_signs(sent: Floats, kind: ValueKind, key: Key) -> bytes:
    """The magnitude that all values have, and their signs."""
    level = np.abs(sent[:1])
    if np.any(np.abs(sent) != level):
        raise InvalidInput("an encoder sends signs of values of several magnitudes; give all the same one")
    packed = _of_level(kind).pack(level, key)
    return packed + (pack_signs(sent) if any(packed) else bytes((sent.size + 7) // 8))  # a level of 0 has no signs


def _unpack_signs(reader: Reader, count: int, kind: ValueKind, key: Key) -> Floats:
    level, _ = _of_level(kind).unpack(reader, 1, key)
    signs = unpack_signs(reader, count)
    if np.signbit(level[0]):
        raise MalformedPayload("the common level is negative")
    if level[0] == 0.0 and np.any(signs < 0.0):
        raise MalformedPayload("a level of 0 has signs")
    return (level * signs).astype(kind.dtype)


def _pack_levelled(sent: Floats, kind: ValueKind, key: Key) -> bytes:
    """The smallest magnitude, where larger ones stand, the signs of the others, the larger values."""
    if sent.size == 0:
        return b""
    with np.errstate(over="ignore"):  # what overflows is larger, and refused as that
        magnitude = np.abs(sent.astype(kind.dtype))
    larger = magnitude > magnitude.min()
    return (
        _of_level(kind).pack(magnitude.min(keepdims=True), key)
        + coordinates.pack(np.flatnonzero(larger), sent.size)
        + pack_signs(sent[~larger])
        + kind.pack(sent[larger], key)
    )


def _unpack_levelled(reader: Reader, count: int, kind: ValueKind, key: Key) -> tuple[Floats, Levels | Octaves | float]:
    if count == 0:
        return np.empty(0, kind.dtype), 0.0
    level, _ = _of_level(kind).unpack(reader, 1, key)
    larger = np.zeros(count, bool)
    larger[coordinates.unpack(reader, count, count - 1)] = True
    sent = np.empty(count, kind.dtype)
    sent[~larger] = level * unpack_signs(reader, int(np.count_nonzero(~larger)))
    sent[larger], of_larger = kind.unpack(reader, int(np.count_nonzero(larger)), key)
    if np.signbit(level[0]):
        raise MalformedPayload("the common level is negative")
    if kind.exact:
        if not np.all(np.abs(sent[larger]) > level):
            raise MalformedPayload("the common level is not the smallest magnitude")
        return sent, of_larger
    noise = np.zeros(count)  # larger values may be rounded below the level, which itself is exact
    noise[larger] = np.asarray(of_larger)
    return sent, Levels(noise, 1, count)
