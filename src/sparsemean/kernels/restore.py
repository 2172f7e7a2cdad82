"""Codes of few bits back to values: the dither is drawn again from the words of the key, and taken off."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from sparsemean._types import Doubles
from sparsemean.kernels.choose import fastest, worth_loading
from sparsemean.kernels.sample import stream_index, stream_word

Codes: TypeAlias = npt.NDArray[np.uint8]
Singles: TypeAlias = npt.NDArray[np.floating[Any]]
Restore: TypeAlias = Callable[[Sequence[int], Codes, Doubles, int, int, Singles], None]

CHUNK = 1 << 16  # values in hand at once: eight-byte temporaries stay in the cache, and small beside what was sent


def uniforms(stream: Sequence[int], start: int, count: int) -> Doubles:
    """U_i = (w_i + ½) / 2³² for i from ``start``, which is even; w_i are the halves of the words, the low one first."""
    drawn = stream_word(stream, stream_index(start // 2, (count + 1) // 2))
    halves = drawn.astype("<u8", copy=False).view("<u4")[:count]
    uniform: Doubles = (halves + 0.5) * 2.0**-32
    return uniform


def restored(codes: Codes, steps: Doubles, levels: int, dither: Doubles) -> Doubles:
    """x̂ = s·(c + ½ − L/2 − D): uniform round x with width s, whatever x is, so E x̂ = x and var x̂ = s²/12.

    >>> restored(np.array([0, 1, 1], np.uint8), np.full(3, 2.0), 2, np.array([-0.25, 0.25, 0.25]))
    array([-0.5,  0.5,  0.5])
    """
    # All but the product is exact: half-integers below 2⁸, and D, a multiple of 2⁻³³.
    return steps * ((codes + (1 - levels) / 2) - dither)


def restore_numpy(stream: Sequence[int], codes: Codes, steps: Doubles, group: int, levels: int, out: Singles) -> None:
    """``restored`` with D = U − ½; ``group`` values share a step, CHUNK being a multiple of it."""
    for start in range(0, codes.size, CHUNK):
        some = slice(start, min(start + CHUNK, codes.size))
        own = np.repeat(steps[start // group : -(-some.stop // group)], group)[: some.stop - start]
        out[some] = restored(codes[some], own, levels, uniforms(stream, start, some.stop - start) - 0.5)


def restore(count: int) -> Restore:
    """The faster of the two here; few values take less time than to load numba."""
    return _compiled() if worth_loading(count) else restore_numpy


@functools.cache
def _compiled() -> Restore:
    return fastest(restore_numpy, "restore")
