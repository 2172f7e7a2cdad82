"""Auto: which coordinates and how many bits, decided anew for each round by the server, within a byte budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, cast, get_args

from sparsemean._names import Knowledge, ValueName
from sparsemean._types import Floats
from sparsemean.encoders.base import Encoder, EncoderFacts, State
from sparsemean.encoders.rand_k import RandK
from sparsemean.encoders.relative import Relative
from sparsemean.encoders.remembered import Remembered
from sparsemean.encoders.size import Size, checked, count, largest_within
from sparsemean.errors import InvalidInput
from sparsemean.kernels.eden import LEAST as LEAST_ROTATED
from sparsemean.payload import Layout, Payload
from sparsemean.sampling import Balanced, Draw, Epochs, Key
from sparsemean.theory.arguments import whole
from sparsemean.wire import frame, parts
from sparsemean.wire.values import value_kind

SIXTEENTHS = 16
BITS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
"""Of values that are rotated. They double from 1 to 8 in steps that lose little: see docs/auto.md."""
NODES = get_args(Knowledge)


class Option(NamedTuple):
    """What all nodes of a round may encode with.

    Attributes
    ----------
    encoder : Encoder
        A ``RandK`` of at most d coordinates, or a ``Relative`` or ``Remembered`` one.
    values : str
        How a value travels.
    """

    encoder: Encoder
    values: ValueName


@dataclass(frozen=True)
class Auto(Encoder):
    """One of several ways to fill a byte budget; in every round the server's plan says which.

    The options are all coordinates with as many bits as fit, and fewer coordinates with more bits each, balanced over
    nodes or in epochs. Which promises the least error the server works out from what came (``server.why()``); it goes
    by earlier rounds alone, so that estimates stay unbiased.

    Parameters
    ----------
    k : int or float, optional
        The budget as a number of float32 values: a count, or a share of the dimension strictly between 0 and 1.
    bytes : int, optional
        The budget in bytes, header included; instead of ``k``.
    node : {"stateless", "broadcast", "stateful"}, default "stateless"
        What nodes know besides their vector: nothing; the last mean (``client.encode(…, reference=…)``); or what the
        server remembers of them, which they keep in step with ``client.delivered(receipt)``. To the latter two they
        can send the difference.

    >>> Auto(bytes=200).options(1000)[0]
    Option(encoder=RandK(k=1000, shared=False, draw=Balanced(common_scale=None)), values='eden-1.0625')
    """

    k: Size | None = None
    bytes: int | None = None
    node: Knowledge = "stateless"

    def __post_init__(self) -> None:
        if (self.k is None) == (self.bytes is None):
            raise InvalidInput("Auto takes one budget: bytes=, or k= as a number of float32 values")
        if self.k is not None:
            object.__setattr__(self, "k", checked(self.k))
        if self.bytes is not None:
            object.__setattr__(self, "bytes", whole(self.bytes, "bytes", 1))
        if self.node not in NODES:
            raise InvalidInput(f"node is one of {', '.join(map(repr, NODES))}, got {self.node!r:.100}")

    @property
    def facts(self) -> EncoderFacts:
        knows = {"relative": self.node == "broadcast", "remembered": self.node == "stateful"}
        return EncoderFacts(raw=True, uniform=True, unbiased=True, planned=True, **knows)

    def budget(self, dim: int) -> int:
        """The bytes that a payload may have, header included."""
        return self.bytes if self.bytes is not None else frame.HEADER_BYTES + 4 * count(self.k or 1, dim)

    def options(self, dim: int) -> tuple[Option, ...]:
        """What the plans of vectors of this length choose from; the first is that of the first round."""
        return _options(self, dim)

    def layout(self, dim: int) -> tuple[Layout, ...]:
        """Of the option that sends most coordinates."""
        return max((option.encoder.layout(dim) for option in self.options(dim)), key=lambda layout: layout[0].count)

    def omega(self, dim: int) -> float | None:
        found = [omega for option in self.options(dim) if (omega := option.encoder.omega(dim)) is not None]
        return max(found, default=None)

    def encode(self, vector: Floats, key: Key, state: State) -> Payload | None:
        raise InvalidInput("Auto encodes by the option that a plan names; use Client.encode(vector, round, plan)")


@lru_cache(maxsize=64)
def _options(auto: Auto, dim: int) -> tuple[Option, ...]:
    room = auto.budget(dim)
    sizes = list(_sizes(dim, room))
    if not sizes:
        raise InvalidInput(
            f"a payload has at least {_bytes(1, dim, _eden(SIXTEENTHS))} bytes, of which {frame.HEADER_BYTES} are the "
            f"header, got a budget of {room}; allow more"
        )
    draws: tuple[Draw, ...] = (Balanced(), Epochs())
    plain = [Option(RandK(k, draw=draw), values) for k, values in sizes for draw in draws[: 1 if k == dim else None]]
    first = _first(plain, dim)  # the others may be in any order
    plain = [first, *(each for each in plain if each != first)]
    if auto.node == "stateless":
        return tuple(plain)
    if auto.node == "stateful":  # all have the same state; where nothing is remembered yet, a difference is the vector
        return tuple(Option(Remembered(encoder, factor), values) for factor in (1, 0) for encoder, values in plain)
    return tuple(plain) + tuple(Option(Relative(encoder), values) for encoder, values in plain)


def _first(options: list[Option], dim: int) -> Option:
    """What errs least where nothing is known and nodes are not alike: the most coordinates, with the most bits."""
    return max(options, key=lambda each: (each.encoder.layout(dim)[0].count, value_kind(each.values).size(dim)))


def _sizes(dim: int, room: int) -> Iterator[tuple[int, ValueName]]:
    """Pairs of k and value kind that fill so many bytes: all coordinates once, if they fit; then fewer."""
    whole_bits = largest_within(lambda bits: _bytes(dim, dim, _eden(bits)) <= room, SIXTEENTHS - 1, 8 * SIXTEENTHS)
    if whole_bits >= SIXTEENTHS:
        yield dim, _eden(whole_bits)
    kinds = [_eden(int(SIXTEENTHS * bits)) for bits in BITS]
    for bits, values in [*zip(BITS, kinds, strict=True), (16, "int16"), (32, "float32")]:
        k = largest_within(lambda k, values=values: _bytes(k, dim, values) <= room, 0, dim)  # type: ignore[misc]
        rotated = k >= LEAST_ROTATED or bits == int(bits)  # fewer values have whole bits
        if 0 < k < dim and rotated:
            yield k, values
    for values in ("int16", "float32"):
        if _bytes(dim, dim, values) <= room:
            yield dim, values


def _eden(sixteenths: int) -> ValueName:
    return cast(ValueName, f"eden-{sixteenths / SIXTEENTHS:g}")


def _bytes(k: int, dim: int, values: str) -> int:
    (layout,) = RandK(k, draw=Balanced()).layout(dim)
    return frame.HEADER_BYTES + parts.most_bytes(layout, dim, value_kind(values))
