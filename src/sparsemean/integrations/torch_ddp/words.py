"""The words of a key's streams (docs/sampling.md) in torch, for as many keys as there are ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

Stream: TypeAlias = Sequence[int]
"""The two words that a stream is drawn with (``core.stream_of``)."""

HALF = 0xFFFFFFFF


def words(streams: Sequence[Stream], count: int, device: torch.device) -> Tensor:
    """(n, count) words of 64 bits, as signed numbers: products wrap, and shifts are made to bring in zeros.

    >>> from sparsemean.core import Key, stream_of
    >>> [hex(word % 2**64) for word in words([stream_of(Key(7, 0, "station-12"), b"dither")], 2, "cpu")[0].tolist()]
    ['0x5a8bbb9bec8d1b0b', '0xc9e6346a3af3b8ee']
    """
    keys = torch.tensor([[_signed(word) for word in stream] for stream in streams], device=device)
    z = torch.arange(1, count + 1, device=device) * _signed(0x9E3779B97F4A7C15) + keys[:, :1]
    return _mixed(_mixed(z).bitwise_xor_(keys[:, 1:]))


def uniforms(streams: Sequence[Stream], count: int, device: torch.device) -> Tensor:
    """(n, count) of U_i = (w_i + ½) / 2³², w_i the halves of the words, the low one first."""
    drawn = words(streams, (count + 1) // 2, device)
    halves = torch.stack([drawn & HALF, drawn >> 32 & HALF], dim=2).view(len(streams), -1)[:, :count]
    return halves.to(torch.float64).add_(0.5).mul_(2.0**-32)


def _mixed(z: Tensor) -> Tensor:
    z = (z ^ _shifted(z, 30)).mul_(_signed(0xBF58476D1CE4E5B9))
    z = (z ^ _shifted(z, 27)).mul_(_signed(0x94D049BB133111EB))
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, places: int) -> Tensor:
    return (z >> places).bitwise_and_((1 << 64 - places) - 1)


def _signed(word: int) -> int:
    """The number between −2⁶³ and 2⁶³ that has these 64 bits."""
    return (word + (1 << 63)) % (1 << 64) - (1 << 63)
