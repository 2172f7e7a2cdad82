"""Values to few-bit codes: the dither that ``restore`` subtracts is added before rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparsemean._types import Doubles, Floats
from sparsemean.kernels.restore import CHUNK, Codes, uniforms
from sparsemean.kernels.twin import twin


def quantised(values: Doubles, steps: Doubles, levels: int, dither: Doubles) -> Codes:
    """c = ⌊x/s + L/2 + D⌋, from 0 to L − 1 wherever |x| ≤ A and |D| < ½.

    x/s + L/2 lies in [½, L − ½] and |D| ≤ ½ − 2⁻³³, so the sum keeps a distance of 2⁻³³ from 0 and L. Rounding moves it
    by less than 2⁻⁴³, with 16 bits by less than 2⁻³⁵, so no code has to be clipped; and it moves the sum over a whole
    number for one of the 2³² values of D at most, which is a bias below 2⁻³² s, less than the rounding of what is
    decoded to float32.

    >>> quantised(np.array([-1.0, 0.0, 1.0]), np.full(3, 2.0), 2, np.array([-0.25, 0.25, 0.25]))
    array([0, 1, 1], dtype=uint8)
    """
    codes = np.floor(values / steps + levels / 2 + dither)
    return codes.astype(np.uint8) if levels <= 256 else codes.astype(np.uint16)


def quantise_numpy(stream: Sequence[int], values: Floats, steps: Doubles, group: int, levels: int, out: Codes) -> None:
    """Write the codes of ``values`` to ``out``, with D = U − ½.

    Parameters
    ----------
    stream
        The two words of the dither's stream.
    values
        x.
    steps, group
        s of each group of values; ``group`` is even and divides CHUNK. Where s is 0 all codes are 0.
    levels
        L, how many codes there are.
    out
        One code per value.
    """
    for start in range(0, values.size, CHUNK):
        some = slice(start, min(start + CHUNK, values.size))
        own = np.repeat(steps[start // group : -(-some.stop // group)], group)[: some.stop - start]
        dither = uniforms(stream, start, some.stop - start) - 0.5
        codes = quantised(values[some].astype(np.float64), np.where(own > 0.0, own, 1.0), levels, dither)
        out[some] = codes * (own > 0.0)


quantise = twin(quantise_numpy, "quantise", values=lambda stream, values, steps, group, levels, out: values.size)
