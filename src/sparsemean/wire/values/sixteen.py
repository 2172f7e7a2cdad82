"""Numbers of 16 bits: IEEE half precision, and bfloat16, which is the upper half of a float32."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.payload.noise import Octaves

Shorts = npt.NDArray[np.uint16]
Singles = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Sixteen:
    """A format with ``fraction`` bits after the leading one and no exponent below ``lowest``.

    ``narrow`` takes numbers that the format holds to their bits, ``widen`` takes bits to numbers.
    """

    fraction: int
    lowest: int
    largest: float
    narrow: Callable[[Doubles], Shorts]
    widen: Callable[[Shorts], Singles]

    def spacing(self, values: npt.NDArray[np.floating[Any]]) -> Doubles:
        """u = 2^(max(e, lowest) − fraction) for 2^e ≤ |x| < 2^(e+1): the distance of the format's numbers round x.

        >>> FLOAT16.spacing(np.array([1.0, -2.5, 65504.0, 0.0])) == [2**-10, 2**-9, 32.0, 2**-24]
        array([ True,  True,  True,  True])
        """
        # Exponents are read and written as bits, ten times as fast as frexp and ldexp.
        exponent = (values.astype(np.float64).view(np.int64) >> 52 & 0x7FF) - 1023
        spacing: Doubles = (np.maximum(exponent, self.lowest) - self.fraction + 1023 << 52).view(np.float64)
        return spacing

    def noise_at(self, values: Singles) -> Octaves:
        """u²/6 for numbers of the format."""
        return Octaves(values, 2.0**self.lowest, 4.0**-self.fraction / 6.0)


def _narrow_float16(values: Doubles) -> Shorts:
    return values.astype("<f2").view("<u2")


def _widen_float16(bits: Shorts) -> Singles:
    return bits.view("<f2").astype("<f4")


def _narrow_bfloat16(values: Doubles) -> Shorts:
    return (values.astype("<f4").view("<u4") >> 16).astype("<u2")


def _widen_bfloat16(bits: Shorts) -> Singles:
    return (bits.astype("<u4") << 16).view("<f4")


def bfloat16_above(values: Doubles) -> Shorts:
    """The smallest bfloat16 that is not below each value, which is neither negative nor above the largest.

    >>> BFLOAT16.widen(bfloat16_above(np.array([0.0, 1.0, 1.001, 1e-300]))).tolist() == [0.0, 1.0, 1 + 2**-7, 2**-133]
    True
    """
    single = values.astype("<f4")
    single = np.where(single < values, np.nextafter(single, np.float32(np.inf)), single)
    return (single.astype("<f4", copy=False).view("<u4") + np.uint32(0xFFFF) >> 16).astype("<u2")


FLOAT16 = Sixteen(10, -14, 65504.0, _narrow_float16, _widen_float16)
BFLOAT16 = Sixteen(7, -126, (2.0 - 2.0**-7) * 2.0**127, _narrow_bfloat16, _widen_bfloat16)
