"""The randomness of few-bit values: drawn from the key, so that the receiver can draw it again."""

from __future__ import annotations

from collections.abc import Iterator

from sparsemean._types import Doubles
from sparsemean.kernels.restore import CHUNK
from sparsemean.kernels.restore import uniforms as drawn
from sparsemean.sampling import Key, stream_of

LABEL = b"dither"


def uniforms(key: Key, start: int, count: int) -> Doubles:
    """U_i = (w_i + ½) / 2³² for i from ``start``, which is even; w_i are the halves of the words, the low one first.

    Symmetric about ½ and never 0 or 1.

    >>> from sparsemean.sampling import Key
    >>> uniforms(Key(7, 0, "station-12"), 0, 3) * 2**32 - 0.5 == [0xec8d1b0b, 0x5a8bbb9b, 0x3af3b8ee]
    array([ True,  True,  True])
    """
    return drawn(stream_of(key, LABEL), start, count)


def chunks(key: Key, count: int) -> Iterator[tuple[slice, Doubles]]:
    """Which values come next, and their U."""
    for start in range(0, count, CHUNK):
        stop = min(start + CHUNK, count)
        yield slice(start, stop), uniforms(key, start, stop - start)
