"""Few-bit values with one step for all nodes, and dither that is shared out among the senders of a coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, final

import numpy as np

from sparsemean._types import Doubles, Floats
from sparsemean.errors import MalformedPayload, NonFiniteValues
from sparsemean.kernels import Sample
from sparsemean.kernels.ranks import rank_words
from sparsemean.kernels.restore import CHUNK, restored
from sparsemean.payload.noise import Levels
from sparsemean.sampling import Key, stream_of
from sparsemean.wire import coordinates
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import bits
from sparsemean.wire.values.dithered import GROUP, Dithered, own_scales, step
from sparsemean.wire.values.kind import Read, ValueKind

OWN, COMMON = 0, 1
MOST_BEYOND = 256  # steps that a value may lie beyond the codes
UNLIKELY = 1e-14


@final
@dataclass(frozen=True)
class Stratified(ValueKind):
    """Values of a balanced draw, rounded by the plan's scale and the dither of the node's rank; or by its own.

    Of the s planned senders of a coordinate, the one of rank r rounds with the dither frac(u + r/s), u being common to
    all. For itself each is uniform, so what comes back is x plus noise that is uniform with variance step²/12, as ever.
    But where the senders have equal values, the noise of their mean is that of one value of step/s.

    A value beyond the codes is listed with the number of steps that it lies beyond them. Where there would be many, or
    the node's own scales are so small that the common step would double its noise, the values travel as ``kind`` has
    them, each group with its own scale and the node's own dither.

    Parameters
    ----------
    kind : Dithered
        How many bits a value has.
    scale : float
        A of the plan: codes reach from −A to A.
    sample : Sample
        Which coordinates the values are of; balanced, so that ranks are known.
    """

    kind: Dithered
    scale: float
    sample: Sample
    exact: ClassVar[bool] = False

    @property
    def code(self) -> int:  # type: ignore[override]
        return self.kind.code

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.kind.name

    @property
    def dtype(self) -> np.dtype[np.floating]:  # type: ignore[override]
        return self.kind.dtype

    @property
    def levels(self) -> int:
        """L, the number of codes."""
        return 1 << self.kind.bits

    @property
    def step(self) -> float:
        """The distance of two values on the common lattice."""
        return float(step(np.array(self.scale), self.levels))

    def size(self, count: int) -> int:
        """The most bytes that ``count`` values take."""
        return 1 + most_bytes(self.kind, count)

    def pack(self, values: Floats, key: Key) -> bytes:
        """The values as bytes; refuses magnitudes above 2¹²⁶."""
        own = self.kind.pack(values, key)
        common = self._common(values, key) if self._fits(values) else None
        if common is None or len(common) > most_bytes(self.kind, values.size):
            return bytes([OWN]) + own
        return bytes([COMMON]) + common

    def _fits(self, values: Floats) -> bool:
        """Whether few values will lie beyond the codes, and the step's square is at most twice the node's own.

        It goes by the values alone. Were it to go by how many turn out to be beyond, the dither of those that travel so
        would no longer be uniform. ``most_bytes`` leaves room for so many more than are expected here that they do
        not fit with a probability below 1e-14.
        """
        sizes = np.abs(values)
        if not np.all(sizes < (self.levels / 2 + MOST_BEYOND - 1) * self.step):
            return False
        beyond = np.sum(np.clip((sizes - self.scale) / self.step, 0.0, 1.0))  # on average, |D| being below ½
        if beyond > _expected(self.kind, values.size):
            return False
        own = own_scales(values)
        return bool(self.scale**2 <= 2.0 * np.mean(own * own)) if own.size else False

    def _common(self, values: Floats, key: Key) -> bytes:
        codes = np.empty(values.size, np.int64)
        dither = self._dither(key)
        for start in range(0, values.size, CHUNK):
            some = slice(start, start + CHUNK)
            scaled = values[some].astype(np.float64) / self.step
            codes[some] = np.floor(scaled + self.levels / 2 + dither[some])
        kept = np.clip(codes, 0, self.levels - 1)
        beyond = np.abs(codes - kept)
        at = np.flatnonzero(beyond)
        listed = coordinates.pack(at, max(values.size, 1))
        excess: bytes = (beyond[at] - 1).astype(np.uint8).tobytes()
        return listed + excess + bits.pack(kept.astype(np.uint8), self.kind.bits)

    def unpack(self, reader: Reader, count: int, key: Key) -> tuple[Floats, Levels]:
        """The next ``count`` values, and step²/12 for each."""
        values, noise, _ = self.read(reader, count, key)
        assert isinstance(noise, Levels)
        return values, noise

    def read(self, reader: Reader, count: int, key: Key) -> Read:
        """The same with the scale that would suit the sender."""
        mode = reader.take(1)[0]
        if mode == OWN:
            return self.kind.read(reader, count, key)
        if mode != COMMON:
            raise MalformedPayload(f"values are rounded in an unknown way ({mode})")
        at = coordinates.unpack(reader, max(count, 1), count)
        beyond = np.frombuffer(reader.take(at.size), np.uint8).astype(np.float64) + 1.0
        codes = bits.unpack(reader, count, self.kind.bits)
        ends = codes[at]
        if np.any((ends != 0) & (ends != self.levels - 1)):
            raise MalformedPayload("a value beyond the codes has a code between them")
        values, dither = np.empty(count, self.dtype), self._dither(key)
        for start in range(0, count, CHUNK):
            some = slice(start, start + CHUNK)
            values[some] = restored(codes[some], np.array(self.step), self.levels, dither[some])
        far = ends + np.where(ends > 0, beyond, -beyond)
        with np.errstate(over="ignore"):
            values[at] = self.step * ((far + (1 - self.levels) / 2) - dither[at])
        if at.size and not np.all(np.isfinite(values[at])):
            raise NonFiniteValues("a value is beyond float32; check the node's vector")
        return Read(values, Levels(np.full(1, self.step**2 / 12.0), max(count, 1), count), self._suits(at.size, count))

    def _suits(self, beyond: int, count: int) -> float:
        """The scale by which about one value of a group would lie beyond the codes; a part of the way to it."""
        wanted = max(1.0, count / GROUP)
        return self.scale * float(np.clip(((beyond + 0.5) / wanted) ** 0.125, 0.8, 1.25))

    def _dither(self, key: Key) -> Doubles:
        """D = U − ½ of each value."""
        words = np.empty(self.sample.k, np.uint32)
        rank_words(self.sample, stream_of(key.shared(), b"senders" + self.sample.k.to_bytes(8, "little")), words)
        return (words.astype(np.float64) + 0.5) * 2.0**-32 - 0.5


def _expected(kind: Dithered, count: int) -> float:
    """How many values may be expected to lie beyond the codes."""
    return 3.0 + kind.size(count) / 24.0


@lru_cache(maxsize=1024)
def most_bytes(kind: Dithered, count: int) -> int:
    """What the common step may take: the codes, and the list of as many values beyond them as there can be."""
    beyond = min(count, _most(_expected(kind, count)))
    return kind.size(count) + coordinates.most_bytes(beyond, max(count, 1)) + beyond


def _most(expected: float) -> int:
    """How many of independent events, so many of which are expected, happen but for a probability below 1e-14.

    By Chernoff's bound, P(X ≥ b) ≤ e^(b − m)·(m/b)^b for b ≥ m.

    >>> _most(3.0), _most(300.0)
    (25, 449)
    """
    most = math.ceil(expected)
    while most + 1 - expected + (most + 1) * math.log(expected / (most + 1)) >= math.log(UNLIKELY):
        most += 1
    return most
