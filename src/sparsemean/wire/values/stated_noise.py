"""Noise that only the sender can know, in one number of the payload.

A value that is rounded at random to one of its neighbours, u apart, has noise of variance f(1 − f)u², where f says how
far it is from the lower one. The receiver knows u but not f. So the sender states φ, a float32 from 0 to ¼, such that
φ·w, summed over the values, is the variance in all, where w is a weight that both know. The server's error is then
exact in all; how it is spread within what shares a φ follows w.
"""

from __future__ import annotations

import struct

from sparsemean.errors import MalformedPayload
from sparsemean.wire.reader import Reader

FACTOR_BYTES = 4
MOST = 0.25  # of f(1 − f)


def pack_factor(variance: float, weight: float) -> bytes:
    """φ of values with that variance and weight in all.

    >>> pack_factor(0.5, 4.0).hex(), pack_factor(0.0, 0.0).hex()
    ('0000003e', '00000000')
    """
    return struct.pack("<f", min(variance / weight, MOST) if weight > 0.0 else 0.0)


def read_factor(reader: Reader) -> float:
    """The φ that comes next; what f(1 − f) cannot be on average is refused, NaN among it."""
    packed = reader.take(FACTOR_BYTES)
    (factor,) = struct.unpack("<f", packed)
    if not 0.0 <= factor <= MOST or packed[3] & 0x80:
        raise MalformedPayload(f"the stated noise is {factor} of the squared steps, which is never below 0 or above ¼")
    return float(factor)
