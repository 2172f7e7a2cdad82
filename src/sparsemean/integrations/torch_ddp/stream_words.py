"""Words of a key's random streams (``docs/sampling.md``), drawn on the device for all ranks at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor

Stream: TypeAlias = Sequence[int]
"""The two words that a stream is drawn with (``sampling.stream_of``)."""

HALF = 0xFFFFFFFF


def stream_words(streams: Sequence[Stream], count: int, device: torch.device) -> Tensor:
    """(n, count): the first words of n streams, of 64 bits, as signed numbers.

    Torch has no unsigned arithmetic of 64 bits. Signed products wrap to the same bits; shifts are masked to be logical.

    >>> from sparsemean.sampling import Key, stream_of
    >>> drawn = stream_words([stream_of(Key(7, 0, "station-12"), b"dither")], 2, "cpu")
    >>> [hex(word % 2**64) for word in drawn[0].tolist()]
    ['0x5a8bbb9bec8d1b0b', '0xc9e6346a3af3b8ee']
    """
    keys = torch.tensor([[_signed(word) for word in stream] for stream in streams], device=device)
    z = torch.arange(1, count + 1, device=device) * _signed(0x9E3779B97F4A7C15) + keys[:, :1]
    return _mixed(_mixed(z).bitwise_xor_(keys[:, 1:]))


def uniforms(streams: Sequence[Stream], count: int, device: torch.device) -> Tensor:
    """(n, count): U_i = (w_i + ½) / 2³² of n streams, w_i the halves of their words, the low one first."""
    drawn = stream_words(streams, (count + 1) // 2, device)
    halves = torch.stack([drawn & HALF, drawn >> 32 & HALF], dim=2).view(len(streams), -1)[:, :count]
    return halves.to(torch.float64).add_(0.5).mul_(2.0**-32)


def _mixed(z: Tensor) -> Tensor:
    """SplitMix64's finaliser."""
    z = (z ^ _shifted(z, 30)).mul_(_signed(0xBF58476D1CE4E5B9))
    z = (z ^ _shifted(z, 27)).mul_(_signed(0x94D049BB133111EB))
    return z ^ _shifted(z, 31)


def _shifted(z: Tensor, places: int) -> Tensor:
    """A logical shift to the right; that of signed numbers would bring in ones."""
    return (z >> places).bitwise_and_((1 << 64 - places) - 1)


def _signed(word: int) -> int:
    """The number between −2⁶³ and 2⁶³ that has these 64 bits."""
    return (word + (1 << 63)) % (1 << 64) - (1 << 63)
