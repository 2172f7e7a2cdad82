"""Few-bit codes back to values: the dither is drawn again from the key's stream and subtracted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles, Floats
from sparsemean.kernels.stream import stream_index, stream_word
from sparsemean.kernels.twin import twin

Codes: TypeAlias = npt.NDArray[np.uint8] | npt.NDArray[np.uint16]

CHUNK = 1 << 16  # values at a time: eight-byte temporaries stay in the cache, and small beside the payload


def uniforms(stream: Sequence[int], start: int, count: int) -> Doubles:
    """U_i = (w_i + ½) / 2³² for i from ``start``, which is even; w_i are the halves of the words, the low one first."""
    drawn = stream_word(stream, stream_index(start // 2, (count + 1) // 2))
    halves = drawn.astype("<u8", copy=False).view("<u4")[:count]
    uniform: Doubles = (halves + 0.5) * 2.0**-32
    return uniform


def restored(codes: Codes, steps: Doubles, levels: int, dither: Doubles) -> Doubles:
    """x̂ = s·(c + ½ − L/2 − D): uniform around x with width s, whatever x is, so E x̂ = x and var x̂ = s²/12.

    >>> restored(np.array([0, 1, 1], np.uint8), np.full(3, 2.0), 2, np.array([-0.25, 0.25, 0.25]))
    array([-0.5,  0.5,  0.5])
    """
    # All but the product is exact: half-integers below 2¹⁶, and D, a multiple of 2⁻³³.
    return steps * ((codes + (1 - levels) / 2) - dither)


def restore_numpy(stream: Sequence[int], codes: Codes, steps: Doubles, group: int, levels: int, out: Floats) -> None:
    """Write ``restored`` values to ``out``, with D = U − ½.

    Parameters
    ----------
    stream
        The two words of the dither's stream.
    codes
        c, one per value.
    steps, group
        s of each group of values; ``group`` is even and divides CHUNK.
    levels
        L, how many codes there are.
    out
        One value per code, rounded to its type.
    """
    for start in range(0, codes.size, CHUNK):
        some = slice(start, min(start + CHUNK, codes.size))
        own = np.repeat(steps[start // group : -(-some.stop // group)], group)[: some.stop - start]
        out[some] = restored(codes[some], own, levels, uniforms(stream, start, some.stop - start) - 0.5)


restore = twin(restore_numpy, "restore", values=lambda stream, codes, steps, group, levels, out: codes.size)
