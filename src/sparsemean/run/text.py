"""A run as text: members as plain JSON and back, and digests of it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from typing import Any

from sparsemean import decoding, encoders, memory, sampling
from sparsemean.encoders.size import Half
from sparsemean.errors import InvalidInput
from sparsemean.sampling.draws import LATER

DEEPEST = 50  # members within members in the text of a run; Python itself gives up at some hundred


@functools.cache
def known_members() -> dict[str, type]:
    """Every encoder, decoder, memory and draw that its package exports, by name."""
    exported = [item for package in (encoders, decoding, memory, sampling) for item in vars(package).values()]
    bases = (encoders.Encoder, decoding.Decoder, memory.Memory, sampling.Draw)
    found = [item for item in exported if isinstance(item, type) and issubclass(item, bases)]
    return {item.__name__: item for item in (*found, Half) if dataclasses.is_dataclass(item)}


def digest_of(content: dict[str, Any]) -> bytes:
    """Eight bytes that stand for plain JSON, in its canonical form (docs/wire.md)."""
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(canonical.encode(), digest_size=8).digest()


def describe(member: object) -> Any:
    """A member as plain JSON: its type and its fields, but for later ones that have their default (``LATER``)."""
    if dataclasses.is_dataclass(member):
        given = {field: getattr(member, field.name) for field in dataclasses.fields(member)}
        fields = {
            field.name: describe(value)
            for field, value in given.items()
            if not (LATER in field.metadata and value == field.default)
        }
        return {"type": type(member).__name__, **fields}
    if isinstance(member, tuple):
        return [describe(item) for item in member]
    if member is None or isinstance(member, bool | int | float | str):
        return member
    raise InvalidInput(
        f"{member!r} cannot be written down; members are dataclasses of plain values, and Spatial takes a table="
    )


def rebuild(value: Any, known: dict[str, type], depth: int = 0) -> Any:
    """The member that ``describe`` wrote; ``known`` are the classes it may be of."""
    if depth > DEEPEST:
        raise InvalidInput(f"members lie within members up to {DEEPEST} deep; this text has more")
    if isinstance(value, dict):
        kind = known.get(value["type"])
        if kind is None:
            raise InvalidInput(f"{value['type']!r:.100} is not known here; pass its class to from_json as members=[…]")
        fields = {name: rebuild(item, known, depth + 1) for name, item in value.items() if name != "type"}
        for field in dataclasses.fields(kind):
            if field.type in (bool, "bool") and not isinstance(fields.get(field.name, False), bool):
                raise InvalidInput(f"{field.name} of {kind.__name__} is true or false")
        return kind(**fields)
    if isinstance(value, list):
        return [rebuild(item, known, depth + 1) for item in value]
    return value


def parsed(text: str) -> dict[str, Any]:
    """The JSON object in a text, which has no name twice and no NaN."""
    fields = json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse_constant)
    if not isinstance(fields, dict):
        raise InvalidInput("this is not a run written by to_json, which is a JSON object")
    return fields


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; Python would take the last of several values of one name, and others the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidInput("this is not a run written by to_json: it has a name twice in one object")
    return found


def _refuse_constant(name: str) -> Any:
    raise InvalidInput(f"this is not a run written by to_json: {name} is no number that a run has")
