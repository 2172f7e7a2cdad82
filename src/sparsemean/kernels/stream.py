"""Streams: the 64-bit words that a key determines, in any order (docs/sampling.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from sparsemean._types import Words

_GOLDEN, _ALL = 0x9E3779B97F4A7C15, (1 << 64) - 1
_Z = TypeVar("_Z", int, npt.NDArray[Any])  # a number, or an array of them


def stream_word(stream: Sequence[Any], index: _Z) -> _Z:
    """The words at these positions of the stream whose key is the first two of ``stream``."""
    z = ((index + 1) * _GOLDEN + int(stream[0])) & _ALL
    return _mixed(_mixed(z) ^ int(stream[1]))


def stream_index(start: int, count: int) -> Words:
    """The positions start, start + 1, … in a stream."""
    return np.arange(count, dtype=np.uint64) + np.uint64(start)


def below(bound: int, stream: Sequence[Any], start: int) -> int:
    """Uniform in [0, bound): the first word from ``start`` whose low bits are below it."""
    mask = (1 << (bound - 1).bit_length()) - 1
    while (low := stream_word(stream, start) & mask) >= bound:
        start += 1
    return low


def _mixed(z: _Z) -> _Z:
    """A bijection of the 64-bit words: the finaliser of splitmix64."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _ALL
    mixed: _Z = z ^ (z >> 31)
    return mixed
