"""Numbers of 16 bits by seeded stochastic rounding: float16 and bfloat16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sparsemean._types import Doubles, Floats
from sparsemean.errors import InvalidInput, NonFiniteValues
from sparsemean.payload.noise import Octaves
from sparsemean.sampling import Key
from sparsemean.wire.reader import Reader
from sparsemean.wire.values.dither import chunks
from sparsemean.wire.values.kind import ValueKind, bounded
from sparsemean.wire.values.sixteen import Sixteen


def rounded(values: Doubles, spacing: Doubles, uniform: Doubles) -> Doubles:
    """y = u·⌊x/u + U⌋: up with probability f, the fraction of x/u, so E y = x and var y = f(1 − f)u².

    U has 32 bits. Where f has no more, as it does when x is a float32 in the format's normal range, this is exact;
    else E y is within 2⁻³³ u of x.

    >>> rounded(np.full(4, 0.75), np.ones(4), np.array([0.125, 0.375, 0.625, 0.875]))
    array([0., 1., 1., 1.])
    """
    # x/u is exact, u being a power of two; a whole number plus U has 44 bits at most, so it stays below the next one.
    whole: Doubles = np.floor(values / spacing + uniform)
    return whole * spacing


@final
@dataclass(frozen=True)
class Rounded(ValueKind):
    """Values in a 16-bit format; one that the format holds comes back as it is."""

    code: int
    name: str
    format: Sixteen
    dtype: np.dtype[np.floating] = np.dtype("<f4")
    exact: ClassVar[bool] = False

    def size(self, count: int) -> int:
        """Bytes that ``count`` values take."""
        return 2 * count

    def pack(self, values: Floats, key: Key) -> bytes:
        """The values as bytes; refuses what is beyond the largest number, which itself is never rounded up."""
        if not np.all(np.abs(values) <= self.format.largest):  # NaN compares as false
            raise InvalidInput(
                f"{self.name} takes values up to {self.format.largest:g}; "
                "rescale the vector, or use a kind that reaches further: bfloat16, float32, float64"
            )
        packed = np.empty(values.size, "<u2")
        for part, uniform in chunks(key, values.size):
            some = values[part].astype(np.float64)
            packed[part] = self.format.narrow(rounded(some, self.format.spacing(some), uniform))
        return packed.tobytes()

    def unpack(self, reader: Reader, count: int, key: Key) -> tuple[Floats, Octaves]:
        """The next ``count`` values; no key is needed.

        Their noise has variance f(1 − f)u², and f is known to the sender alone: said is the average over f, u²/6, with
        the spacing u at the value that came.
        """
        values = self.format.widen(np.frombuffer(reader.take(self.size(count)), "<u2"))
        if not bounded(values):
            raise NonFiniteValues("values must be finite; the node should check its vector")
        return values, self.format.noise_at(values)
