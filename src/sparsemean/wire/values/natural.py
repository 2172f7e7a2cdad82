"""Natural compression (Horváth et al. 2019): a sign and a power of two, the one below or above, at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from sparsemean._types import Floats
from sparsemean.errors import InvalidInput, MalformedPayload, NonFiniteValues
from sparsemean.kernels.bit_stream import packed_bytes
from sparsemean.payload.noise import Octaves
from sparsemean.sampling import Key
from sparsemean.theory.quantisers import NATURAL_BOUND
from sparsemean.wire.reader import Reader
from sparsemean.wire.values import bits
from sparsemean.wire.values.dither import chunks
from sparsemean.wire.values.kind import ValueKind
from sparsemean.wire.values.rounded import rounded
from sparsemean.wire.values.sixteen import BFLOAT16
from sparsemean.wire.values.stated_noise import FACTOR_BYTES, pack_factor, read_factor

LARGEST_VALUE = 2.0**127


@final
@dataclass(frozen=True)
class Natural(ValueKind):
    """The upper nine bits of a float32: φ (``stated_noise``), all exponents, a byte each, then all signs.

    0, and powers of two from 2⁻¹²⁶ to 2¹²⁷, come back as they are; what lies between two of these becomes one of them,
    and is right on average. The noise is at most an eighth of x², whatever x is.
    """

    code: int
    name: str
    dtype: np.dtype[np.floating] = np.dtype("<f4")
    exact: ClassVar[bool] = False

    def size(self, count: int) -> int:
        """Bytes that ``count`` values take."""
        return FACTOR_BYTES + count + packed_bytes(count, 1) if count else 0

    def omega(self, count: int) -> float:
        """⅛, the paper's bound."""
        return NATURAL_BOUND

    def pack(self, values: Floats, key: Key) -> bytes:
        """The values as bytes; refuses magnitudes above 2¹²⁷."""
        if values.size == 0:
            return b""
        if not -LARGEST_VALUE <= values.min() <= values.max() <= LARGEST_VALUE:  # NaN compares as false
            raise InvalidInput(
                f"{self.name} takes values up to {LARGEST_VALUE:.3g}; rescale the vector, or use float64"
            )
        powers, variance = np.empty(values.size, "<f4"), 0.0
        for part, uniform in chunks(key, values.size):
            some = values[part].astype(np.float64)
            spacing = np.ldexp(BFLOAT16.spacing(some), BFLOAT16.fraction)  # of a format without a fraction
            beyond = some / spacing - np.floor(some / spacing)
            variance += float(np.sum(beyond * (1.0 - beyond) * spacing**2))
            powers[part] = rounded(some, spacing, uniform)
        exponents = (powers.view("<u4") >> 23 & 0xFF).astype(np.uint8)
        weight = float(np.sum(powers.astype(np.float64) ** 2))
        return pack_factor(variance, weight) + exponents.tobytes() + bits.pack_signs(powers)

    def unpack(self, reader: Reader, count: int, key: Key) -> tuple[Floats, Octaves]:
        """The next ``count`` values, and φ times their squares: exact in all; no key is needed."""
        if count == 0:
            return np.empty(0, self.dtype), Octaves(np.empty(0, self.dtype), 0.0, 0.0)
        body = Reader(reader.take(self.size(count)))
        factor = read_factor(body)
        exponents = np.frombuffer(body.take(count), np.uint8)
        if np.any(exponents == 0xFF):
            raise NonFiniteValues("values must be finite; the node should check its vector")
        powers = (exponents.astype("<u4") << 23).view("<f4")
        values: Floats = (powers * bits.unpack_signs(body, count)).astype(self.dtype)
        if np.any(np.signbit(values) & (exponents == 0)):
            raise MalformedPayload("a value that is 0 has a sign")
        return values, Octaves(values, 0.0, factor)
